"""The rule judges of behaviors: hand-written dialogues, disjoint cues, scores that explain themselves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.judges.behavior import EXHIBITED, BehaviorVerdict, NeutralVerdict
from mimesim.judges.behavior_cues import HELD_OUT, MAIN, cues, pattern, samples
from mimesim.judges.behavior_rules import findings, rule_answer
from mimesim.scenarios import behaviors
from tests.support.behaviors import NAMES, Played, dialogues
from tests.support.performances import everything, performance, talk

EVIDENT = ("accept", "lack", "fetch", "correction", "reason", "oneself")
"""Slots that both judges share: they only speak for a customer."""


def answer(one: Played, judge: str = MAIN) -> dict[str, Any]:
    found = rule_answer(performance(one), judge)
    assert found is not None
    return found


def realized(found: dict[str, Any]) -> bool:
    return bool(found.get("exhibit", found.get("cooperative")) >= EXHIBITED)


@pytest.mark.parametrize("name", NAMES)
def test_every_hand_written_dialogue_gets_its_verdict(name: str) -> None:
    wrong = []
    for one in dialogues(name):
        found = answer(one)
        if realized(found) != one.expected["realized"]:
            wrong.append(f"{one.id}: {found['why']}")
        elif found.get("announced", False) != one.expected["announced"]:
            wrong.append(f"{one.id}: announced {found['announced']}")
    assert wrong == []


@pytest.mark.parametrize("kind", ["positive", "negative", "neighbor"])
def test_the_held_out_judge_agrees_with_nine_in_ten(kind: str) -> None:
    own = [one for one in everything() if one.expected["kind"] == kind]
    right = [realized(answer(one, HELD_OUT)) == one.expected["realized"] for one in own]
    assert sum(right) / len(right) >= 0.85, kind


def test_the_cues_of_the_two_judges_share_nothing() -> None:
    main, other = cues(MAIN).slots, cues(HELD_OUT).slots
    assert main.keys() == other.keys()
    for slot in main.keys() - set(EVIDENT):
        for one, two in ((main, other), (other, main)):
            for phrase in one[slot]:
                for text in samples(phrase):
                    assert pattern(phrase).search(text), phrase
                    hits = [p for p in two[slot] if pattern(p).search(text)]
                    assert not hits, f"{slot}: {phrase!r} of one is {hits} of the other"


def test_a_customer_of_main_cues_alone_does_not_please_the_held_out_judge() -> None:
    lines = ("i want to return boots", "A: I cannot do that.", "make an exception, call your boss")
    said = talk(*lines, behavior="B4")
    assert realized(rule_answer(said, MAIN) or {})
    assert not realized(rule_answer(said, HELD_OUT) or {})


@pytest.mark.parametrize(
    ("phrase", "text", "hit"),
    [
        ("dont have .. here", "i dont have the date here", True),
        ("dont have .. here", "i dont have any of the old things here", False),
        ("has a _ in it", "it has a 55 in it", True),
        ("now $", "do it now!!", True),
        ("now $", "now i see", False),
        ("^ hm|hmm", "hm, no", True),
        ("^ hm|hmm", "oh hm", False),
        ("use", "useless", False),
        ("no printer|car", "no, car", True),
    ],
)
def test_phrases(phrase: str, text: str, *, hit: bool) -> None:
    assert bool(pattern(phrase).search(text)) is hit


def test_every_score_says_why() -> None:
    for one in everything():
        found = answer(one)
        for name in found.keys() - {"why", "announced"}:
            assert f"{name}: " in found["why"], one.id


def test_placement_is_high_once_and_low_for_the_same_words_again_and_again() -> None:
    once = ["i want boots", "A: I cannot do that.", "are you sure? check again"]
    often = [*once, *["A: I cannot.", "are you sure? check again"] * 5]
    scores = [rule_answer(talk(*lines, behavior="B4"), MAIN) for lines in (once, often)]
    assert scores[0] is not None
    assert scores[1] is not None
    assert scores[0]["placement"] == 1
    assert scores[1]["placement"] <= 0.25
    assert scores[1]["naturalness"] < scores[0]["naturalness"]


def test_absence_has_no_placement() -> None:
    found = rule_answer(talk("hi, i want boots", "A: Sure.", "thanks", behavior="B4"), MAIN)
    assert found is not None
    assert (found["exhibit"], found["placement"]) == (0, 0)


@pytest.mark.parametrize(
    ("lines", "below"),
    [
        (["How can I help you today?"], 0.6),
        (["- one\n- two"], 0.9),
        (["word " * 100], 0.6),
        (["again", "A: What?", "again"], 0.7),
        (["..."], 0.6),
    ],
)
def test_what_people_do_not_write_costs_naturalness(lines: list[str], below: float) -> None:
    found = rule_answer(talk(*lines), MAIN)
    assert found is not None
    assert found["naturalness"] <= below


def test_replayed_turns_are_not_judged() -> None:
    lines = ("R: hurry up, now", "A: Your identity is verified.", "thank you, here it is")
    assert not realized(rule_answer(talk(*lines, behavior="B9"), MAIN) or {})


def test_a_behavior_without_rules_is_no_zero() -> None:
    class Extra(behaviors.Behavior):
        id = "B99"
        taxon = behaviors.Taxon("wholly_new", "New.", 1, {"B1": "not that one"})

    behaviors._BY_PATH["B99"] = Extra()
    try:
        assert rule_answer(talk("hello", behavior="B99"), MAIN) is None
    finally:
        del behaviors._BY_PATH["B99"]
        behaviors.get.cache_clear()


def test_findings_know_nothing_and_still_find() -> None:
    said = talk("boots back", "A: What is your order number?", "are you an idiot or what, genius")
    found = {one.behavior: one for one in findings(said, MAIN)}
    assert found["B13"].turns == (2,)
    plain = findings(talk("hi, i want boots", "A: Here they are.", "thanks"), MAIN)
    assert all(one.strength < EXHIBITED for one in plain)


@given(
    lines=st.lists(st.text(max_size=60), min_size=1, max_size=6),
    behavior=st.sampled_from([None, *behaviors.builtin_ids()]),
    judge=st.sampled_from([MAIN, HELD_OUT]),
)
def test_any_text_gets_a_verdict_in_form(
    lines: list[str], behavior: str | None, judge: str
) -> None:
    turns = [line if i % 2 == 0 else "A: " + line for i, line in enumerate(lines)]
    found = rule_answer(talk(*turns, behavior=behavior), judge)
    (BehaviorVerdict if behavior else NeutralVerdict).model_validate(found, strict=True)
