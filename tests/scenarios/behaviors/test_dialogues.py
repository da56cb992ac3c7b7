"""The hand-written dialogues: enough of each kind, and the rule checks give their values."""

from __future__ import annotations

from collections import Counter

import pytest

from mimesim.dialogue.types import Role
from mimesim.scenarios import behaviors
from mimesim.testing.behavior import Dialogue, check_behavior
from tests.support.behaviors import NAMES, Played, cases, dialogues

CHECKED = ("B3", "B4", "B7", "B8", "B9", "B10", "B11", "B12")
KINDS = ("positive", "negative", "neighbor")


@pytest.mark.parametrize("name", NAMES)
def test_there_are_eight_of_every_kind_of_trouble(name: str) -> None:
    played = dialogues(name)
    kinds = Counter(d.expected["kind"] for d in played)
    assert len(played) >= 8
    assert set(kinds) == set(KINDS)
    assert kinds["positive"] >= 2
    assert kinds["negative"] >= 2
    assert kinds["neighbor"] >= 2
    assert len({d.id for d in played}) == len(played)
    assert len({d.turns for d in played}) == len(played)


@pytest.mark.parametrize("name", NAMES)
def test_the_lines_are_what_their_schema_says(name: str) -> None:
    for one in dialogues(name):
        assert one.behavior == (None if name == "neutral" else name)
        said = [m for m in one.turns if m.role is Role.USER]
        assert one.generated[0].role is Role.USER
        assert not one.thoughts or len(one.thoughts) == len(said)
        expected = one.expected
        assert {"realized", "check", "score", "kind", "announced"} <= set(expected)
        if name != "neutral":
            assert expected["realized"] is (expected["kind"] == "positive")
            if expected["kind"] == "neighbor":
                assert expected["neighbor"] in behaviors.get(name).neighbors
        if name not in CHECKED:
            assert expected["score"] is None
        score = expected["score"]
        assert expected["check"] is (None if score is None else score >= 0.5)


def check(name: str, one: Played) -> float | None:
    return behaviors.get(name).check(list(one.generated), one.case, one.params)


@pytest.mark.parametrize("name", CHECKED)
def test_the_rule_check_gives_the_written_score(name: str) -> None:
    found = {one.id: check(name, one) for one in dialogues(name)}
    wanted = {one.id: one.expected["score"] for one in dialogues(name)}
    assert found == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in (*CHECKED, "neutral")])
def test_the_others_have_no_score(name: str) -> None:
    assert not behaviors.get(name).has_check
    assert {check(name, one) for one in dialogues(name)} == {None}


@pytest.mark.parametrize("name", CHECKED)
def test_a_rule_is_wrong_only_where_a_note_says_so(name: str) -> None:
    """Without a note the check agrees with what really happened; no occasion counts as a no."""
    for one in dialogues(name):
        if "note" not in one.expected:
            assert bool(one.expected["check"]) is one.expected["realized"], one.id


@pytest.mark.parametrize("name", ["B8", "B10"])
def test_replayed_turns_do_not_count(name: str) -> None:
    one = next(d for d in dialogues(name) if d.expected.get("note") == "replayed")
    assert check(name, one) == one.expected["score"]
    behavior = behaviors.get(name)
    assert behavior.check(list(one.turns), one.case, one.params) == 0.5, "it matters here"


@pytest.mark.parametrize("name", [n for n in NAMES if n != "neutral"])
def test_the_conformance_suite_takes_the_dialogues(name: str) -> None:
    written = [
        Dialogue(d.id, d.case, d.params, d.generated, d.expected["score"]) for d in dialogues(name)
    ]
    findings = check_behavior(behaviors.get(name), dialogues=written)
    assert [f for f in findings if not f.ok] == []
    assert findings[-1].name == "dialogues"


def test_the_cases_hold_what_their_requests_need() -> None:
    for name, row in cases().items():
        request = next(iter(dialogues("B3"))).case.manual.request(row.subflow)
        assert set(request.required) <= set(row.record), name
