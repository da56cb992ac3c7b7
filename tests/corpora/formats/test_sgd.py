"""SGD: lists of dialogues per part; schemas are no dialogues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mimesim.corpora.formats.sgd import FORMAT
from tests.support.sources import read, spoken, write


def row(number: str) -> dict[str, Any]:
    return {
        "dialogue_id": number,
        "services": ["Trains_1"],
        "turns": [
            {
                "speaker": "USER",
                "utterance": "A seat to Aden, please.",
                "frames": [
                    {
                        "service": "Trains_1",
                        "slots": [{"slot": "to", "start": 10, "exclusive_end": 14}],
                        "actions": [
                            {
                                "act": "INFORM",
                                "slot": "to",
                                "values": ["Aden"],
                                "canonical_values": ["Aden"],
                            }
                        ],
                        "state": {
                            "active_intent": "FindTrain",
                            "requested_slots": [],
                            "slot_values": {"to": ["Aden"]},
                        },
                    }
                ],
            },
            {
                "speaker": "SYSTEM",
                "utterance": "When do you travel?",
                "frames": [{"service": "Trains_1", "slots": [], "actions": []}],
            },
        ],
    }


def test_numbers_repeat_in_every_part(tmp_path: Path) -> None:
    for part in ("train", "dev", "test"):
        write(tmp_path / part / "dialogues_001.json", [row("1_00000")])
        write(tmp_path / part / "schema.json", [{"service_name": "Trains_1", "slots": []}])
    found = read(FORMAT, tmp_path)
    assert [(d.id, d.split) for d in found.dialogues] == [
        ("sgd/dev/1_00000", "validation"),
        ("sgd/test/1_00000", "test"),
        ("sgd/train/1_00000", "train"),
    ]
    assert found.rejects == []
    dialogue = found.dialogues[0]
    assert spoken(dialogue) == [
        ("user", "A seat to Aden, please."),
        ("agent", "When do you travel?"),
    ]
    assert dialogue.hidden == {"services": ["Trains_1"], "wanted": {"Trains_1": {"to": ["Aden"]}}}


def test_a_schema_asked_for_by_name_is_no_dialogue(tmp_path: Path) -> None:
    path = write(tmp_path / "schema.json", [{"service_name": "Trains_1", "slots": []}])
    assert read(FORMAT, path).rejects == [(f"{path}#1", "missing_keys")]


def test_share_alike_is_declared() -> None:
    assert FORMAT.info.redistributable == "share-alike"
    assert FORMAT.info.license == "CC BY-SA 4.0"


def test_keys_tell_the_format() -> None:
    assert FORMAT.claims(row("1"))
    assert not FORMAT.claims({"service_name": "Trains_1", "slots": []})


def test_the_genuine_rows(test_data: Path) -> None:
    found = read(FORMAT, test_data / "sgd")
    assert len(found.dialogues) == 1500
    assert (found.turns("user"), found.turns("agent")) == (13_185, 13_185)
    assert round(found.words(), 1) == 8.6
    assert all(d.turns[0].role == "user" for d in found.dialogues)
    assert len({service for d in found.dialogues for service in d.hidden["services"]}) == 32
    assert not found.rejects
