"""MovieBot: trailing newlines, and ids that were quoted once too often."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mimesim.corpora import base
from mimesim.corpora.formats.moviebot import FORMAT
from tests.support.sources import read, write

ROW = {
    "conversation_id": '"3XYZ"',
    "agent": {"id": "bot", "type": "AGENT"},
    "user": {"id": "someone", "type": "USER"},
    "conversation": [
        {"participant": "AGENT", "utterance": "Which genre?\n", "dialogue_acts": []},
        {
            "participant": "USER",
            "utterance": "something funny\n",
            "dialogue_acts": [
                {"intent": "DISCLOSE", "slot_values": [["GENRE", "comedy", None, None]]}
            ],
        },
    ],
}


def test_a_conversation(tmp_path: Path) -> None:
    (dialogue,) = read(FORMAT, write(tmp_path / "a.json", [ROW])).dialogues
    assert dialogue.id == "moviebot/3XYZ"
    turns = base.tidy(dialogue.turns, Counter())
    assert [(t.role, t.text) for t in turns] == [
        ("agent", "Which genre?"),
        ("user", "something funny"),
    ]


def test_keys_tell_the_format(tmp_path: Path) -> None:
    assert FORMAT.claims(ROW)
    assert not FORMAT.claims({"conversation_id": "x", "conversation": [{"role": "user"}]})
    path = write(tmp_path / "a.json", [{**ROW, "conversation": [{"participant": "FILM"}]}, {}])
    assert dict(read(FORMAT, path).reasons) == {"unknown_role": 1, "missing_keys": 1}


def test_the_genuine_file(test_data: Path) -> None:
    found = read(FORMAT, test_data / "moviebot")
    assert len(found.dialogues) == 8
    assert (found.turns("user"), found.turns("agent")) == (101, 109)
    assert round(found.words(), 1) == 3.4
    assert not any('"' in d.id for d in found.dialogues)
    assert not found.rejects
