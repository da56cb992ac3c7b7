"""The hidden side of a travel task: what there is to choose from and what the traveler wishes.

The shape of the lines is written in `tasks`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.gyms.travel.cues import Cue, derived_cues, read_cues
from mimesim.errors import DataError

LETTERS = {"flight": "F", "hotel": "H", "apartment": "A", "rental_car": "C", "restaurant": "R"}
"""Aspect -> the letter that its option ids begin with."""
DIMENSIONS = {letter: name for name, letter in LETTERS.items()}
PRIVATE_KEYS = ("type", "reason")
"""Keys of an option that would tell what it is worth; never shown."""
_OPTION = re.compile(r"[ACFHR]\d{1,6}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Preference:
    """A wish of the traveler.

    Attributes:
        text: the wish in plain words. implicit: what lets it be guessed.
        topic: what it is about, e.g. `seat`.
        cues: words of a question that ask for it.
    """

    id: str
    aspect: str
    text: str
    implicit: str
    topic: str
    cues: tuple[Cue, ...]


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing to be booked. Options keep their order in the file and their private keys."""

    name: str
    options: tuple[Mapping[str, Any], ...]
    arguments: Mapping[str, Any]
    best: str
    correct: frozenset[str]

    @property
    def letter(self) -> str:
        """The letter of its options."""
        return LETTERS[self.name]

    @property
    def ids(self) -> frozenset[str]:
        """The ids of its options."""
        return frozenset(option["id"] for option in self.options)

    def grade(self, option: str) -> float:
        """Return what an option is worth: 1 the best, .8 a right one, 0 a wrong one."""
        if option == self.best:
            return 1.0
        return 0.8 if option in self.correct else 0.0


@dataclass(frozen=True, slots=True)
class Trip:
    """The hidden side of a task, aspects in the order of the task."""

    aspects: Mapping[str, Aspect]
    preferences: tuple[Preference, ...]


def read_trip(task: Task) -> Trip:
    """Return the hidden side.

    Raises:
        DataError: it lacks something, or contradicts itself.
    """
    where = f"task {task.id!r}"
    initial = task.public.get("initial")
    if not isinstance(initial, str) or not initial.strip():
        raise DataError("public.initial is missing", where=where, expected="the first request")
    names = task.hidden.get("dimensions")
    known = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not known or not names or not set(names) <= set(LETTERS) or len(set(names)) < len(names):
        raise DataError(
            f"hidden.dimensions is {names!r:.80}",
            where=where,
            expected="different ones of " + ", ".join(LETTERS),
        )
    records = _mapping(task.hidden, "aspects", where)
    aspects = {name: _aspect(name, records, where) for name in names}
    listed = [
        (name, entry)
        for name in names
        for entry in _entries(records[name], "preferences", f"{where}, {name}")
    ]
    cues = _mapping(task.hidden, "cues", where) if "cues" in task.hidden else {}
    return Trip(aspects, _preferences(listed, cues, where))


def _aspect(name: str, records: Mapping[str, Any], where: str) -> Aspect:
    where = f"{where}, {name}"
    record = _mapping(records, name, where)
    options = _entries(record, "options", where)
    ids = [option.get("id") for option in options]
    for one in ids:
        fits = isinstance(one, str) and _OPTION.fullmatch(one) and one[0] == LETTERS[name]
        if not fits or ids.count(one) > 1:
            raise DataError(
                f"the option id {one!r} cannot be used",
                where=where,
                expected=f"{LETTERS[name]} and a number, each id once",
            )
    best, correct = record.get("best_id"), record.get("correct_ids")
    if not isinstance(correct, list) or best not in correct or not set(correct) <= set(ids):
        raise DataError(
            f"best_id {best!r} and correct_ids {correct!r:.60} do not fit the options",
            where=where,
            expected="ids of options, the best one among the correct ones",
        )
    arguments = _mapping(record, "arguments", where)
    return Aspect(name, tuple(options), arguments, str(best), frozenset(correct))


def _preferences(
    listed: Sequence[tuple[str, Mapping[str, Any]]], cues: Mapping[str, Any], where: str
) -> tuple[Preference, ...]:
    for aspect, entry in listed:
        for key in ("id", "text", "implicit"):
            if not isinstance(entry.get(key), str) or not entry[key].strip():
                raise DataError(
                    f"a preference of {aspect} lacks {key}: {entry!r:.80}",
                    where=where,
                    expected="id, text and implicit, three strings",
                )
    ids = [entry["id"] for _, entry in listed]
    if len(set(ids)) < len(ids):
        raise DataError("a preference id occurs twice", where=where, expected="each id once")
    derived = derived_cues([entry["text"] for _, entry in listed])
    return tuple(
        Preference(
            id=entry["id"],
            aspect=aspect,
            text=entry["text"],
            implicit=entry["implicit"],
            topic=str(entry.get("topic", "")),
            cues=read_cues(cues[entry["id"]], where) if entry["id"] in cues else words,
        )
        for (aspect, entry), words in zip(listed, derived, strict=True)
    )


def _mapping(holder: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = holder.get(key)
    if not isinstance(value, Mapping):
        raise DataError(f"{key} is {value!r:.60}", where=where, expected="a JSON object")
    return value


def _entries(record: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    value = record.get(key)
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise DataError(f"{key} is {value!r:.60}", where=where, expected="a list of JSON objects")
    return value
