"""CaSiNo: both sides learnt, deals as actions, the source's own split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim.corpora.formats.casino import FORMAT
from tests.support.sources import read, spoken, write


def person(high: str, low: str, satisfaction: str) -> dict[str, Any]:
    return {
        "value2issue": {"High": high, "Medium": "Food", "Low": low},
        "value2reason": {"High": "my goat is thirsty", "Medium": "we hike", "Low": ""},
        "outcomes": {
            "points_scored": 18,
            "satisfaction": satisfaction,
            "opponent_likeness": "Like",
        },
        "demographics": {"age": 31, "gender": "female"},
        "personality": {"svo": "prosocial", "big-five": {"extraversion": 4.0}},
    }


def row(number: int, **changes: Any) -> dict[str, Any]:
    offer = {"issue2youget": {"Water": "3"}, "issue2theyget": {"Water": "0"}}
    value = {
        "dialogue_id": number,
        "chat_logs": [
            {"text": "hi, ready?", "task_data": {}, "id": "mturk_agent_2"},
            {"text": "yes, i need water", "task_data": {}, "id": "mturk_agent_1"},
            {"text": "Submit-Deal", "task_data": offer, "id": "mturk_agent_2"},
            {"text": "Accept-Deal", "task_data": {"data": "accept_deal"}, "id": "mturk_agent_1"},
        ],
        "participant_info": {
            "mturk_agent_1": person("Water", "Firewood", "Slightly satisfied"),
            "mturk_agent_2": person("Firewood", "Water", "Undecided"),
        },
        "annotations": [["hi, ready?", "small-talk"]],
    }
    return {**value, **changes}


def test_both_sides_are_learnt_with_their_own_secrets(tmp_path: Path) -> None:
    one, two = read(FORMAT, write(tmp_path / "casino_valid.json", [row(3)])).dialogues
    assert (one.id, two.id) == ("casino/valid/3/1", "casino/valid/3/2")
    assert one.group_keys == two.group_keys == ("casino/valid/3",)
    assert one.split == two.split == "validation"
    assert spoken(one) == [("agent", "hi, ready?"), ("user", "yes, i need water")]
    assert spoken(two) == [("user", "hi, ready?"), ("agent", "yes, i need water")]
    assert one.goal == "High: Water (my goat is thirsty)\nMedium: Food (we hike)\nLow: Firewood"
    assert two.goal.startswith("High: Firewood")
    assert one.outcome["satisfaction"] == "Slightly satisfied"
    assert two.outcome["satisfaction"] == "Undecided"
    assert one.hidden["partner"]["value2issue"]["High"] == "Firewood"
    assert "demographics" not in str(one.hidden) + str(two.hidden)


def test_deals_are_actions_of_their_side(tmp_path: Path) -> None:
    one, two = read(FORMAT, write(tmp_path / "casino_test.json", [row(3)])).dialogues
    assert [(deal["role"], deal["text"]) for deal in one.outcome["deals"]] == [
        ("agent", "Submit-Deal"),
        ("user", "Accept-Deal"),
    ]
    assert [deal["role"] for deal in two.outcome["deals"]] == ["user", "agent"]


def test_the_file_of_all_has_no_split_and_is_not_read_beside_the_parts(tmp_path: Path) -> None:
    whole = write(tmp_path / "casino.json", [row(3)])
    write(tmp_path / "split" / "casino_train.json", [row(3)])
    assert {(d.id, d.split) for d in read(FORMAT, whole).dialogues} == {
        ("casino/3/1", ""),
        ("casino/3/2", ""),
    }
    assert {d.split for d in read(FORMAT, tmp_path).dialogues} == {"train"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"chat_logs": None}, "no_conversation"),
        ({"chat_logs": [{"text": "hi", "id": "mturk_agent_3"}]}, "unknown_role"),
        ({"chat_logs": [{"text": "hi"}]}, "missing_role"),
    ],
)
def test_damage_is_named(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    assert dict(read(FORMAT, write(tmp_path / "a.json", [row(1, **changes)])).reasons) == {
        reason: 1
    }


def test_the_genuine_rows(test_data: Path) -> None:
    found = read(FORMAT, test_data / "casino")
    ones = [d for d in found.dialogues if d.id.endswith("/1")]
    assert len(found.dialogues) == 2 * len(ones) == 2060
    deals = [deal for d in ones for deal in d.outcome.get("deals", ())]
    assert len(deals) == 1181 + 1005 + 167 + 25
    sides = {
        role: sum(t.role == role for d in ones for t in d.turns)
        + sum(deal["role"] == role for deal in deals)
        for role in ("user", "agent")
    }
    assert sides == {"user": 7137, "agent": 7160}
    assert [sum(d.split == part for d in ones) for part in ("train", "validation", "test")] == [
        900,
        30,
        100,
    ]
    assert sum(d.turns[0].role == "agent" for d in ones) == 526
    satisfied = [d.outcome["satisfaction"] for d in ones]
    assert satisfied.count("Extremely satisfied") == 486
    assert not found.rejects
