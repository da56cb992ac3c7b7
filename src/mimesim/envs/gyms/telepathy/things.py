"""The hidden side of a task of the gym `telepathy`, and what scripts and rules make of it.

A task holds

- `public`: `intro` (the line that the agent reads first), `kind` (of thing);
- `hidden.title`: the name of the thing; `hidden.target`: name and what it is, for who answers;
- `hidden.aliases`: other names, may be empty;
- `hidden.attributes`: name -> true or false; `hidden.cues`: name -> list of texts, each of one or
  more words. A question is about an attribute if it holds all words of one of its cues. Of several
  attributes those with the longest cue count; where they differ, or one of them has cues only, the
  answer is Maybe. Both may be empty: then everything but a name is answered by Maybe;
- `hidden.oracle_trace`, `hidden.scenario` as in every gym (`{"id", "goal", "meta": {"profile":
  "asked"}}`).

Where cues were taken from a description, `meta.cues` is `derived`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.packs import fold
from mimesim.envs.turns.agents import trace_of
from mimesim.envs.turns.labels import MAYBE, NO, YES
from mimesim.errors import DataError
from mimesim.stats.texts import words

_ARTICLES = frozenset({"a", "an", "the"})
_PARTS = re.compile(r"[,;/]|\s+or\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hidden:
    """The hidden side of a task."""

    title: str
    target: str
    aliases: tuple[str, ...]
    attributes: Mapping[str, bool]
    cues: Mapping[str, tuple[tuple[str, ...], ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Everything the thing is called."""
        return (self.title, *self.aliases)

    def label(self, question: str) -> str:
        """Return what a scripted person answers."""
        said = set(words(question))
        if any(said.issuperset(words(name)) for name in self.names):
            return YES
        found = {name: _longest(cues, said) for name, cues in self.cues.items()}
        longest = max(found.values(), default=0)
        values = {self.attributes.get(name) for name, size in found.items() if size == longest > 0}
        if values == {True}:
            return YES
        return NO if values == {False} else MAYBE

    def named(self, guess: str) -> bool:
        """Tell whether `guess` is one of the names."""
        return plain(guess) in {plain(name) for name in self.names}

    def several(self, guess: str) -> bool:
        """Tell whether `guess` names several things."""
        if self.named(guess):
            return False
        return len([part for part in _PARTS.split(guess) if plain(part)]) > 1


def _longest(cues: tuple[tuple[str, ...], ...], said: set[str]) -> int:
    """Return the number of words of the longest cue of which all were said."""
    return max((len(cue) for cue in cues if said.issuperset(cue)), default=0)


def plain(name: str) -> str:
    """Return a name without case, punctuation and articles."""
    words = re.sub(r"[^\w\s]", " ", fold(name)).split()
    return " ".join(word for word in words if word not in _ARTICLES)


def read_hidden(task: Task) -> Hidden:
    """Return the hidden side.

    Raises:
        DataError: something is missing or of another type.
    """
    where = f"task {task.id!r}"
    for key in ("intro", "kind"):
        _text(task.public.get(key), f"public.{key}", where)
    hidden = task.hidden
    attributes = _table(hidden.get("attributes"), "attributes", where)
    for name, value in attributes.items():
        if not isinstance(value, bool):
            raise DataError(f"attribute {name!r} is {value!r:.40}", where=where, expected="a bool")
    cues = {
        name: tuple(_cue(cue, where) for cue in _texts(value, f"the cues of {name!r}", where))
        for name, value in _table(hidden.get("cues"), "cues", where).items()
    }
    trace_of(task)
    found = Hidden(
        title=_text(hidden.get("title"), "hidden.title", where),
        target=_text(hidden.get("target"), "hidden.target", where),
        aliases=_texts(hidden.get("aliases"), "hidden.aliases", where),
        attributes=attributes,
        cues=cues,
    )
    for name in found.names:
        if not plain(name):
            raise DataError(f"{name!r} is no name", where=where, expected="letters or digits")
    return found


def check(task: Task) -> list[str]:
    """Return what `public` must not hold.

    Raises:
        DataError: an episode could not read the task.
    """
    hidden = read_hidden(task)
    return [*hidden.names, hidden.target]


def _cue(text: str, where: str) -> tuple[str, ...]:
    found = tuple(words(text))
    if not found:
        raise DataError(f"a cue is {text!r:.60}", where=where, expected="one word at least")
    return found


def _table(value: Any, name: str, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"hidden.{name} is {value!r:.60}", where=where, expected="an object")
    return value


def _texts(value: Any, name: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise DataError(f"{name} is {value!r:.60}", where=where, expected="a list of texts")
    return tuple(_text(one, f"an entry of {name}", where) for one in value)


def _text(value: Any, name: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{name} is {value!r:.60}", where=where, expected="a text")
    return value
