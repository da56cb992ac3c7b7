"""A user's own conversation logs as JSON Lines: normalized dialogues or OpenAI messages.

    {"id": "a1", "turns": [{"role": "user", "text": "…"}, {"role": "agent", "text": "…"}]}
    {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}

Both may be mixed in one file. System, tool and other messages are counted and left out: they are
not what a person wrote. E-mail addresses and phone numbers are masked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.corpora import base, filters
from mimesim.corpora.base import Corpus, CorpusInfo, HumanDialogue, HumanTurn, Side
from mimesim.errors import DataError

_SIDES: dict[str, Side] = {"user": "user", "agent": "agent", "assistant": "agent"}


def load(source: str | Path, *, limit: int | None = None) -> Corpus:
    """Return the dialogues of one `.jsonl` or `.jsonl.gz` file that hold a user turn.

    Raises:
        DataError: a missing file, or a line of another shape, with its number.
    """
    path = Path(source)
    counts: Counter[str] = Counter()
    kept: dict[str, HumanDialogue] = {}
    for line in jsonio.read_jsonl(path):
        counts["conversations"] += 1
        where = f"{path}:{line.number}"
        turns = base.tidy(_turns(line.value, where, counts), counts)
        if not any(turn.role == "user" for turn in turns):
            counts["no_user_turn"] += 1
            continue
        name = str(line.value.get("id") or f"{path.name}/{line.number}")
        if name in kept:
            raise DataError(f"the id {name!r} occurs twice", where=where, expected="unique ids")
        topic = line.value.get("topic")
        kept[name] = HumanDialogue(name, turns, topic.strip() if isinstance(topic, str) else "")
    counts["kept"] = len(kept)
    counts["kept_turns"] = sum(len(dialogue.turns) for dialogue in kept.values())
    ordered = sorted(kept.values(), key=lambda dialogue: base.order_key(dialogue.id))
    return Corpus(_info(path), tuple(ordered[:limit]), dict(counts))


def _info(path: Path) -> CorpusInfo:
    return CorpusInfo(
        name=path.name,
        license="own data",
        redistributable="no",
        training_allowed="unknown",
        citation=f"own logs, {path.name}",
        moderated=False,
    )


def _turns(row: Any, where: str, counts: Counter[str]) -> list[HumanTurn]:
    key, field = ("turns", "text") if _has(row, "turns") else ("messages", "content")
    if not _has(row, key):
        raise DataError(
            "no conversation in this line",
            where=where,
            expected="an object with 'turns' or 'messages'",
        )
    turns = []
    for message in row[key]:
        if not isinstance(message, Mapping) or "role" not in message:
            raise DataError(f"an entry of {key!r} has no 'role'", where=where)
        side = _SIDES.get(str(message["role"]))
        text = _text(message.get(field))
        if side is None or text is None:
            counts["messages_left_out"] += 1
        else:
            turns.append(HumanTurn(side, filters.mask_contacts(text, counts)))
    return turns


def _has(row: Any, key: str) -> bool:
    value = row.get(key) if isinstance(row, Mapping) else None
    return isinstance(value, Sequence) and not isinstance(value, str)


def _text(content: Any) -> str | None:
    """Return the text of a message; None = it has none, e.g. a tool call or a picture."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [p.get("text") for p in content if isinstance(p, Mapping) and "text" in p]
        texts = [part for part in parts if isinstance(part, str)]
        return "\n".join(texts) if texts else None
    return None
