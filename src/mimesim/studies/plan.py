"""The embedded study: from human chats to a trained user, a trained agent and a comparison.

Three sizes of one plan: `quick` checks the plumbing and claims nothing, `demo` is one warm start
and one or two RL seeds, `study` repeats it over warm starts and seeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mimesim.studies.scheduler import StagePlan

HELD_OUT = tuple(f"scripted:heldout-{n}" for n in range(1, 8))
"""The users that no agent practised with."""
DISTORTION = (
    "scripted:cooperative",
    "scripted:easy",
    "scripted:neutral",
    "scripted:realistic",
    "scripted:hostile",
)
"""Users of growing difficulty, met by the same fixed agents."""
WARM = "warm start"
CEILING = "script (ceiling)"
"""A scripted agent that reads perfectly: what a user lets anybody reach."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One training arm: the frozen user, and CSD's weight."""

    user: str
    alpha: float = 0.0


ARMS: dict[str, Arm] = {
    "cooperative user": Arm("scripted:cooperative"),
    "easy user": Arm("scripted:easy"),
    "realistic user": Arm("scripted:realistic"),
    "realistic user + CSD": Arm("scripted:realistic", 0.1),
}


@dataclass(frozen=True, slots=True)
class StudyConfig:
    """The size of a study.

    Attributes:
        demos: demonstrations of the warm start, each seen about twice.
        gate: lowest greedy success with the cooperative user before RL may start.
        batches: RL generation batches of 8 tasks x 8 rollouts.
        tasks: test tasks per evaluation user.
        user_tokens: training tokens of the SmolLM2 user.
        talks: conversations of each model-backed user.
    """

    name: str = "demo"
    sft_seeds: tuple[int, ...] = (0,)
    rl_seeds: tuple[int, ...] = (0,)
    arms: tuple[str, ...] = tuple(ARMS)
    demos: int = 32_000
    sft_steps: int = 1000
    sft_batch: int = 64
    sft_lr: float = 3e-3
    sft_muon_lr: float = 5e-3
    gate: float = 0.95
    batches: int = 100
    tasks: int = 200
    user_tokens: int = 40_000
    user_evaluation: int = 48
    talks: int = 16
    talk_turns: int = 4
    seed: int = 0


SIZES: dict[str, StudyConfig] = {
    "quick": StudyConfig(
        name="quick",
        arms=("cooperative user", "realistic user", "realistic user + CSD"),
        demos=1200,
        sft_steps=40,
        gate=0.0,
        batches=3,
        tasks=20,
        user_tokens=1500,
        user_evaluation=6,
        talks=2,
        talk_turns=2,
    ),
    "demo": StudyConfig(),
    "study": StudyConfig(name="study", sft_seeds=(0, 1), rl_seeds=(0, 1, 2)),
}


def plan_stages(config: StudyConfig, out: Path) -> list[StagePlan]:
    """Return the stages of a study in the order to prefer."""
    warm = [_warm_start(config, out, seed) for seed in config.sft_seeds]
    user = StagePlan(
        "user-training",
        "user-training",
        out / "user",
        {
            "tokens": config.user_tokens,
            "evaluation": config.user_evaluation,
            "seed": config.seed,
        },
    )
    talk = StagePlan(
        "user-talk",
        "user-talk",
        out / "talk",
        {
            "user": str(out / "user" / "checkpoint"),
            "talks": config.talks,
            "turns": config.talk_turns,
            "seed": config.seed,
        },
        needs=("user-training",),
    )
    training = [
        _rl(config, out, sft, rl, arm)
        for sft in config.sft_seeds
        for rl in config.rl_seeds
        for arm in config.arms
    ]
    scored = [_evaluation(config, out, stage, WARM) for stage in warm]
    scored += [_evaluation(config, out, stage, str(stage.settings["arm"])) for stage in training]
    return [*warm, user, *training, talk, *scored, _ceiling(config, out)]


def _warm_start(config: StudyConfig, out: Path, sft: int) -> StagePlan:
    return StagePlan(
        f"warm-start-{sft}",
        "warm-start",
        out / "agent" / f"warm-{sft}",
        {
            "sft": sft,
            "seed": config.seed * 1000 + sft,
            "demos": config.demos,
            "steps": config.sft_steps,
            "batch": config.sft_batch,
            "lr": config.sft_lr,
            "muon_lr": config.sft_muon_lr,
            "gate": config.gate,
        },
    )


def _rl(config: StudyConfig, out: Path, sft: int, rl: int, arm: str) -> StagePlan:
    slug = arm.replace(" + ", "-").replace(" ", "-").lower()
    return StagePlan(
        f"rl-{slug}-{sft}-{rl}",
        "rl",
        out / "agent" / f"{slug}-{sft}-{rl}",
        {
            "arm": arm,
            "user": ARMS[arm].user,
            "alpha": ARMS[arm].alpha,
            "sft": sft,
            "rl": rl,
            "init": str(out / "agent" / f"warm-{sft}" / "policy"),
            "batches": config.batches,
            # The same tasks and user streams for every arm of a seed pair.
            "seed": config.seed * 1000 + sft * 100 + rl,
        },
        needs=(f"warm-start-{sft}",),
    )


def _evaluation(config: StudyConfig, out: Path, stage: StagePlan, arm: str) -> StagePlan:
    sft = int(stage.settings["sft"])
    rl = int(stage.settings.get("rl", 0))
    return StagePlan(
        f"evaluate-{stage.folder.name}",
        "evaluate",
        out / "matrix" / stage.folder.name,
        {
            "arm": arm,
            "sft": sft,
            "rl": rl,
            "checkpoint": str(stage.folder / "policy"),
            "users": [*DISTORTION, *HELD_OUT],
            "tasks": config.tasks,
            "seed": config.seed,
        },
        needs=(stage.name,),
    )


def _ceiling(config: StudyConfig, out: Path) -> StagePlan:
    return StagePlan(
        "evaluate-ceiling",
        "evaluate",
        out / "matrix" / "ceiling",
        {
            "arm": CEILING,
            "sft": 0,
            "rl": 0,
            "agent": "scripted:patient",
            "users": [*DISTORTION, *HELD_OUT],
            "tasks": config.tasks,
            "seed": config.seed,
        },
    )


def settings(config: StudyConfig) -> Mapping[str, Any]:
    """Return the configuration as flat JSON values, for records."""
    return asdict(config)
