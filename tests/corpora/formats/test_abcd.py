"""ABCD: splits in one object, the bare sample, gz, and the normalized rows."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.corpora.formats.abcd import FORMAT
from tests.support.sources import read, spoken, write

PRODUCTS = "[{'brand': 'acme', 'product_type': 'hat', 'amount': 40, 'image_url': 'h.jpeg'}]"


def row(number: int, **changes: Any) -> dict[str, Any]:
    value = {
        "convo_id": number,
        "scenario": {
            "personal": {"customer_name": "ida moss", "member_level": "gold"},
            "order": {"order_id": "7001", "products": PRODUCTS},
            "product": {"names": ["acme hat"], "amounts": [40]},
            "flow": "product_defect",
            "subflow": "return_color",
        },
        "original": [
            ["agent", "Hello there"],
            ["customer", "the hat is green"],
            ["customer", "i wanted red"],
            ["action", "Account has been pulled up for Ida Moss."],
            ["agent", "Noted."],
        ],
        "delexed": [
            {
                "speaker": "action",
                "text": "account has been pulled up for <name>.",
                "turn_count": 4,
                "targets": ["return_color", "take_action", "pull-up-account", ["ida moss"], -1],
                "candidates": [],
            },
            {
                "speaker": "agent",
                "text": "noted.",
                "turn_count": 5,
                "targets": ["return_color", "retrieve_utterance", None, [], 3],
                "candidates": [1, 2, 3],
            },
        ],
    }
    return {**value, **changes}


def test_the_customer_is_learnt_and_the_record_is_hidden(tmp_path: Path) -> None:
    found = read(FORMAT, write(tmp_path / "abcd_sample.json", [row(11)]))
    (dialogue,) = found.dialogues
    assert dialogue.id == "abcd/11"
    assert spoken(dialogue) == [
        ("agent", "Hello there"),
        ("user", "the hat is green"),
        ("user", "i wanted red"),
        ("agent", "Noted."),
    ]
    assert dialogue.hidden["scenario"]["order"]["products"] == PRODUCTS
    assert dialogue.hidden["actions"] == [{"button": "pull-up-account", "values": ["ida moss"]}]
    assert [note["turn"] for note in dialogue.hidden["action"]] == [2]
    assert "pulled up" not in "".join(turn.text for turn in dialogue.turns)
    assert dialogue.split == ""


@pytest.mark.parametrize("name", ["abcd_v1.1.json", "abcd_v1.1.json.gz"])
def test_the_full_file_names_the_splits(name: str, tmp_path: Path) -> None:
    value = {"train": [row(1), row(2)], "dev": [row(3)], "test": [row(4)]}
    raw = jsonio.dumps(value).encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    write(tmp_path / "guidelines.json", {"Flow": {"subflows": {}}})
    found = read(FORMAT, tmp_path)
    assert [(d.id, d.split) for d in found.dialogues] == [
        ("abcd/1", "train"),
        ("abcd/2", "train"),
        ("abcd/3", "validation"),
        ("abcd/4", "test"),
    ]
    assert found.rejects == []


def test_missing_parts_of_a_scenario_are_no_fault(tmp_path: Path) -> None:
    found = read(FORMAT, write(tmp_path / "a.json", [row(1, scenario={}, delexed=None)]))
    assert len(found.dialogues) == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"original": "text"}, "no_conversation"),
        ({"original": [["agent"]]}, "missing_role"),
        ({"original": [["robot", "beep"]]}, "unknown_role"),
        ({"original": [["agent", 5]]}, "bad_text"),
    ],
)
def test_damage_is_named(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    found = read(FORMAT, write(tmp_path / "a.json", [row(1, **changes), {"other": 1}]))
    assert dict(found.reasons) == {reason: 1, "missing_keys": 1}


def test_keys_tell_the_format() -> None:
    assert FORMAT.claims(row(1))
    assert not FORMAT.claims({"turns": []})


def test_the_genuine_files(test_data: Path) -> None:
    sample = read(FORMAT, test_data / "abcd" / "abcd_sample.json")
    normalized = read(FORMAT, test_data / "abcd")
    assert len(sample.dialogues) == 3
    assert len(normalized.dialogues) == 5
    assert (normalized.turns("user"), normalized.turns("agent")) == (51, 51)
    assert round(normalized.words(), 1) == 5.9
    assert sum(len(d.hidden["action"]) for d in normalized.dialogues) == 16
    assert sum(d.turns[0].role == "agent" for d in normalized.dialogues) == 4
    rows = {d.id: d for d in normalized.dialogues}
    for dialogue in sample.dialogues:
        assert spoken(dialogue) == spoken(rows[dialogue.id])
        assert dialogue.hidden["actions"] == rows[dialogue.id].hidden["actions"]
    assert not sample.rejects
    assert not normalized.rejects
