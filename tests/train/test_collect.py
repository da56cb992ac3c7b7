"""Rollouts for training: real episodes of the desk, their samples, and the notes about them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import torch

from mimesim.dialogue.types import CoachNote, Identity, Reply, Role, Thought
from mimesim.envs.base import Task
from mimesim.envs.load import load_tasks
from mimesim.errors import InfraError, UserError
from mimesim.models.codec import TemplateCodec
from mimesim.models.tiny import build_tokenizer
from mimesim.rollout.engine import EngineConfig, Job, run
from mimesim.rollout.policy import PolicyConfig
from mimesim.train.coach import CoachTurn, RuleCoach, rule_note
from mimesim.train.collect import GymCollector, World, as_sample
from mimesim.train.grpo import Sample
from mimesim.train.notes import NoteConfig
from mimesim.train.warmstart import vocabulary
from mimesim.users.base import User, UserRequest, UserSource
from mimesim.users.load import make_user
from tests.rollout.toy import ToyAgents, cast, make_task
from tests.support.bigram import desk_policy

TOKENS = build_tokenizer(vocabulary())
CODEC = TemplateCodec(TOKENS)
ROWS = [{"task_index": index} for index in (0, 0, 0, 0, 1, 1, 1, 1)]
STEPS = {"success", "turns", "acted", "left", "capped", "cut", "agent_marker"}


def tasks() -> list[Task]:
    return load_tasks("support-desk", profile="compact", split="train", seed=6, count=4)


OPEN: list[GymCollector] = []


@pytest.fixture(autouse=True)
def close_collectors() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def collector(
    user: UserSource | str = "scripted:realistic", *, coach: Any = None, seed: int = 1, **notes: Any
) -> GymCollector:
    people = make_user(user) if isinstance(user, str) else user
    world = World("support-desk", "compact", people)
    config = PolicyConfig(1.0, notes.pop("max_tokens", 8))
    OPEN.append(GymCollector(world, tasks(), TOKENS, config, seed, coach, NoteConfig(**notes)))
    return OPEN[-1]


def collect(
    made: GymCollector, batch: int = 0, rows: Any = None, *, acts: float = 0.4
) -> list[Sample]:
    return made.collect(rows or ROWS, desk_policy(TOKENS, acts=acts), batch)


class Spy:
    """A coach that keeps what it was shown; its notes are all different."""

    name = "spy"

    def __init__(self) -> None:
        self.turns: list[CoachTurn] = []
        self.seeds: list[int] = []

    async def note(self, turn: CoachTurn, *, seed: int) -> CoachNote | None:
        self.turns.append(turn)
        self.seeds.append(seed)
        return CoachNote(f"note lacks {'order ' * len(self.turns)}", self.name)

    async def aclose(self) -> None:
        """Release nothing."""


# -- samples --------------------------------------------------------------------------------


def test_one_sample_a_row_in_order() -> None:
    samples = collect(collector())
    assert [s.group for s in samples] == [f"0/{tasks()[r['task_index']].id}" for r in ROWS]
    for sample in samples:
        assert sample.valid
        assert sample.tokens is not None
        assert len(sample.rewards) == len(sample.tokens.spans)
        assert set(sample.metrics) == STEPS
        assert sample.metrics["turns"] == len(sample.rewards)
        assert sample.noted == ()
        text = CODEC.decode(sample.tokens.prompt_ids)
        assert "policy refund" in text
    assert len({s.tokens for s in samples}) > 4


def test_members_of_a_group_meet_the_same_opening() -> None:
    samples = collect(collector())
    for group in {s.group for s in samples}:
        prompts = {s.tokens.prompt_ids for s in samples if s.group == group and s.tokens}
        assert len(prompts) == 1


def test_rewards_are_those_of_the_steps() -> None:
    rows = [{"task_index": index % 4} for index in range(48)]
    samples = collect(collector("scripted:cooperative"), rows=rows)
    acted = [s for s in samples if s.metrics["acted"]]
    assert len(acted) > 10
    for sample in samples:
        assert all(r == 0 for r in sample.rewards[:-1])
        assert sample.tokens is not None
        span = sample.tokens.spans[-1]
        last = CODEC.decode(sample.tokens.completion_ids[span.start : span.end])
        assert bool(sample.metrics["acted"]) is last.startswith("act deny order")
        assert (sample.metrics["success"] == 1) is (sample.rewards[-1] == 1)
    assert {round(s.rewards[-1], 1) for s in acted} <= {0.0, 0.1, 0.4, 1.0}


def test_markers_that_a_policy_prints_are_a_metric_and_no_end() -> None:
    """C-STOP-04, in training."""
    lines = ("All sorted! ###STOP###", "###STOP###", "which order?")
    summary = run([Job(make_task(1))], cast(ToyAgents(lines)), EngineConfig())
    sample = as_sample(summary.episodes[0], None, "g")
    assert (sample.metrics["agent_marker"], sample.metrics["turns"]) == (2, 3)


def test_batches_are_reproducible_and_differ() -> None:
    one, two = (collect(collector(), batch=3) for _ in range(2))
    assert one == two
    assert [s.tokens for s in collect(collector(), batch=4)] != [s.tokens for s in one]
    assert [s.tokens for s in collect(collector(seed=2), batch=3)] != [s.tokens for s in one]


def test_the_training_flag_is_put_back() -> None:
    model = desk_policy(TOKENS)
    for training in (True, False):
        model.train(training)
        collector().collect(ROWS, model, 0)
        assert model.training is training


def test_the_current_weights_are_sampled() -> None:
    model, made = desk_policy(TOKENS, acts=0.4), collector()
    before = made.collect(ROWS, model, 0)
    with torch.no_grad():
        act, what = (TOKENS.convert_tokens_to_ids(w) for w in ("act", "what"))
        model.logits[TOKENS.convert_tokens_to_ids("assistant"), act] = 10.0
        model.logits[act, TOKENS.convert_tokens_to_ids("order")] = -60.0
    after = made.collect(ROWS, model, 0)
    assert any(len(s.rewards) > 1 for s in before)
    assert all(s.metrics["acted"] == 1 and len(s.rewards) == 1 for s in after)
    assert what != act


# -- failures -------------------------------------------------------------------------------


class Failing:
    """Customers who fail at a certain turn, always or on the first attempt only."""

    identity = Identity("scripted", "failing")

    def __init__(self, at: int, error: type[Exception], *, once: bool = False) -> None:
        self.at, self.error, self.once = at, error, once
        self.started: dict[tuple[str, int], int] = {}
        self.made = 0

    def start(self, scenario: Mapping[str, Any], *, seed: int) -> User:
        self.made += 1
        fails = not self.once or self.made <= len(ROWS)
        return FailingPerson(self.at if fails else 99, self.error)

    async def aclose(self) -> None:
        """Release nothing."""


class FailingPerson:
    def __init__(self, at: int, error: type[Exception]) -> None:
        self.at, self.error, self.turn = at, error, 0

    async def respond(self, request: UserRequest) -> Reply:
        if self.turn == self.at:
            raise self.error("away")
        self.turn += 1
        return Reply(Thought("hidden"), f"order 10{self.turn}")

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Keep nothing."""


