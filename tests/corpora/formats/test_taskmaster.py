"""Taskmaster: both shapes, speakers in either case, groups by instruction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim.corpora.formats.taskmaster import FORMAT
from tests.support.sources import read, spoken, write


def row(number: str, user: str = "USER", **more: Any) -> dict[str, Any]:
    agent = "ASSISTANT" if user == "USER" else "assistant"
    return {
        "conversation_id": f"dlg-{number}",
        "utterances": [
            {"index": 0, "speaker": user, "text": "one tea please", "segments": []},
            {"index": 1, "speaker": agent, "text": "With milk?"},
        ],
        **more,
    }


def test_both_shapes(tmp_path: Path) -> None:
    instructed = {
        "vertical": "Coffee",
        "scenario": "odd order",
        "instructions": "Order {{LIST a}}.",
    }
    rows = [row("1", instruction_id="tea-2"), row("2", "user", **instructed)]
    one, two = read(FORMAT, write(tmp_path / "data_00.json", rows)).dialogues
    assert (one.id, two.id) == ("taskmaster/dlg-1", "taskmaster/dlg-2")
    assert spoken(one) == spoken(two) == [("user", "one tea please"), ("agent", "With milk?")]
    assert one.group_keys == ("tea-2",)
    assert two.group_keys == ("Order {{LIST a}}.",)
    assert two.hidden == instructed


def test_a_scenario_groups_where_there_are_no_instructions(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", [row("1", "user", scenario="odd order", instructions="")])
    assert read(FORMAT, path).dialogues[0].group_keys == ("odd order",)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"conversation_id": "x", "utterances": "text"}, "no_conversation"),
        ({"conversation_id": "x", "utterances": [{"speaker": "API", "text": "x"}]}, "unknown_role"),
        ({"conversation_id": "x"}, "missing_keys"),
        ("conversationId  turnNumber", "missing_keys"),
    ],
)
def test_damage_is_named(value: Any, reason: str, tmp_path: Path) -> None:
    assert dict(read(FORMAT, write(tmp_path / "a.json", [value])).reasons) == {reason: 1}


@pytest.mark.parametrize(("number", "user", "agent"), [(1, 59, 59), (2, 66, 83), (3, 45, 45)])
def test_the_genuine_samples(number: int, user: int, agent: int, test_data: Path) -> None:
    name = f"Taskmaster{number}_original_examples.json"
    found = read(FORMAT, test_data / "dialogstudio_samples" / name)
    assert len(found.dialogues) == 5
    assert (found.turns("user"), found.turns("agent")) == (user, agent)
    assert not found.rejects


def test_the_genuine_rows(test_data: Path) -> None:
    found = read(FORMAT, test_data / "taskmaster4" / "dialogues.jsonl")
    assert len(found.dialogues) == 1500
    assert (found.turns("user"), found.turns("agent")) == (2728, 2693)
    assert round(found.words(), 1) == 6.9
    assert len({key for d in found.dialogues for key in d.group_keys}) == 28
    assert not found.rejects
