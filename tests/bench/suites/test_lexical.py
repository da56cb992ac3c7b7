"""The suite `lexical`."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import pytest

from mimesim import stats
from mimesim.bench.suites.base import Inputs
from mimesim.bench.suites.goldens.lexical import CHECKS
from mimesim.bench.suites.lexical import MEASURES, SUITE
from mimesim.errors import DataError
from tests.support.sessions import session, set_of

DATA = os.environ.get("MIMESIM_TEST_DATA")
PEOPLE = set_of(
    session("h1", "hi there, my order is late", "which one", "the blue one i think"),
    session("h2", "can you help me book a table for four", "when", "tonight around eight please"),
    session("h3", "where is it", "where is what", "my parcel, it should be here by now, no?"),
    session("h4", "good morning i would like to return these shoes", "why", "too small"),
    name="people",
)
DRONE = set_of(
    session("s1", "I want help. I want help. I want help.", "yes", "I want help. I want help."),
    session("s2", "I want help. I want help.", "yes", "I want help. I want help. I want help."),
    simulated=True,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.name)
def test_goldens(check) -> None:
    outcome = check.outcome(Path(DATA) if DATA else None)
    if outcome.verdict == "skipped":
        pytest.skip(outcome.reason)
    assert outcome.verdict == "passed", outcome


def test_people_against_themselves_are_at_zero() -> None:
    score = SUITE.score(Inputs(PEOPLE, PEOPLE, draws=50))
    for name in MEASURES:
        assert score.metric(f"z_{name}").value.value == pytest.approx(0, abs=1e-9)


def test_z_is_the_mean_distance_in_sample_deviations() -> None:
    score = SUITE.score(Inputs(DRONE, PEOPLE, draws=50))
    human = [stats.mattr(stats.words(" ".join(one.said))) for one in PEOPLE.sessions]
    ours = [stats.mattr(stats.words(" ".join(one.said))) for one in DRONE.sessions]
    expected = mean((one - mean(human)) / stdev(human) for one in ours)
    found = score.metric("z_mattr")
    assert found.value.value == pytest.approx(expected)
    assert found.value.value < 0, "who repeats themselves is poorer in words"
    floors = {(one.metric, one.name): one.value.value for one in score.floors}
    assert floors["mattr", "people (people)"] == pytest.approx(mean(human))
    assert ("z_mattr", "half of the people") in floors


def test_people_who_do_not_differ_give_zero() -> None:
    same = set_of(session("a", "one two three"), session("b", "four five six"))
    score = SUITE.score(Inputs(DRONE, same, draws=20))
    assert score.metric("z_turns").value.value == 0


def test_a_wordless_conversation_is_left_out_and_in_compat_a_zero() -> None:
    mute = set_of(*DRONE.sessions, session("s3", "...", "yes", "?!"))
    fixed = SUITE.score(Inputs(mute, PEOPLE, draws=20))
    compat = SUITE.score(Inputs(mute, PEOPLE, mode="compat", draws=20))
    assert fixed.excluded == {"no_words": 1}
    assert fixed.metric("mattr").value.n == 2
    assert compat.metric("mattr").value.n == 3
    assert compat.metric("z_mattr").value.value < fixed.metric("z_mattr").value.value
    assert "Student" in compat.metric("z_mattr").value.method


def test_conversations_of_one_person_are_resampled_together() -> None:
    three = set_of(*(replace(one, person="p") for one in PEOPLE.sessions))
    found = SUITE.score(Inputs(three, PEOPLE, draws=20)).metric("mattr").value
    assert (found.low, found.high) == (None, None)


def test_first_turn_diversity_has_a_jackknife_interval() -> None:
    found = SUITE.score(Inputs(PEOPLE, PEOPLE, draws=20)).metric("first_turn_diversity").value
    assert found.low is not None
    assert found.low < found.value < found.high
    assert "jackknife" in found.method
    alone = set_of(PEOPLE.sessions[0])
    lonely = SUITE.score(Inputs(alone, PEOPLE, draws=20)).metric("first_turn_diversity")
    assert lonely.value.value is None


def test_it_runs_without_people_and_says_what_it_compared_with() -> None:
    score = SUITE.score(Inputs(DRONE, draws=20))
    assert any("invented" in text for text in score.warnings)
    assert all(math.isfinite(one.value.value or 0) for one in score.metrics)


def test_unequal_amounts_of_text_are_told() -> None:
    score = SUITE.score(Inputs(set_of(PEOPLE.sessions[0]), PEOPLE, draws=20))
    assert any("pooled distinct-n falls" in text for text in score.warnings)
    assert not SUITE.score(Inputs(PEOPLE, PEOPLE, draws=20)).warnings


def test_nobody_to_compare_with_is_one_line() -> None:
    with pytest.raises(DataError, match="not enough conversations"):
        SUITE.score(Inputs(DRONE, set_of(PEOPLE.sessions[0])))
    with pytest.raises(DataError, match="not enough conversations"):
        SUITE.score(Inputs(set_of(session("x", "!")), PEOPLE))
