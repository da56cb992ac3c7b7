"""Invented results to make reports of: a record with every section, and a few episodes."""

from __future__ import annotations

import math
from typing import Any

from mimesim.dialogue.episode import Episode, Outcome, Step, TaskRef, Turn
from mimesim.dialogue.stop import Party, Status, Stop, StopReason
from mimesim.dialogue.types import Identity, Role, ToolCall, Usage
from mimesim.results import (
    Conversation,
    Curve,
    Difference,
    Estimate,
    MatrixRow,
    MetricRow,
    Provenance,
    RunRecord,
    SampleReply,
    Stage,
    Tile,
    UserSample,
)
from mimesim.seeds import generator
from mimesim.stats import wilson

ARMS = ("warm-started only", "cooperative user", "easy user", "realistic user", "realistic + CSD")
USERS = ("plain", "quiet", "guarded", "shifting", "pushy", "flighty", "overloaded")
_RATES = {
    "warm-started only": (0.745, 0.095, 0.045, 0.125, 0.175, 0.055, 0.03),
    "cooperative user": (0.625, 0.048, 0.028, 0.097, 0.152, 0.02, 0.027),
    "easy user": (0.66, 0.21, 0.09, 0.18, 0.2, 0.11, 0.06),
    "realistic user": (0.573, 0.505, 0.247, 0.34, 0.337, 0.31, 0.15),
    "realistic + CSD": (0.535, 0.468, 0.282, 0.368, 0.395, 0.352, 0.118),
}


def episode(
    number: int = 0,
    *,
    status: Status = Status.COMPLETED,
    success: bool | None = True,
    said: str = "hi , i bought a jacket and it does not fit . i want my money back",
    **changes: Any,
) -> Episode:
    """Make one invented episode; `number` varies its id, task and seed."""
    counted = status.counted
    reason = {
        Status.COMPLETED: StopReason.CASE_CLOSED,
        Status.TRUNCATED: StopReason.MAX_STEPS,
        Status.USER_FAILURE: StopReason.USER_ERROR,
    }[status]
    by = Party.AGENT if status is Status.COMPLETED else Party.RUNNER
    turns = (
        Turn(0, Role.USER, said, action="say"),
        Turn(1, Role.AGENT, "may i have the order number and the refund method ?"),
        Turn(2, Role.USER, "why do you need that ? you have it on your screen", action="say"),
        Turn(3, Role.AGENT, "i am sorry . may i have the order number ?"),
        Turn(4, Role.USER, "4 7 2 . paid by card , if you must know", action="say"),
        Turn(
            5,
            Role.AGENT,
            "act refund order 4 7 2 to card",
            tool_calls=(ToolCall("c1", "close_case", '{"resolution": "granted"}', Role.AGENT),),
        ),
    )
    private = {
        "goal": "a refund for a jacket bought 21 days ago",
        "behavior": {"id": "clarification_noncooperation", "patience": 1},
        "facts": {"order": "472", "method": "card", "days": 21, "tier": "silver"},
        "withhold": ["order"],
        "thoughts": [
            {"turn": 0, "text": "Start with the complaint, they can ask for the rest."},
            {"turn": 2, "text": "I hate reading numbers out. Let them look it up themselves."},
            {"turn": 4, "text": "Fine. They asked twice, so give it and get this over with."},
        ],
        "wishes": [
            {"turn": 0, "wish": {"intent": "refund", "values": {"method": "gift card"}}},
            {"turn": 4, "wish": {"intent": "refund", "values": {"method": "card"}}},
        ],
    }
    values: dict[str, Any] = {
        "id": f"ep-{number:04d}",
        "run_id": "sample",
        "trial": 0,
        "seed": 1000 + number,
        "task": TaskRef(
            "support-desk", f"task-{number:03d}", "compact", "test", ("subflow:refund",)
        ),
        "agent": Identity("policy", "policy:tiny", model="tiny-0.6M"),
        "user": Identity("scripted", "scripted:realistic"),
        "judge": Identity("rule", "rule"),
        "system": "policy refund 30 gold 60 exchange 15 missing 90 cancel not shipped",
        "turns": turns,
        "steps": (
            Step(0, 1, "action", turns[1].content, turns[1].content, True, 0.0),
            Step(1, 3, "action", turns[3].content, turns[3].content, True, 0.0),
            Step(2, 5, "answer", turns[5].content, turns[5].content, True, 1.0 if success else 0.3),
        ),
        "stop": Stop(reason, by, 2, limit=8 if status is Status.TRUNCATED else None),
        "outcome": Outcome(
            status, success if counted else None, (1.0 if success else 0.3) if counted else None
        ),
        "guards": ({"guard": "over_length", "turn": 2, "attempt": 1, "action": "redraw"},),
        "usage": {"agent": Usage(120, 60, calls=3), "user": Usage(calls=3, cost=0.0021)},
        "software": {"version": "0.1.0", "python": "3.11.7"},
        "limits": {"max_steps": 8},
        "duration_s": 0.4,
        "private": private,
    }
    return Episode(**{**values, **changes})


