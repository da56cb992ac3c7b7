"""A team's own conversations: normalized dialogues or OpenAI messages, mixed in one file.

    {"id": "a1", "turns": [{"role": "user", "text": "…"}, {"role": "agent", "text": "…"}]}
    {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}

System, tool and other messages are counted and left out: they are not what a person wrote, and what
the assistant was told is not what its user knew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue
from mimesim.corpora.formats.chats import stripped
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized
from mimesim.corpora.formats.openai_messages import convert_messages, messages_of, raw_messages

INFO = CorpusInfo(
    name="own",
    license="own data",
    redistributable="no",
    training_allowed="unknown",
    citation="own logs",
    moderated=False,
)

_UNSAID = ("system", "developer")


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        dialogue, entries = convert_normalized(value, INFO), value["turns"]
    else:
        dialogue = convert_messages(value, INFO, {**options, "system": "drop"})
        _, entries = messages_of(value)
    told = sum(_is_system(entry) for entry in entries)
    left_out = Counter(dialogue.left_out) + Counter({"messages_left_out": told})
    context = stripped(value.get("context"))
    return [replace(dialogue, context=context, left_out=dict(left_out))]


def _is_system(entry: Mapping[str, Any]) -> bool:
    role = entry.get("role", entry.get("from"))
    return isinstance(role, str) and role.strip().lower() in _UNSAID


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and any(
        isinstance(value.get(key), list) for key in ("turns", "messages")
    )


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, messages=raw_messages)
