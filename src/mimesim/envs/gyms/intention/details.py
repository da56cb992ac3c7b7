"""The open details of a vague task, as the gym `intention` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.gyms.intention.scoring import WORTH, attainable
from mimesim.envs.turns.cues import Cue, read_cue
from mimesim.errors import DataError


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing that a task leaves open.

    Attributes:
        inquiry: a question that asks for it.
        answer: what the person has in mind; "" = one of `options`, drawn for each episode.
        cue: words by which a question is known to ask for it.
    """

    id: int | str
    description: str
    importance: int
    inquiry: str
    options: tuple[str, ...]
    answer: str
    cue: Cue

    def record(self) -> dict[str, Any]:
        """Return all that the original shows its user model."""
        return {
            "description": self.description,
            "importance": self.importance,
            "inquiry": self.inquiry,
            "options": list(self.options),
        }


def read_details(task: Task) -> tuple[Detail, ...]:
    """Return the open details of a task.

    Raises:
        DataError: it lacks something, or holds something else.
    """
    where = f"task {task.id!r}"
    for key in ("category", "task"):
        _text(task.public, key, where)
    listed, cues = task.hidden.get("details"), task.hidden.get("cues")
    if not isinstance(listed, list | tuple) or not listed:
        raise DataError("hidden.details is missing", where=where, expected="a list of details")
    if not isinstance(cues, Mapping):
        raise DataError("hidden.cues is missing", where=where, expected="id -> keyword groups")
    details = tuple(_detail(entry, cues, where) for entry in listed)
    if len({str(detail.id) for detail in details}) != len(details):
        raise DataError("hidden.details: an id occurs twice", where=where)
    return details


def check(task: Task) -> list[str]:
    """Return what `public` must not hold.

    Raises:
        DataError: an episode could not read the task.
    """
    details = read_details(task)
    return [text for d in details for text in (d.description, d.inquiry, d.answer) if text]


def best(task: Task) -> float:
    """Return the most that can be won.

    Raises:
        DataError: an episode could not read the task.
    """
    return attainable([detail.importance for detail in read_details(task)])


def _detail(entry: Any, cues: Mapping[str, Any], where: str) -> Detail:
    if not isinstance(entry, Mapping) or type(entry.get("id")) not in (int, str):
        raise DataError(f"a detail is {entry!r:.60}", where=where, expected="an object with an id")
    where = f"{where}, detail {entry['id']!r}"
    importance, options = entry.get("importance"), entry.get("options", ())
    if type(importance) is not int or importance not in WORTH:
        raise DataError(f"importance is {importance!r}", where=where, expected="1, 2 or 3")
    if not isinstance(options, list | tuple) or not all(isinstance(o, str) and o for o in options):
        raise DataError(f"options is {options!r:.60}", where=where, expected="a list of texts")
    return Detail(
        entry["id"],
        _text(entry, "description", where),
        importance,
        _text(entry, "inquiry", where),
        tuple(options),
        _text(entry, "answer", where) if "answer" in entry else "",
        read_cue(cues.get(str(entry["id"])), where=where),
    )


def _text(values: Mapping[str, Any], key: str, where: str) -> str:
    value = values.get(key)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{key} is {value!r:.60}", where=where, expected="a text")
    return value
