"""Own logs: both line shapes, what is left out, and errors with their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.corpora.base import HumanTurn
from mimesim.corpora.load import open_corpus
from mimesim.corpora.show import summary
from mimesim.errors import DataError, UnknownNameError


def write(tmp_path: Path, *rows: Any) -> str:
    path = tmp_path / "logs.jsonl"
    with jsonio.Appender(path) as out:
        for row in rows:
            out.append(row)
    return str(path)


NORMAL = {
    "id": "n1",
    "topic": "a refund",
    "turns": [{"role": "user", "text": "hi\u2028there"}, {"role": "agent", "text": "hello"}],
}
OPENAI = {
    "messages": [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": [{"type": "text", "text": "mail me: a@b.org"}]},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "42"},
        {"role": "assistant", "content": "done"},
    ]
}


def test_both_shapes_in_one_file(tmp_path: Path) -> None:
    corpus = open_corpus(write(tmp_path, NORMAL, OPENAI, {"id": "x", "turns": []}))
    found = {dialogue.id: dialogue for dialogue in corpus.dialogues}
    assert found["n1"].turns == (HumanTurn("user", "hi\u2028there"), HumanTurn("agent", "hello"))
    assert found["n1"].topic == "a refund"
    assert found["logs.jsonl/2"].turns == (
        HumanTurn("user", "mail me: name@example.com"),
        HumanTurn("agent", "done"),
    )
    assert corpus.counts["messages_left_out"] == 3
    assert corpus.counts["no_user_turn"] == 1
    assert corpus.counts["mails_masked"] == 1
    assert corpus.counts["kept"] == 2


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"text": "x"}, "no conversation"),
        (["x"], "no conversation"),
        ({"turns": "x"}, "no conversation"),
        ({"turns": [{"text": "x"}]}, "no 'role'"),
        ({**NORMAL, "turns": [{"role": "user", "text": "something else"}]}, "stands here again"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, row: Any, what: str) -> None:
    with pytest.raises(DataError, match=what) as caught:
        open_corpus(write(tmp_path, NORMAL, row))
    assert "logs.jsonl:2" in str(caught.value)


def test_an_unknown_name() -> None:
    with pytest.raises(UnknownNameError, match="chitchat"):
        open_corpus("chitchta")
    with pytest.raises(DataError, match="file not found"):
        open_corpus("absent.jsonl")


def test_a_summary_withholds_unsuitable_samples(tmp_path: Path) -> None:
    rude = {"id": "r", "turns": [{"role": "user", "text": "what the hell"}]}
    found = summary(open_corpus(write(tmp_path, NORMAL, rude)), samples=5, turns=1)
    assert found["samples_withheld"] == 1
    assert [(s["id"], len(s["turns"])) for s in found["samples"]] == [("n1", 1)]
    assert found["terms"]["license"] == "own data"
    assert found["label"]
