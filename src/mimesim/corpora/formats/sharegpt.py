"""ShareGPT: `{"id", "conversations": [{"from": "human", "value": "…"}, {"from": "gpt", …}]}`.

A conversation may open with the model. Some releases hold the model's replies as the page showed
them: a reply that starts with a tag is turned into plain text. Rows whose messages have the keys
`role` and `content` are read too: the keys tell, not the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, HumanTurn
from mimesim.corpora.formats.chats import is_chat
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized
from mimesim.corpora.formats.openai_messages import convert_messages, raw_messages

INFO = CorpusInfo(
    name="sharegpt",
    license="unclear",
    redistributable="no",
    training_allowed="unknown",
    citation="conversations shared by users of ShareGPT",
    moderated=False,
)

_MARKUP = re.compile(r"\s*<(?:div|p|pre|ul|ol)\b[^<>]*>", re.IGNORECASE)
_BLOCKS = frozenset(("br", "div", "h1", "h2", "h3", "h4", "li", "ol", "p", "pre", "tr", "ul"))


class _Plain(HTMLParser):
    """Gathers the text of a piece of a page; blocks end a line."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._block(tag)

    def handle_endtag(self, tag: str) -> None:
        self._block(tag)

    def _block(self, tag: str) -> None:
        if tag in _BLOCKS and self.texts and not self.texts[-1].endswith("\n"):
            self.texts.append("\n")


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    dialogue = convert_messages(value, INFO, options)
    return [replace(dialogue, turns=tuple(_readable(turn) for turn in dialogue.turns))]


def _readable(turn: HumanTurn) -> HumanTurn:
    if turn.role != "agent" or not _MARKUP.match(turn.text):
        return turn
    page = _Plain()
    page.feed(turn.text)
    page.close()
    return replace(turn, text="".join(page.texts))


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and any(
        is_chat(value.get(key), "from") for key in ("conversations", "messages")
    )


FORMAT = Format(
    info=INFO, convert=_convert, claims=_claims, options=("system",), messages=raw_messages
)
