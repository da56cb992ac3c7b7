"""What every gym's reader of UserRL data says, and the few things they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mimesim.envs.base import Task
from mimesim.errors import DataError

UNSPLIT = ""
"""The split of a task that is not placed yet."""
LICENSE = "as the user's copy says; the repository is Apache-2.0, some texts have other origins"


class Record(NamedTuple):
    """One record of a task file. `file` is the name of the file without its ending."""

    file: str
    key: str
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """Where the tasks of a gym lie in a copy, and how they are read.

    Attributes:
        gym: its name here.
        group: what tasks share that share a group, in words.
        files: its task files below the copy.
        folders: those that hold `train.parquet` and `test.parquet`.
        names: field of `reward_model` that names a task in those; compared without case.
        records: file name and JSON document -> its records.
        task: record -> task without a split; raises `DataError`.
        name_of: record -> what `names` calls it.
        from_row: whether a row of a table holds a whole record, so that no task file is needed.
        regroup: tasks -> their groups, where one task does not tell.
        evaluation_only: whether no task may be trained on.
    """

    gym: str
    group: str
    files: tuple[str, ...]
    folders: tuple[str, ...]
    records: Callable[[str, Any], Iterable[Record]]
    task: Callable[[Record], Task]
    names: str = "id"
    name_of: Callable[[Record], str] = lambda record: record.key
    from_row: Callable[[Mapping[str, Any]], Record] | None = None
    regroup: Callable[[Sequence[Task]], Sequence[tuple[str, ...]]] | None = None
    evaluation_only: bool = False


def listed(file: str, document: Any) -> Iterable[Record]:
    """Return the records of a list of objects with an `id`."""
    return (Record(file, text(value, "id", file), value) for value in _objects(file, document))


def keyed(file: str, document: Any) -> Iterable[Record]:
    """Return the records of an object key -> record.

    Raises:
        DataError: it is none.
    """
    if not isinstance(document, Mapping):
        raise DataError("not a JSON object", where=file, expected="key -> record")
    _objects(file, list(document.values()))
    return (Record(file, str(key), value) for key, value in document.items())


def _objects(file: str, values: Any) -> list[Mapping[str, Any]]:
    if not isinstance(values, list) or not all(isinstance(value, Mapping) for value in values):
        raise DataError("not a list of JSON objects", where=file, expected="one object per task")
    return values


def text(value: Mapping[str, Any], key: str, where: str) -> str:
    """Return a field that must be a text with something in it.

    Raises:
        DataError: it is not.
    """
    found = value.get(key)
    if not isinstance(found, str) or not found.strip():
        raise DataError(f"{key} is {found!r:.60}", where=where, expected="a text")
    return found


def made(
    gym: str,
    record: Record,
    *,
    groups: Sequence[str],
    public: Mapping[str, Any],
    hidden: Mapping[str, Any],
    goal: str = "none",
) -> Task:
    """Return a task with what all loaded ones have.

    Args:
        gym: its name here.
        record: what it is made from.
        groups: names of what it shares with others.
        public: what the agent may see.
        hidden: all else; the scenario is added. Cues in it are marked as derived.
        goal: of the person, private.
    """
    name = f"userrl-{gym}-{record.key}"
    meta = {"source": "userrl", "license": LICENSE, "schema": 1, "key": record.key}
    scenario = {"id": name, "goal": goal, "meta": {"profile": "asked"}}
    return Task(
        gym=gym,
        id=name,
        split=UNSPLIT,
        groups=tuple(groups),
        public=public,
        hidden={**hidden, "scenario": scenario},
        meta={**meta, **({"cues": "derived"} if {"cues", "counterpoints"} & set(hidden) else {})},
    )
