"""MultiWOZ: logs by name, framed turns, unified turns, archives and lists of parts."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.corpora.formats import sgd
from mimesim.corpora.formats.multiwoz import FORMAT
from tests.support.sources import read, spoken, write

SENTENCES = [
    "You want a <span class='emphasis'>cheap</span> inn",
    "Book it for <span class='emphasis'>2 people</span> &amp; a dog.",
]
PLAIN = "You want a cheap inn. Book it for 2 people & a dog."
TALK = [("user", "i need a cheap inn ."), ("agent", "for how many ?")]


def logged(message: Any = None) -> dict[str, Any]:
    return {
        "goal": {
            "message": SENTENCES if message is None else message,
            "topic": {"taxi": False},
            "inn": {"info": {"price": "cheap"}, "fail_info": {}, "book": {"people": "2"}},
            "taxi": {},
        },
        "log": [
            {"text": text, "metadata": {}, "dialog_act": {}, "span_info": []} for _, text in TALK
        ],
    }


def framed(name: str) -> dict[str, Any]:
    speakers = {"user": "USER", "agent": "SYSTEM"}
    return {
        "dialogue_id": name,
        "services": ["hotel"],
        "turns": [
            {"turn_id": str(n), "speaker": speakers[role], "utterance": text, "frames": []}
            for n, (role, text) in enumerate(TALK)
        ],
    }


def unified(name: str, **changes: Any) -> dict[str, Any]:
    speakers = {"user": "user", "agent": "system"}
    value = {
        "dataset": "multiwoz21",
        "data_split": "validation",
        "dialogue_id": "multiwoz21-validation-0",
        "original_id": f"{name}.json",
        "domains": ["hotel"],
        "goal": {
            "description": " ".join((SENTENCES[0] + ".", SENTENCES[1])),
            "inform": {"hotel": {"price range": "cheap"}},
            "request": {"hotel": {}},
        },
        "turns": [
            {"speaker": speakers[role], "utterance": text, "utt_idx": n, "dialogue_acts": {}}
            for n, (role, text) in enumerate(TALK)
        ],
    }
    return {**value, **changes}


@pytest.mark.parametrize("message", [SENTENCES, " ".join((SENTENCES[0] + ".", SENTENCES[1]))])
def test_logs_and_their_lists_of_parts(message: Any, tmp_path: Path) -> None:
    names = ("MUL1", "MUL2", "SNG3")
    write(tmp_path / "data.json", {f"{name}.json": logged(message) for name in names})
    write(tmp_path / "ontology.json", {"hotel": ["cheap"]})
    (tmp_path / "valListFile.json").write_text("MUL2.json\n", "utf-8")
    (tmp_path / "testListFile.txt").write_text("SNG3.json\n", "utf-8")
    found = read(FORMAT, tmp_path)
    assert [(d.id, d.split) for d in found.dialogues] == [
        ("multiwoz/train/MUL1", "train"),
        ("multiwoz/validation/MUL2", "validation"),
        ("multiwoz/test/SNG3", "test"),
    ]
    dialogue = found.dialogues[0]
    assert spoken(dialogue) == TALK
    assert dialogue.goal == PLAIN
    assert dialogue.hidden["goal_slots"] == {
        "inn": {"info": {"price": "cheap"}, "book": {"people": "2"}}
    }
    assert dialogue.group_keys == (PLAIN,)
    assert found.rejects == []


def test_logs_without_lists_have_no_part(tmp_path: Path) -> None:
    (dialogue,) = read(FORMAT, write(tmp_path / "data.json", {"MUL1.json": logged()})).dialogues
    assert (dialogue.id, dialogue.split) == ("multiwoz/MUL1", "")


def test_an_archive_is_named_after_its_part(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "val.json.zip", "w") as archive:
        archive.writestr("val.json", jsonio.dumps({"MUL1.json": logged()}))
    (dialogue,) = read(FORMAT, tmp_path / "val.json.zip").dialogues
    assert (dialogue.id, dialogue.split) == ("multiwoz/val/MUL1", "validation")


def test_framed_turns_have_no_goal(tmp_path: Path) -> None:
    write(tmp_path / "dev" / "dialogues_001.json", [framed("MUL1.json")])
    write(tmp_path / "dialog_acts.json", {"MUL1.json": {"0": {"dialog_act": {}}}})
    write(tmp_path / "schema.json", [{"service_name": "hotel"}])
    found = read(FORMAT, tmp_path)
    (dialogue,) = found.dialogues
    assert (dialogue.id, dialogue.split) == ("multiwoz/dev/MUL1", "validation")
    assert spoken(dialogue) == TALK
    assert (dialogue.goal, dialogue.group_keys) == ("", ())
    assert found.rejects == []


def test_unified_turns_keep_the_original_name(tmp_path: Path) -> None:
    (dialogue,) = read(FORMAT, write(tmp_path / "dialogues.json", [unified("MUL1")])).dialogues
    assert (dialogue.id, dialogue.split) == ("multiwoz/validation/MUL1", "validation")
    assert spoken(dialogue) == TALK
    assert dialogue.goal == PLAIN


@pytest.mark.parametrize(
    "value", [{"SNG01862.json": logged()}, [framed("SNG01862.json")], [unified("SNG01862")]]
)
def test_the_invalid_dialogue_stays_out(value: Any, tmp_path: Path) -> None:
    found = read(FORMAT, write(tmp_path / "data.json", value))
    assert found.dialogues == []
    assert dict(found.reasons) == {"invalid_dialogue": 1}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"A.json": {"log": [], "other": 1}}, "missing_keys"),
        ({"A.json": {"log": "text", "goal": {}}}, "no_conversation"),
        ([unified("A", turns=[{"speaker": "wizard", "utterance": "x"}])], "unknown_role"),
        ([{"dialogue_id": "A"}], "missing_keys"),
    ],
)
def test_damage_is_named(value: Any, reason: str, tmp_path: Path) -> None:
    assert dict(read(FORMAT, write(tmp_path / "data.json", value)).reasons) == {reason: 1}


def test_keys_tell_the_format() -> None:
    for value in (logged(), framed("A"), unified("A")):
        assert FORMAT.claims(value)
    assert not FORMAT.claims({"turns": [{"role": "user", "text": "hi"}]})
    assert not sgd.FORMAT.claims(unified("A"))


def test_the_genuine_rows(test_data: Path) -> None:
    found = read(FORMAT, test_data / "multiwoz")
    assert len(found.dialogues) == 1999
    assert (found.turns("user"), found.turns("agent")) == (14_737, 14_737)
    assert round(found.words(), 1) == 13.8
    assert all(d.goal and "<" not in d.goal for d in found.dialogues)
    assert all(d.turns[0].role == "user" for d in found.dialogues)
    assert not found.rejects
