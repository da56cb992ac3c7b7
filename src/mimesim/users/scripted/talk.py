"""One turn of a scripted customer in the making: what was heard, what will be said and thought.

`Memory` is all that lasts between turns and is plain JSON; `Talk` is the workspace of one turn.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import Any

from mimesim.scenarios.behaviors import cues
from mimesim.scenarios.fields import field_name, fold, value_text
from mimesim.scenarios.rows import fill


@cache
def phrase_bank(name: str) -> dict[str, dict[str, list[str]]]:
    """Load the phrase bank `main` or `heldout`."""
    source = files("mimesim.users.scripted").joinpath(f"full_{name}.toml")
    return tomllib.loads(source.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Heard:
    """The agent's last message and what it amounts to."""

    text: str
    asked: tuple[str, ...]
    refusal: bool
    mismatch: bool
    done: bool
    farewell: bool
    proposal: bool
    question: bool


def listen(text: str, asked: tuple[str, ...]) -> Heard:
    """Take in an agent's message."""
    folded = fold(text)
    return Heard(
        text=folded,
        asked=asked,
        refusal=bool(cues.REFUSAL.search(folded)),
        mismatch=bool(cues.MISMATCH.search(folded)),
        done=bool(cues.DONE.search(folded)),
        farewell=bool(cues.FAREWELL.search(folded)),
        proposal=bool(cues.PROPOSAL.search(folded)),
        question="?" in folded,
    )


@dataclass(slots=True)
class Memory:
    """What a customer keeps in mind from turn to turn; JSON values only.

    Attributes:
        turn: own messages so far.
        facts: the truth as it stands (a moved wish included).
        claims: field -> untrue value the customer stands by.
        told: fields stated so far; asked: field -> how often the agent asked.
        counts: how often each behavior or reaction has happened.
        wish: what has moved, see `dialogue.types.Reply.wish`.
    """

    turn: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    wish: dict[str, str] = field(default_factory=dict)
    gone: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return a deep enough copy as JSON values."""
        out: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            out[part.name] = value.copy() if isinstance(value, dict | list) else value
        return out

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Memory:
        """Take over a state of `to_json`."""
        made = cls(**{part.name: state[part.name] for part in fields(cls)})
        return cls(**made.to_json())  # a copy of its own, so that the given state stays as it is


@dataclass(slots=True)
class Talk:
    """The workspace of one turn.

    Attributes:
        issue: the errand in the words of this customer; title: in a few words.
        patience: field -> questions it outlasts.
        dodged: whether this message has dodged a question already.
        parts: what will be said, in order; thoughts: what is thought.
    """

    memory: Memory
    bank: Mapping[str, Mapping[str, list[str]]]
    rng: random.Random
    heard: Heard
    issue: str
    flow: str
    title: str
    patience: Mapping[str, int]
    dodged: bool = False
    parts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    end: bool = False

    def say(self, key: str, **values: str) -> None:
        """Say a phrase of the bank."""
        self.parts.append(self.phrase("say", key, **values))

    def think(self, key: str, **values: str) -> None:
        """Think a phrase of the bank."""
        self.thoughts.append(self.phrase("think", key, **values))

    def phrase(self, section: str, key: str, **values: str) -> str:
        """Draw a phrase and fill it."""
        return fill(self.rng.choice(self.bank[section][key]), values)

    def count(self, what: str) -> int:
        """Return how often `what` has happened."""
        return self.memory.counts.get(what, 0)

    def note(self, what: str) -> None:
        """Note that `what` happened once more."""
        self.memory.counts[what] = self.count(what) + 1

    def value(self, name: str) -> str | None:
        """Return what this customer now says a field is; None = does not know."""
        if name in self.memory.claims:
            return self.memory.claims[name]
        return value_text(self.memory.facts, name) if name in self.memory.facts else None

    def statement(self, name: str, *, bare: bool = False) -> str:
        """Word the value of a field as a statement; `bare` allows the value alone."""
        said, options = self.value(name), self.bank["give"]
        key = next(k for k in (f"{name}_{said}", name, "other") if k in options)
        wordings = [w for w in options[key] if bare or w != "{value}"] or options[key]
        return fill(self.rng.choice(wordings), {"value": said})

    def give(self, name: str) -> None:
        """State a field, or admit not knowing it."""
        if self.value(name) is None:
            self.say("unknown")
            self.think("unknown")
            return
        again = name in self.memory.told and self.memory.asked.get(name, 0) > 1
        if again:
            self.say("again", value=self.statement(name))
        else:
            self.parts.append(self.statement(name, bare=True))
        self.think("give", field=field_name(name))
        self.mark_told(name)

    def mark_told(self, name: str) -> None:
        """Remember that a field was stated."""
        if name not in self.memory.told:
            self.memory.told.append(name)

    def leave(self) -> None:
        """End the conversation with this message."""
        self.end = True
        self.memory.gone = True

    def utterance(self) -> str:
        """Return everything said, as one message."""
        out = ""
        for part in self.parts:
            if out:
                out += " " if out[-1] in ".?!," else ". "
            out += part
        return out