@pytest.mark.parametrize("error", [UserError, InfraError])
@pytest.mark.parametrize("at", [0, 1])
def test_failures_become_invalid_samples_never_rewards(at: int, error: type[Exception]) -> None:
    made = collector(Failing(at, error), coach=Spy())
    for sample in collect(made, acts=0.0):
        assert not sample.valid
        assert sample.metrics == {}
        assert sample.noted == ()
        assert (sample.tokens is None) is (at == 0)
    assert made.counts.asked == 0


def test_a_retried_episode_is_noted_once() -> None:
    spy = Spy()
    made = collector(Failing(1, UserError, once=True), coach=spy)
    samples = collect(made)
    assert all(s.valid for s in samples)
    spans = sum(len(s.tokens.spans) for s in samples if s.tokens)
    assert spans >= made.counts.asked == len(spy.turns) > 0
    assert all(t.history[0].content == "order 101" for t in spy.turns)


# -- what the coach is shown ----------------------------------------------------------------


def test_no_coach_is_asked_where_there_is_none() -> None:
    made = collector()
    assert all(s.noted == () for s in collect(made))
    assert made.counts.asked == 0
    assert made.ring.state()["notes"] == []


def test_the_coach_sees_the_past_both_thoughts_and_the_next_words() -> None:
    spy = Spy()
    made = collector(coach=spy)
    samples = collect(made)
    assert made.counts.asked == len(spy.turns) == sum(len(s.noted) for s in samples)
    talks: list[list[CoachTurn]] = []
    for turn in spy.turns:
        if len(turn.history) == 1:
            talks.append([])
        talks[-1].append(turn)
    assert len(talks) == len(samples)
    for talk, sample in zip(talks, samples, strict=True):
        assert sample.tokens is not None
        spans = sample.tokens.spans
        for turn, span in zip(talk, spans, strict=False):
            text = CODEC.decode(sample.tokens.completion_ids[span.start : span.end])
            assert turn.reply == text
            assert turn.history[0].role is Role.USER
            assert turn.thought_before is not None
            assert turn.wish_before["intent"] in turn.thought_before.reveal()
            assert all("i want" not in m.content or m.role is Role.USER for m in turn.history)
        for now, following in itertools.pairwise(talk):
            assert following.history[: len(now.history)] == now.history
            if now.next_utterance:
                assert following.history[-1].content == now.next_utterance
                assert following.thought_before == now.thought_after
    assert len(set(spy.seeds)) == len(spy.seeds)


