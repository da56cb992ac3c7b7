"""Chats between strangers from the package `chitchat-dataset` 0.9.0 (MIT, real, unmoderated).

The file of the installed wheel is read in place; the package is not imported. A turn is all the
messages that one person sends in a row, one per line. Which of the two people is learnt is decided
by the hash of the conversation id. Nobody moderated these chats, so a conversation ends before the
first turn that `filters.problem` objects to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mimesim import jsonio, wheels
from mimesim.corpora import base, filters
from mimesim.corpora.base import Corpus, CorpusInfo, HumanDialogue, HumanTurn
from mimesim.errors import DataError

INFO = CorpusInfo(
    name="chitchat",
    license="MIT",
    redistributable="yes",
    training_allowed="yes",
    citation="Chit-Chat Dataset of the BYU Perception, Control and Cognition Laboratory (2018), "
    "package chitchat-dataset 0.9.0",
    moderated=False,
)

_PACKAGE, _FILE = "chitchat_dataset", "dataset.json"
_MIN_TURNS = 4


def load(source: str | Path | None = None, *, limit: int | None = None) -> Corpus:
    """Return the two-sided conversations, cleaned and filtered.

    Args:
        source: a `dataset.json`; None = the one of the installed package.
        limit: stop after so many conversations, in hash order; the counts are of those read.

    Raises:
        EnvironmentFault: the package is not installed.
        DataError: the file is damaged or has another shape.
    """
    path = wheel_file() if source is None else Path(source)
    raw = jsonio.read_json(path)
    if not isinstance(raw, Mapping):
        raise DataError("not a chitchat file", where=str(path), expected="one object of chats")
    counts: Counter[str] = Counter()
    kept: list[HumanDialogue] = []
    for key in sorted(raw, key=lambda key: base.order_key(_name(key))):
        if limit is not None and len(kept) >= limit:
            break
        counts["conversations"] += 1
        dialogue = _dialogue(key, _messages(raw[key], path, key), counts)
        if dialogue is not None:
            kept.append(dialogue)
    counts["kept"] = len(kept)
    counts["kept_turns"] = sum(len(dialogue.turns) for dialogue in kept)
    return Corpus(INFO, tuple(kept), dict(counts))


def wheel_file() -> Path:
    """Return the data file of the installed package.

    Raises:
        EnvironmentFault: the package is not installed.
    """
    return wheels.wheel_file(
        _PACKAGE, _FILE, what="the corpus of human chats", distribution="chitchat-dataset==0.9.0"
    )


def _name(key: str) -> str:
    return f"chitchat/{key}"


def _messages(chat: Any, path: Path, key: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the topic and the (sender, text) pairs of one raw conversation."""
    try:
        pairs = [(m["sender"], m["text"]) for turn in chat["messages"] for m in turn]
        topic = chat.get("prompt") or ""
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"conversation {key!r} has another shape: {error!r}",
            where=str(path),
            expected="messages: lists of {sender, text}",
        ) from error
    return topic, pairs


def _dialogue(
    key: str, chat: tuple[str, list[tuple[str, str]]], counts: Counter[str]
) -> HumanDialogue | None:
    topic, pairs = chat
    senders = list(dict.fromkeys(sender for sender, _ in pairs))
    if len(senders) != 2:
        counts["one_sided"] += 1
        return None
    learnt = senders[base.learnt_side(key)]
    turns = base.tidy(
        (HumanTurn("user" if sender == learnt else "agent", text) for sender, text in pairs),
        Counter(),  # messages in a row are turns by the nature of this corpus, not a repair
    )
    turns = base.cut_at_problem(turns, filters.problem, counts)
    if len(turns) < _MIN_TURNS:
        counts["too_short"] += 1
        return None
    clean = "" if filters.problem(topic) else topic.strip()
    return HumanDialogue(_name(key), turns, clean)
