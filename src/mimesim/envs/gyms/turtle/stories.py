"""The hidden side of a task of the gym `turtle`, and what scripts and rules make of it.

A task holds

- `public`: `title`, `surface` (texts);
- `hidden.bottom`: the whole story;
- `hidden.criteria`: list of `{"id", "statement", "weight"}`, weights above 0 that sum to 1;
- `hidden.cues`: criterion id -> list of cues, at least one. A cue is a list of words, all of which
  must occur as whole words, or a text that is searched for as a regular expression, case ignored.
  A story meets a criterion fully if it holds all cues of it, half if it holds at least half;
- `hidden.script`: list of `{"pattern", "label"}`: the first regular expression that is found in a
  question, case ignored, answers it; without one the answer is Maybe. May be empty;
- `hidden.oracle_trace`, `hidden.scenario` as in every gym (`{"id", "goal", "meta": {"profile":
  "asked"}}`).

Own tasks (`meta.source` is `mimesim`) have two to five criteria whose weights are multiples of .05.
Loaded ones may have any number; where cues were taken from the statements, `meta.cues` is
`derived`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.turns.agents import trace_of
from mimesim.envs.turns.labels import LABELS, MAYBE
from mimesim.errors import DataError
from mimesim.stats.texts import words

LEVELS = (0.0, 0.5, 1.0)
"""What a judge may give a criterion."""
_GRAIN = 20
_FEWEST, _MOST = 2, 5
_CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class Criterion:
    """A point of the story, and what it is worth."""

    id: str
    statement: str
    weight: float
    cues: tuple[re.Pattern[str] | tuple[str, ...], ...]

    def met(self, story: str) -> float:
        """Return how far `story` makes the point, by its cues."""
        hits = sum(_hit(cue, story) for cue in self.cues)
        if hits == len(self.cues):
            return 1.0
        return 0.5 if 2 * hits >= len(self.cues) else 0.0


@dataclass(frozen=True, slots=True)
class Hidden:
    """The hidden side of a task."""

    bottom: str
    criteria: tuple[Criterion, ...]
    script: tuple[tuple[re.Pattern[str], str], ...]

    def label(self, question: str) -> str:
        """Return what a scripted person answers."""
        return next((label for pattern, label in self.script if pattern.search(question)), MAYBE)

    def verdict(self, story: str) -> dict[str, Any]:
        """Return what a rule judge says of `story`."""
        scores = [{"criterion_id": c.id, "value": c.met(story)} for c in self.criteria]
        return {"scores": scores}


def read_hidden(task: Task) -> Hidden:
    """Return the hidden side.

    Raises:
        DataError: something is missing, or cannot be scored.
    """
    where = f"task {task.id!r}"
    for key in ("title", "surface"):
        _text(task.public.get(key), f"public.{key}", where)
    cues = task.hidden.get("cues")
    if not isinstance(cues, Mapping):
        raise DataError("hidden.cues is no object", where=where, expected="criterion id -> cues")
    criteria = tuple(
        _criterion(one, cues, where)
        for one in _objects(task.hidden.get("criteria"), "hidden.criteria", where)
    )
    script = tuple(
        (_pattern(one.get("pattern"), where), _label(one.get("label"), where))
        for one in _objects(task.hidden.get("script", []), "hidden.script", where)
    )
    _check_weights(criteria, where, own=task.meta.get("source") == "mimesim")
    trace_of(task)
    return Hidden(_text(task.hidden.get("bottom"), "hidden.bottom", where), criteria, script)


def check(task: Task) -> list[str]:
    """Return what `public` must not hold.

    Raises:
        DataError: an episode could not read the task.
    """
    hidden = read_hidden(task)
    return [hidden.bottom, *(criterion.statement for criterion in hidden.criteria)]


def _criterion(value: Mapping[str, Any], cues: Mapping[str, Any], where: str) -> Criterion:
    name = _text(value.get("id"), "the id of a criterion", where)
    weight = value.get("weight")
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 < weight <= 1:
        raise DataError(
            f"criterion {name!r}: weight is {weight!r}", where=where, expected="above 0, at most 1"
        )
    own = cues.get(name)
    if not isinstance(own, list | tuple) or not own:
        raise DataError(f"criterion {name!r} has no cues", where=where, expected="one at least")
    statement = _text(value.get("statement"), f"the statement of criterion {name!r}", where)
    return Criterion(name, statement, float(weight), tuple(_cue(one, where) for one in own))


def _check_weights(criteria: tuple[Criterion, ...], where: str, *, own: bool) -> None:
    names = [criterion.id for criterion in criteria]
    if not names or len(set(names)) != len(names):
        raise DataError(f"criteria are {names}", where=where, expected="some, each id once")
    if own:
        grains = [round(_GRAIN * c.weight) for c in criteria]
        exact = all(
            abs(_GRAIN * c.weight - g) < _CLOSE for c, g in zip(criteria, grains, strict=True)
        )
        if not exact or sum(grains) != _GRAIN or not _FEWEST <= len(criteria) <= _MOST:
            raise DataError(
                f"weights are {[c.weight for c in criteria]}",
                where=where,
                expected="two to five multiples of .05 that sum to 1",
            )
    total = math.fsum(criterion.weight for criterion in criteria)
    if abs(total - 1) > _CLOSE:
        raise DataError(f"weights sum to {total}", where=where, expected="1")


def _cue(value: Any, where: str) -> re.Pattern[str] | tuple[str, ...]:
    if not isinstance(value, list | tuple):
        return _pattern(value, where)
    found = tuple(w for one in value for w in words(_text(one, "a word of a cue", where)))
    if not found:
        raise DataError(f"a cue is {value!r:.60}", where=where, expected="words, or a pattern")
    return found


def _hit(cue: re.Pattern[str] | tuple[str, ...], story: str) -> bool:
    if isinstance(cue, tuple):
        return set(words(story)).issuperset(cue)
    return cue.search(story) is not None


def _pattern(value: Any, where: str) -> re.Pattern[str]:
    try:
        return re.compile(_text(value, "a pattern", where), re.IGNORECASE)
    except re.error as error:
        raise DataError(f"pattern {value!r:.60}: {error}", where=where) from error


def _label(value: Any, where: str) -> str:
    if value not in LABELS:
        raise DataError(f"label is {value!r}", where=where, expected=" or ".join(LABELS))
    return str(value)


def _objects(value: Any, name: str, where: str) -> Iterable[Mapping[str, Any]]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, Mapping) for one in value):
        raise DataError(f"{name} is {value!r:.60}", where=where, expected="a list of objects")
    return value


def _text(value: Any, name: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{name} is {value!r:.60}", where=where, expected="a text")
    return value
