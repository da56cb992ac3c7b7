"""Task files: one task per line, read strictly, written stably, checked as a pack.

A pack is sound when its ids are unique, no group occurs in two splits, nothing hidden stands in
`public` and every task can be won. What a secret is and what can be won, each gym says itself
(`envs.load.check_tasks`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.envs.base import Task
from mimesim.errors import DataError
from mimesim.registry import closest
from mimesim.scenarios.rows import refuse_row

SPLITS = ("train", "validation", "test")
_TYPES: dict[str, type] = {
    "gym": str,
    "id": str,
    "split": str,
    "groups": list,
    "public": dict,
    "hidden": dict,
    "meta": dict,
}


def read_tasks(path: Path | str) -> list[Task]:
    """Read a task file; ids must be unique within a gym.

    Raises:
        DataError: missing file, or a bad line with its number.
    """
    tasks: list[Task] = []
    seen: dict[tuple[str, str], int] = {}
    for line in jsonio.read_jsonl(path):
        where = f"{path}:{line.number}"
        task = task_from_json(line.value, where)
        first = seen.setdefault((task.gym, task.id), line.number)
        if first != line.number:
            raise DataError(f"id {task.id!r} stands in line {first} too", where=where)
        tasks.append(task)
    return tasks


def write_tasks(path: Path | str, tasks: Iterable[Task]) -> int:
    """Write a task file, replacing it as a whole; return the number of tasks."""
    lines = [jsonio.dumps(task_to_json(task)) + "\n" for task in tasks]
    jsonio.write_text(path, "".join(lines))
    return len(lines)


def task_to_json(task: Task) -> dict[str, Any]:
    """Return the JSON values of one line."""
    return {
        "gym": task.gym,
        "id": task.id,
        "split": task.split,
        "groups": list(task.groups),
        "public": dict(task.public),
        "hidden": dict(task.hidden),
        "meta": dict(task.meta),
    }


def task_from_json(value: Any, where: str) -> Task:
    """Read one line strictly.

    Raises:
        DataError: an unknown or missing key, a wrong type, no group, an unknown split.
    """
    if not isinstance(value, Mapping):
        raise DataError("a task line is no JSON object", where=where, expected="one object")
    refuse_row(value, where)
    for key in value:
        if key not in _TYPES:
            raise DataError(
                f"unknown key {key!r}{closest(key, list(_TYPES))}",
                where=where,
                expected="keys among " + ", ".join(_TYPES),
            )
    for key, kind in _TYPES.items():
        if not isinstance(value.get(key, {} if key == "meta" else None), kind):
            raise DataError(
                f"{key} is {value.get(key)!r:.60}", where=where, expected=f"a JSON {kind.__name__}"
            )
    if not isinstance(value["hidden"].get("scenario", {}), Mapping):
        raise DataError("hidden.scenario is no JSON object", where=where, expected="a scenario")
    groups = value["groups"]
    if not groups or not all(isinstance(group, str) and group for group in groups):
        raise DataError(f"groups is {groups!r:.60}", where=where, expected="one name at least")
    if value["split"] not in SPLITS:
        raise DataError(
            f"split is {value['split']!r}", where=where, expected="one of " + ", ".join(SPLITS)
        )
    if not value["id"] or not value["gym"]:
        raise DataError("gym or id is empty", where=where, expected="two names")
    return Task(
        gym=value["gym"],
        id=value["id"],
        split=value["split"],
        groups=tuple(groups),
        public=value["public"],
        hidden=value["hidden"],
        meta=value.get("meta", {}),
    )


def problems(tasks: Iterable[Task]) -> list[str]:
    """Return what is wrong with a pack whatever its gym: shared groups, equal hidden targets."""
    found: list[str] = []
    split_of: dict[tuple[str, str], str] = {}
    hidden: dict[tuple[str, str], str] = {}
    ids: set[tuple[str, str]] = set()
    for task in tasks:
        if (task.gym, task.id) in ids:
            found.append(f"task {task.id!r}: the id occurs twice")
        ids.add((task.gym, task.id))
        for group in task.groups:
            first = split_of.setdefault((task.gym, group), task.split)
            if first != task.split:
                found.append(f"group {group!r} occurs in {first} and in {task.split}")
        target = jsonio.canonical(task.hidden)
        twin = hidden.setdefault((task.gym, target), task.id)
        if twin != task.id:
            found.append(f"task {task.id!r}: the same hidden side as {twin!r}")
    return list(dict.fromkeys(found))


def fold(text: str) -> str:
    """Fold text for comparison: NFKC, case, white space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def holds_string(text: str, secret: str) -> bool:
    """Tell whether `secret` occurs in `text`; under 4 characters it must stand on word borders."""
    folded, wanted = fold(text), fold(secret)
    if not wanted:
        return False
    if len(wanted) >= 4:
        return wanted in folded
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", folded) is not None


def public_text(task: Task) -> str:
    """Return every string of `task.public`, one per line."""
    return "\n".join(_strings(task.public))


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)
    elif value is not None:
        yield str(value)
