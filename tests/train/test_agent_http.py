"""Training against a user and a coach who are models behind real HTTP servers.

The user's private thoughts are marked `ZQX`, the coach's reasoning `QCX`, its notes `NCX`. The
policy is a random byte-level model, so any mark that was fed to it would be readable in its ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mimesim.dialogue.stop import END_MARKER
from mimesim.envs.load import load_tasks
from mimesim.models.load import make_chat_model
from mimesim.rollout.limits import Limits
from mimesim.rollout.policy import PolicyConfig
from mimesim.train.coach import CoachConfig, ModelCoach
from mimesim.train.collect import GymCollector, World
from mimesim.train.csd import CsdConfig
from mimesim.train.grpo import Sample
from mimesim.train.notes import NoteConfig
from mimesim.users.load import make_user
from tests import tiny
from tests.support.stub_server import Fault, StubRequest, StubServer
from tests.support.trainers import Setting, train

pytestmark = pytest.mark.filterwarnings("ignore")
QUICK = {"backoff_s": 0.01, "backoff_max_s": 0.02, "budget_s": 0.3}
ROWS = [{"task_index": index} for index in (0, 0, 1, 1)]
WORDS = ("it came too late", "the small one", "why do you ask", "i paid for it", "so what now")


def customer(request: StubRequest) -> str:
    """Think a marked thought in one of several shapes, then talk; hang up after four turns."""
    said = sum(m["role"] == "assistant" for m in request.body["messages"])
    thought = f"ZQX{request.number} they must not know ZQX"
    if said >= 4:
        return f"<think>{thought}</think>{END_MARKER}"
    words = f"{WORDS[said]} {request.number}"
    shapes = ("<think>{t}</think>{w}", "<think>\n{t}\n</think>\n\n{w}", "{t}</think>{w}")
    return shapes[request.number % 3].format(t=thought, w=words)


def coach(request: StubRequest) -> str:
    return (
        f"<think>QCX reasoning</think>NCX ask what is in the way of this person ({request.number})."
    )


@dataclass
class Stage:
    """Both servers and a collector that talks to them."""

    people: StubServer
    coaches: StubServer
    collector: GymCollector

    def collect(self, *, lean: float = 0.7) -> list[Sample]:
        return self.collector.collect(ROWS, tiny.talker(lean=lean), 0)


Open = Callable[..., Stage]


@pytest.fixture
def stage() -> Iterator[Open]:
    servers: list[StubServer] = []
    collectors: list[GymCollector] = []

    def open_stage(
        profile: str = "full",
        *,
        user: Any = customer,
        teacher: Any = coach,
        config: CoachConfig | None = None,
    ) -> Stage:
        people, coaches = StubServer(user), StubServer(teacher)
        for server in (people, coaches):
            servers.append(server.__enter__())
        options = {"thinking": True, "model_options": QUICK}
        users = make_user(f"roleplay:openai:stub@{people.url}", options=options)
        patient = {**QUICK, "budget_s": 2.0}
        model = make_chat_model(f"openai:stub@{coaches.url}", options=patient)
        limits = Limits(detect_loops=False, empty_retries=0, max_steps=5)
        world = World("support-desk", profile, users, "line", limits)
        tasks = load_tasks("support-desk", profile=profile, split="train", seed=6, count=64)
        collector = GymCollector(
            world,
            tasks,
            tiny.tokenizer(),
            PolicyConfig(1.0, 8),
            1,
            ModelCoach(model, config),
            NoteConfig(),
        )
        collectors.append(collector)
        return Stage(people, coaches, collector)

    yield open_stage
    for collector in collectors:
        collector.close()
    for server in servers:
        server.__exit__(None, None, None)


def fed(sample: Sample) -> str:
    """Everything the policy read and wrote, special tokens included."""
    assert sample.tokens is not None
    return str(tiny.tokenizer().decode([*sample.tokens.prompt_ids, *sample.tokens.completion_ids]))


def requests(server: StubServer) -> list[str]:
    return [str(request.body) for request in server.generations]


@pytest.mark.parametrize("profile", ["full", "compact"])
def test_nothing_private_is_fed_to_the_policy(stage: Open, profile: str) -> None:
    opened = stage(profile)
    samples = opened.collect()
    assert all(s.valid for s in samples)
    assert any(len(s.rewards) > 2 for s in samples)
    heard = 0
    for sample in samples:
        text = fed(sample)
        assert not [
            mark for mark in ("ZQX", "QCX", "NCX", "think", "must not know") if mark in text
        ]
        heard += sum(words in text for words in WORDS)
    assert heard > 4, "the customers' public words do arrive"


def test_thoughts_go_to_their_owner_and_the_coach_only(stage: Open) -> None:
    opened = stage()
    samples = opened.collect()
    asked_user, asked_coach = requests(opened.people), requests(opened.coaches)
    assert any("ZQX" in text for text in asked_user), "a user keeps its own thoughts"
    assert any("ZQX" in text for text in asked_coach), "a privileged coach reads them"
    assert not [text for text in asked_user if "NCX" in text or "QCX" in text]
    assert not [text for text in asked_coach if "QCX" in text]
    noted = [turn for sample in samples for turn in sample.noted]
    assert noted
    for turn in noted:
        note = tiny.tokenizer().decode(turn.note_ids)
        assert "NCX ask what is in the way" in note
        assert "QCX" not in note
        assert "ZQX" not in note
    assert opened.collector.counts.written == len(noted) == len(asked_coach)


def test_without_privilege_the_coach_is_shown_public_words_only(stage: Open) -> None:
    opened = stage(config=CoachConfig(privileged=False))
    opened.collect()
    asked = requests(opened.coaches)
    assert asked
    assert not [text for text in asked if "ZQX" in text or "must not know" in text]


def test_two_generation_batches_through_the_real_trainer(stage: Open, tmp_path: Path) -> None:
    opened = stage("compact")
    run = train(
        tmp_path,
        opened.collector,
        Setting(CsdConfig(0.1), make=lambda: (tiny.talker(), tiny.tokenizer())),
        max_steps=2,
        per_device_train_batch_size=4,
        num_generations=2,
    )
    assert len(run.seen) == 2
    for step in run.seen:
        assert step.inputs["csd_num_items"] > 0
        assert step.loss == step.loss
        decoded = tiny.tokenizer().batch_decode(
            [*step.inputs["prompt_ids"], *step.inputs["completion_ids"]]
        )
        assert not [text for text in decoded if "ZQX" in text or "NCX" in text]
    assert run.logged("credit/invalid") == [0.0, 0.0]
    assert run.logged("csd/null_gap")[0] <= 2e-6


@pytest.mark.parametrize(
    "trouble",
    [Fault(500), Fault(reset=True), Fault(200, "{not json"), ""],
    ids=["500", "reset", "damaged", "empty"],
)
def test_a_failing_user_makes_invalid_samples_and_no_reward(stage: Open, trouble: Any) -> None:
    def dies(request: StubRequest) -> Any:
        talk = str(request.body["messages"])
        return trouble if WORDS[1] in talk else customer(request)

    opened = stage("compact", user=dies)
    samples = opened.collect(lean=-9.0)  # replies that go on to their cap, never an empty one
    assert not any(s.valid for s in samples)
    for sample in samples:
        assert sample.tokens is not None, "it had spoken before the user failed"
        assert sample.metrics == {}
        assert sample.noted == ()
    assert requests(opened.coaches) == []


def test_a_failing_user_is_no_zero_in_the_trainer(stage: Open, tmp_path: Path) -> None:
    """Episodes of one task fail: no gradient, no statistics, not even in the mean reward."""
    opened = stage("compact")
    doomed = opened.collector.tasks[0].scenario["facts"]["order"]

    def dies(request: StubRequest) -> Any:
        return Fault(500) if doomed in str(request.body["messages"][0]) else customer(request)

    opened = stage("compact", user=dies)
    run = train(
        tmp_path,
        opened.collector,
        Setting(CsdConfig(0.1), make=lambda: (tiny.talker(), tiny.tokenizer())),
        per_device_train_batch_size=4,
        num_generations=2,
    )
    (step,) = run.seen
    assert run.logged("credit/invalid") == [2.0]
    assert step.loss == step.loss
    assert step.logps is not None
    assert step.logps.grad is not None
    empty = [
        row
        for row, mask in enumerate(step.inputs["tool_mask"])
        if not (mask * step.inputs["completion_mask"][row]).any()
    ]
    assert len(empty) == 2
    assert step.logps.grad[empty].eq(0).all()
    assert step.inputs["advantages"][empty].eq(0).all()


def test_a_dead_coach_costs_the_notes_only(stage: Open) -> None:
    opened = stage("compact", teacher=[Fault(500)])
    opened.collector.notes = NoteConfig(max_noted=1)
    samples = opened.collect()
    assert all(s.valid for s in samples)
    assert all(s.noted == () for s in samples)
    assert opened.collector.counts.failed == opened.collector.counts.asked > 0
