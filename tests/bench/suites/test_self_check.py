"""The suite `self-check`: every fault is found once, and nothing where nothing is."""

from __future__ import annotations

import pytest

from mimesim.bench.suites.base import Inputs
from mimesim.bench.suites.self_check import KINDS, SUITE, checked
from mimesim.bench.suites.sessions import session_of
from mimesim.dialogue.episode import Outcome
from mimesim.dialogue.stop import Party, Status, Stop, StopReason
from tests.judges.test_agree import PLAIN, episode
from tests.support.sessions import session, set_of

FINE = ("hi, my parcel is late", "Which number?", "it is 4711", "It comes today.", "great, bye")


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("role_flips", ("hello", "Hi.", "How can I help you today?")),
        ("out_of_part", ("hello", "Hi.", "As an AI language model I cannot play this.")),
        ("machinery", ("hello", "Hi.", "user: my parcel is late")),
        ("repeats", ("my parcel is late", "Which one?", "my parcel is late")),
        ("too_long", ("word " * 500, "Hm.")),
        ("loops", ("thanks", "You are welcome.", "thank you", "You are welcome.")),
    ],
)
def test_a_fault_is_found(metric: str, said: tuple[str, ...]) -> None:
    assert checked(session("a", *said)).faults[metric] == 1
    assert not any(checked(session("a", *FINE)).faults.values())


def test_what_was_withheld_and_an_early_end_are_seen_with_the_private_side() -> None:
    leak = episode("leak", ("i want boots, order 5512093381", "Fine."), None)
    left = episode(
        "left",
        ("i want boots", "What is your order number?"),
        None,
        outcome=Outcome(Status.COMPLETED, False, 0.0),
    )
    assert checked(session_of(left)).faults["early_stops"] == 1
    assert left.stop == Stop(StopReason.USER_STOP, Party.USER)
    found = SUITE.score(Inputs(set_of(session_of(leak), session_of(left), simulated=True)))
    assert not any("private" in text for text in found.warnings)
    public = SUITE.score(Inputs(set_of(session("a", *FINE))))
    assert any("private" in text for text in public.warnings)


def test_rates_are_per_hundred_turns_and_nothing_found_is_not_proof() -> None:
    bad = session("a", "hello", "Hi.", "How can I help you today?")
    score = SUITE.score(Inputs(set_of(bad, session("b", *FINE), session("c", *FINE)), draws=200))
    flips = score.metric("role_flips").value
    assert flips.value == pytest.approx(100 / 8)
    assert flips.n == 8
    leaks = score.metric("leaks").value
    assert leaks.value == 0
    assert leaks.high > 0
    assert score.by_key["faults"].values == {"a": 50.0, "b": 0.0, "c": 0.0}
    assert {one.name for one in score.metrics} >= set(KINDS)


def test_a_user_that_failed_is_a_result() -> None:
    some = set_of(session("a", *FINE), simulated=True, left_out={"user_failure": 1})
    assert SUITE.score(Inputs(some)).metric("failed").value.value == 50


def test_people_are_the_floor_of_false_alarms() -> None:
    people = set_of(session("h", *FINE), name="logs")
    score = SUITE.score(Inputs(set_of(session("a", *FINE)), people))
    assert {one.name for one in score.floors} == {"people (logs)"}


def test_guards_of_the_run_count_as_held_back() -> None:
    drawn = episode("a", PLAIN, None, guards=({"guard": "role_flip"}, {"guard": "repeat"}))
    score = SUITE.score(Inputs(set_of(session_of(drawn), simulated=True), draws=20))
    assert score.metric("held_back").value.value == pytest.approx(200 / 3)
