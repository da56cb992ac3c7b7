"""A conversation as the rule judges look at it: own moves, what was heard before, what was settled.

The moments of a conversation are read from the agent's side only, which no policy writes; both rule
judges share them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mimesim.dialogue.types import Role, Thought
from mimesim.scenarios.behaviors import cues
from mimesim.scenarios.fields import asked_fields, fold, says_field
from mimesim.stats.texts import words

_SETTLED = re.compile(
    r"(?<!\w)(?:done|all set|set up|approved|booked|arranged|taken care of|on (?:its|the) way"
    r"|that works(?: too)?|i (?:can|will) (?:arrange|do|add|note) (?:that|it)|is (?:possible|sent again)"
    r"|(?:i|we)(?: have|'ve) (?:now |just )?(?:put|sent|cancell?ed|changed|noted|added|refunded|reset"
    r"|updated|issued|paid|set|ordered|replaced|moved|carried)\b(?! you)|goes? (?:on|to|back)\b)(?!\w)"
)
_ERRAND = re.compile(r"no longer (?:wanted|needed)")
"""Words of an errand's name that sound like a refusal."""
_REFUSED = re.compile(r"too long ago|the rule holds|no exceptions?|i am afraid not")
_FILLERS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by can come do for from get had has have he her his i if in is it"
        " its me my need not of off on one or our out she so something than that the their them they this"
        " to up want was were what when which who will with would you your",
    )
)


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a performance.

    Attributes:
        thought: what the customer thought before it, where that is known.
        replayed: said before the customer's first own message, not by the one who is judged.
    """

    role: Role
    text: str
    thought: Thought | None = None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Performance:
    """What is judged: a conversation, and what its customer was to do.

    Attributes:
        behavior: id or code name; None = an ordinary customer.
        goal: the errand, in words.
        params: parameters of the behavior; rules read them, a language model does not see them.
        facts: what the customer knows, by field; for rules too.
        left: whether the customer ended the conversation.
    """

    behavior: str | None
    goal: str
    turns: tuple[Said, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    left: bool = False

    @property
    def own(self) -> tuple[Said, ...]:
        """The customer's messages that were generated, in order."""
        return tuple(t for t in self.turns if t.role is Role.USER and not t.replayed)


@dataclass(frozen=True, slots=True)
class Move:
    """One message of the customer and what stood before it.

    Attributes:
        turn: index in the conversation.
        raw: as written; `text` is folded and without apostrophes.
        heard: what the agent has said since the last own message, folded.
        asked: fields that it asks for.
        settled: whether the agent has reported or agreed to anything so far.
        just_settled: whether it did so in `heard`.
        refused: whether it has refused anything so far.
    """

    turn: int
    raw: str
    text: str
    heard: str
    asked: tuple[str, ...]
    settled: bool
    just_settled: bool
    refused: bool
    first: bool
    last: bool

    @property
    def offered(self) -> bool:
        """Whether the agent has just proposed, stated or settled something, and asks for no field."""
        return bool(self.heard) and not self.asked


class Talk:
    """A performance with its moves."""

    def __init__(self, performance: Performance) -> None:
        self.performance = performance
        self.params = performance.params
        self.facts = performance.facts
        self.moves = tuple(_moves(performance.turns))

    @cached_property
    def goal_words(self) -> frozenset[str]:
        """The words that the errand is about."""
        return content(self.performance.goal)

    @cached_property
    def own_words(self) -> frozenset[str]:
        """The words of the errand, and of everything said up to the first own message."""
        opening = [t.text for t in self.performance.turns if t.role is Role.USER and t.replayed]
        opening += [self.moves[0].raw] if self.moves else []
        return self.goal_words.union(*(content(text) for text in opening))

    def holds_value(self, move: Move) -> bool:
        """Tell whether a message holds a value that the agent could use."""
        known = [
            name
            for name, value in self.facts.items()
            if len(str(value)) > 3 and says_field(move.raw, name, value)
        ]
        return bool(known) or sum(c.isdigit() for c in move.raw) >= 3


def bare(text: str) -> str:
    """Return folded text without apostrophes, which people drop."""
    return fold(text).replace("'", "")


def content(text: str) -> frozenset[str]:
    """Return the words of a text that mean something by themselves, plural and tense cut off."""
    return frozenset(_stem(w) for w in words(bare(text)) if w not in _FILLERS and len(w) > 2)


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word.rstrip("e") if len(word) > 4 else word


def _moves(turns: Iterable[Said]) -> Iterable[Move]:
    listed = list(turns)
    own = [i for i, t in enumerate(listed) if t.role is Role.USER and not t.replayed]
    heard: list[str] = []
    settled = refused = False
    for i, turn in enumerate(listed):
        if turn.role is Role.AGENT:
            heard.append(fold(turn.text))
            continue
        if turn.role is not Role.USER:
            continue
        told = " ".join(heard)
        heard = []
        if turn.replayed:
            continue
        refusal = bool(cues.REFUSAL.search(_ERRAND.sub("", told)) or _REFUSED.search(told))
        now = not refusal and bool(_SETTLED.search(told) or cues.DONE.search(told))
        settled, refused = settled or now, refused or refusal
        yield Move(
            turn=i,
            raw=turn.text,
            text=bare(turn.text),
            heard=told,
            asked=asked_fields(told),
            settled=settled,
            just_settled=now,
            refused=refused,
            first=i == own[0],
            last=i == own[-1],
        )
