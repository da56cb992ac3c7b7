"""Chats between strangers from the package `chitchat-dataset` 0.9.0 (MIT, real, unmoderated).

    {"<key>": {"messages": [[{"sender", "text", "timestamp"}]], "ratings", "start", "prompt"}}

Without a place, the file of the installed wheel is read. A turn is all the messages that one person
sends in a row, one per line. Which of the two people is learnt is decided by the hash of the
conversation key. Nobody moderated these chats, so a conversation of the wheel ends before the first
turn that `filters.problem` objects to; normalized rows are passed on as they are, for the cleaning
steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora import base, filters, places
from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, HumanTurn, Record, Unfit
from mimesim.corpora.formats.chats import plain, required
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized

INFO = CorpusInfo(
    name="chitchat",
    license="MIT",
    redistributable="yes",
    training_allowed="yes",
    citation="Chit-Chat Dataset of the BYU Perception, Control and Cognition Laboratory (2018), "
    "package chitchat-dataset 0.9.0",
    moderated=False,
)

_MIN_TURNS = 4


def read_chat(key: str, chat: Any, counts: Counter[str]) -> HumanDialogue:
    """Return one raw chat, cut before the first unsuitable turn; `counts` takes what was cut.

    Raises:
        Unfit: `missing_keys`, `bad_text`, `one_sided`, `too_short`.
    """
    pairs = _messages(required(chat, "messages"))
    senders = list(dict.fromkeys(sender for sender, _ in pairs))
    if len(senders) != 2:
        raise Unfit("one_sided", f"{len(senders)} people instead of 2")
    learnt = senders[base.learnt_side(key)]
    turns = tuple(
        HumanTurn("user" if sender == learnt else "agent", text) for sender, text in pairs
    )
    prompt = chat.get("prompt")
    dialogue = HumanDialogue(
        id=f"chitchat/{key}",
        turns=turns,
        topic=prompt if isinstance(prompt, str) else "",
        source=INFO.name,
        outcome=plain(chat, "ratings"),
        language="en",
    )
    return _suitable(dialogue, counts)


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        told = {**value, "topic": value.get("prompt"), "prompt": None}
        yield replace(convert_normalized(told, INFO), language="en")
    else:
        chat = required(value, "key", "messages")
        yield read_chat(chat["key"], chat, Counter())


def _suitable(dialogue: HumanDialogue, counts: Counter[str]) -> HumanDialogue:
    # Messages in a row are turns by the nature of this corpus, not a repair: not counted.
    turns = base.cut_at_problem(base.tidy(dialogue.turns, Counter()), filters.problem, counts)
    if len(turns) < _MIN_TURNS:
        raise Unfit("too_short", f"{len(turns)} suitable turns, at least {_MIN_TURNS} are needed")
    clean = "" if filters.problem(dialogue.topic) else dialogue.topic.strip()
    return replace(dialogue, turns=turns, topic=clean)


def _messages(chat: Mapping[str, Any]) -> list[tuple[str, str]]:
    try:
        pairs = [(m["sender"], m["text"]) for turn in chat["messages"] for m in turn]
    except (KeyError, TypeError):
        raise Unfit("missing_keys", "messages: lists of {sender, text}") from None
    if not all(isinstance(text, str) for _, text in pairs):
        raise Unfit("bad_text", "a text of 'messages' is no text")
    return pairs


def _gather(records: Iterator[Record]) -> Iterator[Record]:
    """Add the key of a chat to its value."""
    for record in records:
        key = places.entry(record.where)
        if isinstance(record.value, Mapping) and "messages" in record.value and key:
            yield record._replace(value={"key": key, **record.value})
        else:
            yield record


def _claims(value: Any) -> bool:
    messages = value.get("messages") if isinstance(value, Mapping) else None
    if not isinstance(messages, list) or not messages:
        return False
    return isinstance(messages[0], list) and "ratings" in value


FORMAT = Format(
    info=INFO,
    convert=_convert,
    claims=_claims,
    gather=_gather,
    files=("dataset.json", ".jsonl"),
)