def episodes(count: int = 24) -> list[Episode]:
    """Make episodes with all kinds of outcomes and three behaviors."""
    kinds = [
        (Status.COMPLETED, True),
        (Status.COMPLETED, False),
        (Status.COMPLETED, True),
        (Status.TRUNCATED, False),
        (Status.USER_FAILURE, None),
        (Status.COMPLETED, True),
    ]
    behaviors = ("belittling_or_entitled_pressure", "self_contradiction", "request_overloading")
    made = []
    for number in range(count):
        status, success = kinds[number % len(kinds)]
        one = episode(number, status=status, success=success)
        private = {**(one.private or {}), "behavior": behaviors[number % 3]}
        made.append(episode(number, status=status, success=success, private=private))
    return made


def record() -> RunRecord:
    """Make a record in which every section is filled."""
    return RunRecord(
        title="MimeSim demo",
        verdict=(
            "An agent trained with the realistic user succeeds with unseen users more than twice "
            "as often as one trained with a cooperative user; CSD is not resolved."
        ),
        kind="demo",
        tiles=(
            Tile("Held-out success", "35.2 %", "realistic user, 7 unseen users"),
            Tile("Gain over cooperative", "+20.9", "points, 95 % interval +11.2 to +28.5"),
            Tile("User model, held-out loss", "3.31", "nats per token, 3.67 before training"),
            Tile("Whole loop", "21 min", "2 cores, no GPU, no key"),
        ),
        rows=tuple(
            MatrixRow(
                arm,
                user,
                Estimate.of(wilson(round(400 * rate), 400)),
                agent="policy:tiny",
                gym="support-desk",
                profile="compact",
                n=400,
                seeds=(0, 1),
                reward=Estimate(0.3 + rate / 2),
                success_strict=rate * 0.99,
                invalid_rate=0.0025,
                ends={"case_closed": 0.85, "user_stop": 0.06, "max_steps": 0.09},
            )
            for arm in ARMS
            for user, rate in zip(USERS, _RATES[arm], strict=True)
        ),
        averages=tuple(
            MatrixRow(
                arm,
                "all held-out",
                Estimate(
                    sum(_RATES[arm]) / 7,
                    sum(_RATES[arm]) / 7 - 0.06,
                    sum(_RATES[arm]) / 7 + 0.07,
                    2800,
                    "bootstrap",
                ),
                seeds=(0, 1),
                reward=Estimate(0.45),
            )
            for arm in ARMS
        ),
        differences=(
            Difference(
                "realistic user",
                "warm-started only",
                Estimate(
                    0.203,
                    0.124,
                    0.291,
                    2800,
                    "hierarchical bootstrap over 1 SFT seeds, 2 runs and 200 clusters, 10000 draws",
                ),
                headline=True,
                per_seed={"RL 0": 0.228, "RL 1": 0.178},
            ),
            Difference(
                "realistic user",
                "cooperative user",
                Estimate(0.209, 0.112, 0.285, 2800),
                headline=True,
                per_seed={"RL 0": 0.238, "RL 1": 0.164},
            ),
            Difference(
                "easy user",
                "warm-started only",
                Estimate(0.034, -0.011, 0.08, 2800),
                per_seed={"RL 0": 0.05, "RL 1": 0.02},
            ),
            Difference(
                "realistic + CSD",
                "realistic user",
                Estimate(0.008, -0.03, 0.054, 2800),
                per_seed={"RL 0": 0.059, "RL 1": -0.043},
                note="alpha 0.1, prospective rule coach",
            ),
            Difference(
                "cooperative user", "warm-started only", Estimate(-0.039, -0.07, -0.008, 2800)
            ),
        ),
        distortion=tuple(
            MatrixRow(arm, user, Estimate.of(wilson(round(200 * rate), 200)), n=200)
            for arm, rates in (
                ("warm-started only", (0.975, 0.32, 0.185, 0.045)),
                ("realistic user", (0.938, 0.873, 0.755, 0.247)),
            )
            for user, rate in zip(
                ("cooperative", "neutral", "realistic", "hostile"), rates, strict=True
            )
        ),
        curves=tuple(
            _curve(arm, seed, metric)
            for metric in ("mean reward", "tied groups")
            for arm in ARMS[1:]
            for seed in (0, 1)
        ),
        user_samples=(
            UserSample(
                (
                    (
                        "agent",
                        "Thanks for waiting. Could you give me your order number so that I can look into the delay?",
                    ),
                ),
                (
                    SampleReply(
                        "trained:smollm2",
                        "ugh hold on its in my email somewhere",
                        "They want the number. I would have to dig for it.",
                    ),
                    SampleReply(
                        "roleplay:smollm2",
                        "Of course! My order number is 472. I appreciate your patience and your help with this matter.",
                    ),
                    SampleReply("human", "one sec\n472 i think"),
                ),
                "A customer asks why a parcel is late.",
            ),
            UserSample(
                (
                    ("user", "my package never came"),
                    ("agent", "I am sorry to hear that. When did you order it?"),
                ),
                (
                    SampleReply("trained:smollm2", "like 3 weeks ago", ""),
                    SampleReply(
                        "roleplay:smollm2",
                        "I ordered it about three weeks ago, and I have been patiently waiting for an update ever since.",
                    ),
                    SampleReply("human", "the 2nd"),
                ),
                "A parcel is missing.",
            ),
        ),
        user_metrics=(
            MetricRow("words per turn", "trained:smollm2", Estimate(7.9, 7.1, 8.8, 240), "words"),
            MetricRow(
                "words per turn", "roleplay:smollm2", Estimate(24.3, 22.8, 26.0, 240), "words"
            ),
            MetricRow("words per turn", "human", Estimate(6.4, 6.1, 6.8, 2400), "words"),
            MetricRow("distinct-2", "trained:smollm2", Estimate(0.71)),
            MetricRow("distinct-2", "roleplay:smollm2", Estimate(0.44)),
            MetricRow("distinct-2", "human", Estimate(0.73)),
            MetricRow(
                "held-out loss",
                "trained:smollm2",
                Estimate(3.31, 3.27, 3.36, 5000),
                "nats/token",
                "lower",
            ),
            MetricRow(
                "held-out loss",
                "roleplay:smollm2",
                Estimate(3.67, 3.62, 3.72, 5000),
                "nats/token",
                "lower",
                "same model before training",
            ),
            MetricRow(
                "guard failures", "trained:smollm2", Estimate(0.04, 0.02, 0.09, 48), "%", "lower"
            ),
            MetricRow(
                "guard failures", "roleplay:smollm2", Estimate(0.125, 0.06, 0.25, 48), "%", "lower"
            ),
        ),
        conversations=(
            Conversation(
                episode(1).to_json(),
                "Realistic user, realistic-trained agent",
                "The customer dodges once; the agent asks again.",
            ),
            Conversation(
                episode(2, success=False).to_json(), "The same customer, cooperative-trained agent"
            ),
            Conversation(
                episode(3, status=Status.USER_FAILURE, success=None).to_json(),
                "A conversation that is not counted",
            ),
        ),
        limits=(
            "One SFT seed and two RL seeds: the intervals cover tasks and RL seeds, not warm starts.",
            "The agent trains against the scripted realistic user; the trained language-model user is frozen, shown and scored beside the role-play user.",
            "A user that states everything leaves the cooperative arm little to learn, so much of its gap is by construction.",
        ),
        seeds={"SFT": (0,), "RL": (0, 1)},
        provenance=Provenance(
            versions={
                "mimesim": "0.1.0",
                "torch": "2.13.0",
                "transformers": "5.17.0",
                "trl": "1.16.2",
            },
            identities={
                "training user": {"kind": "scripted", "name": "scripted:realistic"},
                "coach": {"kind": "rule", "name": "rule"},
            },
            hashes={"tasks": "9f31ac02d7be11f0", "prompts": "77aa01c3be9920aa"},
            machine={"cpu": "x86_64", "cores": 2, "memory_gb": 8},
            settings={
                "grpo": {"lr": 1.5e-4, "steps": 150, "clip": [0.2, 0.28]},
                "csd": {"alpha": 0.1, "debias": True},
            },
            stages=(
                Stage("train the user", 320.0, 610.0),
                Stage("warm start", 410.0, 405.0, True),
                Stage("GRPO, 4 arms x 2 seeds", 480.0, 930.0),
            ),
            wall_s=1260.0,
            cpu_s=2010.0,
            command="make demo",
            created_at="2026-01-05 12:00 UTC",
        ),
    )


def _curve(arm: str, seed: int, metric: str) -> Curve:
    rng = generator(seed, arm, metric)
    start, end = {
        "cooperative user": (0.93, 0.93),
        "easy user": (0.78, 0.88),
        "realistic user": (0.54, 0.76),
    }.get(arm, (0.54, 0.75))
    if metric == "tied groups":
        start, end = 1 - start + 0.2, 1 - end + 0.1
    steps = range(150)
    y = tuple(round(end + (start - end) * math.exp(-t / 45) + rng.gauss(0, 0.03), 4) for t in steps)
    return Curve(arm, seed, metric, tuple(float(t) for t in steps), y)
