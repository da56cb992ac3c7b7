"""PersuasionForGood: rows joined by dialogue, the survey beside them, demographics dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim.corpora.formats.persuasion import FORMAT
from tests.support.sources import read, spoken

DIALOG = """,Unit,Turn,B4,B2
0,"Hello, do you know Goats for All?",0,0,talk_1
1,no,0,1,talk_1
2,Would you give?,1,0,talk_1
3,"no, not now",1,1,talk_1
4,Hi,0,0,talk_2
5,Hi there,0,1,talk_2
"""
INFO = """B2,B3,B4,B6,B7,extrovert.x,agreeable.x,conscientious.x,neurotic.x,open.x,age.x,religion.x
talk_1,person_9,0,0.5,2,1.0,1.0,1.0,1.0,1.0,44,Other
talk_1,person_4,1,0.0,2,3.2,4.0,3.8,2.0,3.2,31,Other
talk_2,person_4,1,1.0,1,,,,,,31,Other
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "full_dialog.csv").write_text(DIALOG, "utf-8")
    (tmp_path / "full_info.csv").write_text(INFO, "utf-8")
    (tmp_path / "train0.csv").write_text("other,columns\n1,2\n", "utf-8")
    return tmp_path


def test_rows_and_survey_become_dialogues(folder: Path) -> None:
    found = read(FORMAT, folder)
    one, two = found.dialogues
    assert found.rejects == []
    assert one.id == "p4g/talk_1"
    assert spoken(one) == [
        ("agent", "Hello, do you know Goats for All?"),
        ("user", "no"),
        ("agent", "Would you give?"),
        ("user", "no, not now"),
    ]
    assert one.outcome == {
        "persuadee_B6": "0.0",
        "persuader_B6": "0.5",
        "turns_B7": "2",
        "donated": False,
    }
    assert one.hidden["persuadee_big5"]["agreeable"] == "4.0"
    assert two.outcome["donated"] is True
    assert one.user_key == two.user_key == "p4g/person_4"
    assert one.group_keys == two.group_keys


def test_demographics_are_dropped(folder: Path) -> None:
    text = str(read(FORMAT, folder).dialogues)
    assert "31" not in text
    assert "religion" not in text


def test_the_survey_is_optional(folder: Path) -> None:
    found = read(FORMAT, folder / "full_dialog.csv")
    assert [(d.id, d.user_key, d.outcome) for d in found.dialogues] == [
        ("p4g/talk_1", "", {}),
        ("p4g/talk_2", "", {}),
    ]


def test_another_side_and_another_table_are_named(tmp_path: Path) -> None:
    path = tmp_path / "full_dialog.csv"
    path.write_text(",Unit,Turn,B4,B2\n0,hi,0,7,talk_1\n", "utf-8")
    assert read(FORMAT, path).rejects == [(f"{path}:2", "unknown_role")]
    path.write_text("a,b\n1,2\n", "utf-8")
    assert read(FORMAT, path).rejects == [(f"{path}:2", "missing_keys")]


def test_the_genuine_rows(test_data: Path) -> None:
    found = read(FORMAT, test_data / "persuasion_for_good")
    assert len(found.dialogues) == 1017
    assert (found.turns("user"), found.turns("agent")) == (10_332, 10_600)
    assert round(found.words(), 1) == 13.5
    assert all(d.turns[0].role == "agent" for d in found.dialogues)
    assert sum(d.outcome.get("donated", False) for d in found.dialogues) == 545
    empty = [d for d in found.dialogues if not any(d.hidden["persuadee_big5"].values())]
    assert len(empty) == 5
    assert not found.rejects
