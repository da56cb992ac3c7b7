"""Chats of the wheel: sides by hash, cut before what is unsuitable; normalized rows as they are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from mimesim.corpora import base
from mimesim.corpora import chitchat as wheel
from mimesim.corpora.formats.chitchat import FORMAT
from tests.support.sources import read, write


def chat(*turns: tuple[str, list[str]], **more: Any) -> dict[str, Any]:
    messages = [
        [{"sender": who, "text": text, "timestamp": "t"} for text in texts] for who, texts in turns
    ]
    return {"messages": messages, "ratings": {"witty": 5}, "start": "s", "prompt": "Cats?", **more}


TALK = [("p", ["hi", "how are you"]), ("q", ["fine"]), ("p", ["good"]), ("q", ["bye"])]
CHATS = {
    **{f"k{n}": chat(*TALK) for n in range(6)},
    "rude": chat(*TALK, ("p", ["damn it"]), ("q", ["what?"])),
    "brief": chat(*TALK[:2]),
    "alone": chat(("p", ["hi"]), ("p", ["anyone?"])),
    "quiet": chat(*TALK, prompt=None, ratings={}),
}


def test_it_is_the_conversion_of_the_loader(tmp_path: Path) -> None:
    path = write(tmp_path / "dataset.json", CHATS)
    found = read(FORMAT, path)
    loaded = wheel.load(path)
    ordered = sorted(found.dialogues, key=lambda dialogue: base.order_key(dialogue.id))
    assert tuple(ordered) == loaded.dialogues
    assert len(ordered) == 8
    assert dict(found.reasons) == {"too_short": 1, "one_sided": 1}


def test_the_hash_picks_the_side_and_the_end_comes_before_the_damage(tmp_path: Path) -> None:
    found = {d.id: d for d in read(FORMAT, write(tmp_path / "dataset.json", CHATS)).dialogues}
    for number in range(6):
        opener = found[f"chitchat/k{number}"].turns[0]
        assert opener.text == "hi\nhow are you"
        assert opener.role == ("user", "agent")[base.learnt_side(f"k{number}")]
    assert [turn.text for turn in found["chitchat/rude"].turns][-1] == "bye"
    assert found["chitchat/quiet"].topic == ""
    assert found["chitchat/rude"].outcome == {"ratings": {"witty": 5}}


def test_normalized_rows_are_passed_on_as_they_are() -> None:
    row = {
        "id": "chitchat/x",
        "prompt": "Cats?",
        "ratings": {},
        "turns": [
            {"role": "user", "text": "damn", "n_messages": 1},
            {"role": "agent", "text": "?"},
        ],
    }
    (dialogue,) = FORMAT.convert(row, {})
    assert [turn.text for turn in dialogue.turns] == ["damn", "?"]
    assert dialogue.topic == "Cats?"
    assert "prompt" not in dialogue.hidden


def test_another_shape_is_named(tmp_path: Path) -> None:
    value = {"a": {"messages": [[{"text": "no sender"}]]}, "b": {"talk": []}}
    path = write(tmp_path / "dataset.json", value)
    assert dict(read(FORMAT, path).reasons) == {"missing_keys": 2}


def test_the_genuine_rows(test_data: Path) -> None:
    found = read(FORMAT, test_data / "chitchat")
    assert len(found.dialogues) == 250
    assert (found.turns("user"), found.turns("agent")) == (5941, 5812)
    assert round(found.words(), 1) == 19.8
    counts: Counter[str] = Counter()
    for dialogue in found.dialogues:
        base.tidy(dialogue.turns, counts)
    assert (counts["empty_turns"], counts["merged_turns"]) == (1, 1)
    assert sum(not d.outcome.get("ratings") for d in found.dialogues) == 12
    assert sum(not d.topic for d in found.dialogues) == 4
    assert not found.rejects
