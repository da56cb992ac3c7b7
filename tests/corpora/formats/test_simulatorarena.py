"""SimulatorArena: both upstream files, pictures, ratings; the same as the normalized rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.corpora.base import HumanTurn, Unfit
from mimesim.corpora.formats.simulatorarena import FORMAT

DOCUMENT: dict[str, Any] = {
    "workerId": "w1",
    "user_queries": ["write it short", "warmer"],
    "ai_responses": ["Dear all", "Dearest all"],
    "model": "m-1",
    "document_type": "email",
    "intent": "Email: ask for a day off",
    "bullet_points": ["When is it?", "Why?"],
    "bullet_points_responses": ["next friday after lunch", ""],
    "document_history": ["Dear all"],
    "overall_interaction_rating": 7,
    "overall_document_rating": 8,
    "strength": "fast",
    "weakness": "too formal",
    "why_stop": "good enough",
}
MATH: dict[str, Any] = {
    "workerId": "w2",
    "user_queries": ["", [{"image": "a.png"}], "so it is 4?"],
    "ai_responses": ["Try to factor it.", None, "Yes."],
    "model": "m-2",
    "level": "Level 4",
    "type": "Algebra",
    "math_expertise": "undergrad",
    "why_ask_tutor": "I am stuck",
    "turk_initial_solution": "",
    "turk_solution": "four is the answer to it",
    "overall_rating": 6,
    "problem_1_correctness": "correct",
    "strength_weakness": "patient",
    "why_stop": "done",
}


def test_a_document() -> None:
    (found,) = FORMAT.convert(DOCUMENT, {})
    assert [turn.text for turn in found.turns] == [
        "write it short",
        "Dear all",
        "warmer",
        "Dearest all",
    ]
    assert (found.id, found.goal) == ("", "Email: ask for a day off")
    assert (found.user_key, found.group_keys) == ("w1", ("w1",))
    assert found.hidden["profile"]["background"][0] == {
        "q": "When is it?",
        "a": "next friday after lunch",
    }
    assert (found.outcome["interaction_rating"], found.outcome["document_rating"]) == (7, 8)
    assert FORMAT.info.evaluation_only


def test_mathematics() -> None:
    (found,) = FORMAT.convert(MATH, {})
    assert found.turns == (
        HumanTurn("user", ""),
        HumanTurn("agent", "Try to factor it."),
        HumanTurn("user", "so it is 4?"),
        HumanTurn("agent", "Yes."),
    )
    assert found.left_out == {"messages_left_out": 2}
    assert found.hidden["profile"]["why_ask_tutor"] == "I am stuck"
    assert "four is the answer" not in repr(found)
    assert found.outcome == {
        "interaction_rating": 6,
        "problem_1_correctness": "correct",
        "feedback": "patient",
        "why_stop": "done",
    }


def test_damage_has_a_reason() -> None:
    with pytest.raises(Unfit, match="ai_responses, model"):
        list(FORMAT.convert({"user_queries": []}, {}))
    with pytest.raises(Unfit, match="no lists"):
        list(FORMAT.convert({**MATH, "user_queries": "x"}, {}))
    assert FORMAT.claims(MATH)
    assert not FORMAT.claims({"turns": []})


def test_genuine_files_equal_the_normalized_rows(test_data: Path) -> None:
    folder = test_data / "simulatorarena"
    names = (
        "math_tutoring_annotations_redacted_for_benchmarking.json",
        "document_creation_annotations_for_benchmarking.json",
    )
    entries = [entry for name in names for entry in jsonio.read_json(folder / name)]
    upstream = [one for entry in entries for one in FORMAT.convert(entry, {})]
    lines = jsonio.read_jsonl(folder / "conversations.jsonl")
    normal = [one for line in lines for one in FORMAT.convert(line.value, {})]
    assert len(upstream) == len(normal) == 101
    assert sum(turn.role == "user" for one in normal for turn in one.turns) == 912
    assert sum(turn.role == "agent" for one in normal for turn in one.turns) == 911
    for left, right in zip(upstream, normal, strict=True):
        assert left.turns == right.turns
        assert (left.goal, left.outcome, left.hidden) == (right.goal, right.outcome, right.hidden)
    assert sum(one.left_out.get("messages_left_out", 0) for one in upstream) == 3
