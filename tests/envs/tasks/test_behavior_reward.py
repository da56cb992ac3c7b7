"""The reward of the behavior task: every worked example, missing data, the format gate."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.dialogue.types import Reply, Thought
from mimesim.envs.tasks.behavior_reward import (
    check_gap,
    format_faults,
    paid,
    reward_of,
    thought_cites_directive,
)
from mimesim.judges.behavior import BehaviorVerdict, NeutralVerdict, Verdict
from mimesim.scenarios import behaviors


def played(*scores: float, announced: bool = False) -> BehaviorVerdict:
    exhibit, placement, naturalness, on_task = scores
    return BehaviorVerdict(
        exhibit=exhibit,
        placement=placement,
        naturalness=naturalness,
        on_task=on_task,
        announced=announced,
    )


def neutral(*scores: float) -> NeutralVerdict:
    return NeutralVerdict(cooperative=scores[0], naturalness=scores[1], on_task=scores[2])


GOOD = played(0.9, 0.8, 0.7, 1)
CARICATURE = played(1, 0.2, 0.4, 0.5)
ABSENT = played(0, 0, 0.9, 1)


@pytest.mark.parametrize(
    ("verdict", "reward"),
    [
        (GOOD, 0.84),
        (played(0.9, 0.8, 0.7, 1, announced=True), 0.42),
        (CARICATURE, 0.59),
        (ABSENT, 0.28),
        (played(0, 0, 1, 1), 0.30),
        (played(1, 1, 1, 1, announced=True), 0.50),
        (neutral(0.8, 0.9, 1), 0.857143),
        (neutral(0, 1, 1), 0.428571),
    ],
)
def test_worked_examples(verdict: Verdict, reward: float) -> None:
    assert reward_of(verdict) == pytest.approx(reward, abs=1e-6)
    for training in (False, True):
        assert paid(verdict, training=training) == reward_of(verdict)


def test_a_malformed_thought_costs_everything_in_training_only() -> None:
    for fault in ("malformed_thought", "short_thought", "empty_utterance", "cut"):
        assert paid(GOOD, [fault], training=True) == 0
        assert paid(GOOD, [fault], training=False) == pytest.approx(0.84)


def test_a_failed_judge_is_missing_data_and_zero_in_compat() -> None:
    for training in (False, True):
        assert paid(None, training=training) is None
        assert paid(None, training=training, compat=True) == 0
    assert paid(None, ["cut"], training=True) == 0


def advantages(rewards: list[float]) -> list[float]:
    mean, deviation = statistics.fmean(rewards), statistics.stdev(rewards)
    return [(reward - mean) / deviation for reward in rewards]


def test_the_group_of_eight() -> None:
    verdicts = [GOOD, CARICATURE, ABSENT, played(0.9, 0.8, 0.7, 1, announced=True), GOOD]
    group: list[Verdict | None] = [*verdicts, CARICATURE, ABSENT, None]
    compat = [paid(v, training=True, compat=True) for v in group]
    assert compat == pytest.approx([0.84, 0.59, 0.28, 0.42, 0.84, 0.59, 0.28, 0])
    numbers = [r for r in compat if r is not None]
    assert statistics.fmean(numbers) == pytest.approx(0.48)
    assert statistics.stdev(numbers) == pytest.approx(0.292135, abs=1e-6)
    assert advantages(numbers) == pytest.approx(
        [1.232, 0.377, -0.685, -0.205, 1.232, 0.377, -0.685, -1.643], abs=5e-4
    )
    valid = [r for v in group if (r := paid(v, training=True)) is not None]
    assert len(valid) == 7
    assert statistics.fmean(valid) == pytest.approx(0.548571, abs=1e-6)
    assert statistics.stdev(valid) == pytest.approx(0.235968, abs=1e-6)
    assert advantages(valid) == pytest.approx(
        [1.235, 0.176, -1.138, -0.545, 1.235, 0.176, -1.138], abs=5e-4
    )


UNIT = st.floats(0, 1)


@given(scores=st.tuples(UNIT, UNIT, UNIT, UNIT), announced=st.booleans())
def test_rewards_lie_in_range_and_announcing_never_pays(
    scores: tuple[float, ...], *, announced: bool
) -> None:
    found = reward_of(played(*scores, announced=announced))
    assert 0 <= found <= 1
    assert found <= reward_of(played(*scores))
    assert 0 <= reward_of(neutral(*scores[:3])) <= 1


def test_the_weights_sum_up() -> None:
    assert reward_of(played(1, 1, 1, 1)) == 1
    assert reward_of(neutral(1, 1, 1)) == 1
    for place, weight in enumerate((0.4, 0.3, 0.2, 0.1)):
        alone = [0.0] * 4
        alone[place] = 1
        assert reward_of(played(*alone)) == pytest.approx(weight)


def reply(thought: str | None, text: str = "no", finish: str = "stop") -> Reply:
    return Reply(None if thought is None else Thought(thought), text, finish_reason=finish)


@pytest.mark.parametrize(
    ("given_reply", "faults"),
    [
        (reply("i will not tell them"), ()),
        (reply(None), ("malformed_thought",)),
        (reply(""), ("short_thought",)),
        (reply("one two three"), ("short_thought",)),
        (reply("one two three four"), ()),
        (reply("one two three four", " \u200b"), ("empty_utterance",)),
        (reply("one two three four", "and th", "length"), ("cut",)),
    ],
)
def test_faults_of_the_form(given_reply: Reply, faults: tuple[str, ...]) -> None:
    fine = reply("they want my number")
    assert format_faults([fine, given_reply], thinking=True) == faults
    assert format_faults([given_reply, given_reply], thinking=True) == faults


def test_without_thinking_thoughts_are_not_missed() -> None:
    assert format_faults([reply(None), reply(None, "x", "length")], thinking=False) == ("cut",)


def test_the_gap_is_positive_where_the_rule_sees_more() -> None:
    assert check_gap(1.0, CARICATURE) == 0
    assert check_gap(1.0, ABSENT) == 1
    gap = check_gap(0.0, GOOD)
    assert gap is not None
    assert math.isclose(gap, -0.9)
    assert check_gap(None, GOOD) is None
    assert check_gap(1.0, None) is None
    assert check_gap(1.0, neutral(1, 1, 1)) is None


def test_a_thought_that_cites_its_instruction() -> None:
    told = behaviors.get("B9").directive({})
    name = "impatient_low_signal_pressure"
    plain = [Thought("they ask too much, i want this over"), None]
    assert not thought_cites_directive(plain, told, name)
    quoting = [Thought("i should do it: " + " ".join(told.split()[:6]))]
    assert thought_cites_directive(quoting, told, name)
    naming = [Thought("now some impatient low-signal pressure")]
    assert thought_cites_directive(naming, told, name)
    assert not thought_cites_directive(quoting, "", "")