def test_every_closed_reply_is_noted_where_it_stands() -> None:
    samples = collect(collector(coach=Spy()))
    for sample in samples:
        assert sample.tokens is not None
        spans = {(s.start, s.end, s.header) for s in sample.tokens.spans}
        assert {(t.start, t.end, t.header) for t in sample.noted} <= spans
        # a nonsense line is a step as well; only a reply that executed nothing has no note
        assert len(sample.noted) >= len(spans) - 1


def test_a_reply_cut_by_its_cap_is_not_noted() -> None:
    """Turns cut mid-generation are not noted."""
    samples = collect(collector(coach=Spy(), max_tokens=2))
    cut = closed = 0
    for sample in samples:
        assert sample.tokens is not None
        noted = {t.start for t in sample.noted}
        for span in sample.tokens.spans:
            ended = sample.tokens.completion_ids[span.end - 1] == CODEC.end_id
            assert span.start not in noted or ended
            cut += not ended
            closed += ended
    assert cut > 5
    assert closed > 0


def test_the_notes_of_the_rule_coach_are_those_of_the_moment() -> None:
    spy, real = Spy(), collector(coach=RuleCoach(), debias=False)
    collect(collector(coach=spy))
    samples = collect(real)
    wanted = [tuple(CODEC.note_ids(rule_note(t.wish_before))) for t in spy.turns]
    assert [t.note_ids for s in samples for t in s.noted] == wanted
    assert len(set(wanted)) > 3
    assert all(t.placebo_ids is None for s in samples for t in s.noted)
    counts = real.counts
    assert (counts.asked, counts.written, counts.leaked) == (len(wanted), len(wanted), 0)


def test_counts_are_those_of_the_last_batch() -> None:
    made = collector(coach=Spy())
    collect(made, 0)
    first = made.counts
    samples = collect(made, 1)
    assert made.counts is not first
    assert made.counts.asked == sum(len(s.noted) for s in samples)


def test_at_most_so_many_turns_are_noted() -> None:
    whole = collect(collector(coach=Spy()))
    assert max(len(s.noted) for s in whole) > 2
    samples = collect(collector(coach=Spy(), max_noted=2))
    assert max(len(s.noted) for s in samples) == 2
    assert [s.tokens for s in samples] == [s.tokens for s in whole], "notes steer no rollout"


class Failed:
    """A coach that answers every other time."""

    name = "failed"

    def __init__(self) -> None:
        self.calls = 0

    async def note(self, turn: CoachTurn, *, seed: int) -> CoachNote | None:
        self.calls += 1
        if self.calls % 2:
            raise InfraError("away")
        return CoachNote("note lacks zip", self.name)

    async def aclose(self) -> None:
        """Release nothing."""


def test_a_failing_coach_costs_notes_and_nothing_else() -> None:
    made = collector(coach=Failed())
    samples = collect(made)
    assert all(s.valid for s in samples)
    assert made.counts.failed == (made.counts.asked + 1) // 2
    assert made.counts.written == sum(len(s.noted) for s in samples)


# -- placebos -------------------------------------------------------------------------------


def test_placebos_are_notes_of_other_episodes() -> None:
    made = collector(coach=Spy())
    samples = collect(made)
    noted = [(n, t) for n, s in enumerate(samples) for t in s.noted]
    without = [t for _, t in noted if t.placebo_ids is None]
    assert 8 <= len(without) < len(noted), "the first eight notes have nothing to be compared with"
    owner = {t.note_ids: n for n, t in noted}
    for index, turn in noted:
        if turn.placebo_ids is not None:
            assert turn.placebo_ids != turn.note_ids
            assert owner[turn.placebo_ids] != index
    later = collect(made, 1)
    assert all(t.placebo_ids is not None for s in later for t in s.noted)


def test_the_placebo_arm_has_an_unrelated_note_and_no_control() -> None:
    made, spy = collector(coach=Spy(), arm="placebo"), Spy()
    real = collect(collector(coach=spy))
    samples = collect(made)
    owner = {t.note_ids: n for n, s in enumerate(real) for t in s.noted}
    places = {(n, t.start): t.note_ids for n, s in enumerate(real) for t in s.noted}
    noted = [(n, t) for n, s in enumerate(samples) for t in s.noted]
    assert 0 < len(noted) <= len(places) - 8
    for index, turn in noted:
        assert turn.placebo_ids is None
        assert turn.note_ids != places[index, turn.start]
        assert owner[turn.note_ids] != index


def test_alike_collectors_draw_alike_placebos_after_a_restore() -> None:
    one, two = collector(coach=RuleCoach()), collector(coach=RuleCoach())
    collect(one, 0)
    two.ring.restore(one.ring.state())
    assert collect(one, 1) == collect(two, 1)


def test_samples_hold_no_private_text() -> None:
    for sample in collect(collector(coach=RuleCoach())):
        assert sample.tokens is not None
        ids = [*sample.tokens.prompt_ids, *sample.tokens.completion_ids]
        text = CODEC.decode(ids)
        assert "i have not told" not in text
        assert "note wants" not in text
        assert "note lacks" not in text
