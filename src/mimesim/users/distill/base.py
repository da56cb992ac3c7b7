"""What a distilled conversation consists of. Every claim points to the turn that it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mimesim.users.words import QUOTE, sentences


class Evidence(NamedTuple):
    """A place in a conversation: index of the turn, from 0, and words that stand in it."""

    turn: int
    quote: str

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"turn": self.turn, "quote": self.quote}


@dataclass(frozen=True, slots=True)
class Fact:
    """Something the person knew, as they told it.

    Attributes:
        key: a readable name, e.g. `order_id`.
        said: where they told it.
        asked: the agent's question that brought it out; None = told unasked.
        by: `rule` or `judge`.
    """

    key: str
    value: str
    said: Evidence
    asked: Evidence | None = None
    by: str = "rule"


@dataclass(frozen=True, slots=True)
class Distilled:
    """All that was found in one conversation.

    Attributes:
        goal: in the second person, without the opening's wording where that can be had.
        goal_from: the requests that it was made of.
        unknown: what the person said they do not know, with the place.
        style: facts of style, in words.
        ending: how the conversation went out: `thanked`, `complained` or `open` by rule, `solved`
            or `not_solved` where a judge could show it.
        ending_from: the words that say so.
    """

    goal: str
    goal_from: tuple[Evidence, ...]
    facts: tuple[Fact, ...] = ()
    unknown: Mapping[str, Evidence] = field(default_factory=dict)
    style: Mapping[str, Any] = field(default_factory=dict)
    ending: str = "open"
    ending_from: Evidence | None = None


def quote_at(text: str, start: int) -> str:
    """Return the sentence of `text` that holds the character at `start`, or the part around it."""
    for sentence in sentences(text):
        if sentence.start <= start < sentence.start + len(sentence.text):
            inside = max(0, start - sentence.start - QUOTE // 2)
            return sentence.text[inside : inside + QUOTE] if inside else sentence.text[:QUOTE]
    return text.strip()[:QUOTE]
