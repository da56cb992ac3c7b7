"""The chat corpus: invented files of its format, and the real package where it is installed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.corpora import chitchat, filters
from mimesim.corpora.base import Corpus, learnt_side
from mimesim.errors import DataError, EnvironmentFault


def chat(*turns: tuple[str, list[str]], prompt: str | None = "Cats?") -> dict[str, Any]:
    return {
        "prompt": prompt,
        "messages": [[{"sender": who, "text": t} for t in texts] for who, texts in turns],
    }


def load(tmp_path: Path, chats: dict[str, Any], **options: Any) -> Corpus:
    path = tmp_path / "dataset.json"
    jsonio.write_json(path, chats)
    return chitchat.load(path, **options)


TALK = [("p", ["hi", "how are you"]), ("q", ["fine"]), ("p", ["good"]), ("q", ["bye"])]


def test_messages_in_a_row_are_one_turn_and_the_hash_picks_the_side(tmp_path: Path) -> None:
    corpus = load(tmp_path, {f"k{i}": chat(*TALK) for i in range(8)})
    for dialogue in corpus.dialogues:
        key = dialogue.id.removeprefix("chitchat/")
        opener = "user" if learnt_side(key) == 0 else "agent"
        assert dialogue.turns[0].role == opener
        assert [turn.text for turn in dialogue.turns] == ["hi\nhow are you", "fine", "good", "bye"]
        assert dialogue.topic == "Cats?"
    assert {dialogue.turns[0].role for dialogue in corpus.dialogues} == {"user", "agent"}


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    corpus = load(
        tmp_path,
        {
            "whole": chat(*TALK, prompt=None),
            "alone": chat(("p", ["hi"]), ("p", ["anyone?"])),
            "brief": chat(*TALK[:2]),
            "rude": chat(*TALK, ("p", ["damn it"]), ("q", ["what?"])),
        },
    )
    assert corpus.counts == {
        "conversations": 4,
        "one_sided": 1,
        "too_short": 1,
        "filtered_profanity": 1,
        "filtered_turns": 2,
        "kept": 2,
        "kept_turns": 8,
    }
    assert not corpus.info.moderated


def test_a_limit_gives_the_first_in_hash_order(tmp_path: Path) -> None:
    chats = {f"k{i}": chat(*TALK) for i in range(9)}
    whole = load(tmp_path, chats)
    backwards = load(tmp_path, dict(reversed(chats.items())), limit=4)
    assert backwards.dialogues == whole.dialogues[:4]


@pytest.mark.parametrize("damaged", [["x"], {"k": {"messages": [[{"text": "no sender"}]]}}])
def test_another_shape_is_one_line(tmp_path: Path, damaged: Any) -> None:
    path = tmp_path / "dataset.json"
    jsonio.write_json(path, damaged)
    with pytest.raises(DataError, match="expected"):
        chitchat.load(path)


def test_an_absent_package_tells_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chitchat, "_PACKAGE", "no_such_package_here")
    with pytest.raises(EnvironmentFault, match="pip install --no-deps chitchat-dataset"):
        chitchat.load()


def test_the_real_chats() -> None:
    try:
        chitchat.wheel_file()
    except EnvironmentFault:
        pytest.skip("the package chitchat-dataset is not installed")
    corpus = chitchat.load(limit=60)
    assert len(corpus.dialogues) == 60
    for dialogue in corpus.dialogues:
        roles = [turn.role for turn in dialogue.turns]
        assert len(roles) >= 4
        assert all(a != b for a, b in itertools.pairwise(roles))
        assert not any(filters.problem(turn.text) for turn in dialogue.turns)
