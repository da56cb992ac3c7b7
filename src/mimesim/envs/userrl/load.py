"""From a copy of UserRL to tasks: files, tables with the published splits, and our own split.

By default groups decide the split (`envs.turns.splits`), so that nothing of a test task was trained
on; `split_source="userrl"` keeps the published one, and the result says how contaminated it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mimesim.corpora import raw
from mimesim.envs.base import Task
from mimesim.envs.load import load_gym
from mimesim.envs.packs import fold
from mimesim.envs.turns.splits import split_of
from mimesim.envs.userrl.base import Record, Source
from mimesim.envs.userrl.overlap import Contamination, contamination
from mimesim.errors import DataError, EnvironmentFault, UsageError
from mimesim.jsonio import read_json
from mimesim.registry import Registry

SOURCES = Registry(
    "gym of UserRL",
    {
        gym: f"mimesim.envs.userrl.{gym}:SOURCE"
        for gym in (
            *("function", "intention", "persuade", "search"),
            *("tau", "telepathy", "travel", "turtle"),
        )
    },
)
"""The gyms whose data can be loaded."""
SPLIT_SOURCES = ("groups", "userrl")
_PUBLISHED = ("train", "test")


@dataclass(frozen=True, slots=True)
class Loaded:
    """Tasks of one gym.

    Attributes:
        tasks: in the order of the files.
        left_out: reason -> records that gave no task.
        contamination: of the published split; None where groups decide.
    """

    tasks: tuple[Task, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    contamination: Contamination | None = None


def load_userrl(
    root: Path | str, gym: str, split: str | None = None, split_source: str = "groups"
) -> Loaded:
    """Return the tasks of a gym from a copy of the UserRL repository.

    Args:
        root: the copy.
        gym: name of the gym here, e.g. `persuade`.
        split: train, validation or test; None = all.
        split_source: `groups`, or `userrl` for the published split.

    Raises:
        UnknownNameError: no such gym.
        UsageError: no such split source.
        DataError: no file of this gym in the copy, or none of its records can be used.
        MissingExtraError: a table has to be read and pyarrow is not installed.
    """
    if split_source not in SPLIT_SOURCES:
        raise UsageError(
            f"no split source {split_source!r}", expected="one of " + ", ".join(SPLIT_SOURCES)
        )
    source: Source = SOURCES.load(gym)
    place = Path(root)
    left_out: Counter[str] = Counter()
    records = list(_records(source, place))
    made = _made(source, records, left_out)
    if split_source == "userrl":
        published = {
            fold(str(reward.get(source.names, ""))): name for name, reward in _rows(source, place)
        }
        left_out["published, but not in the task files"] += len(
            published.keys() - {fold(source.name_of(record)) for record in records}
        )
        tasks = _published(published, made, left_out)
    else:
        tasks = _grouped(source, [task for _, task in made], left_out)
    if not tasks:
        why = ", ".join(f"{reason} ({n})" for reason, n in left_out.items() if n)
        raise DataError(f"no task of gym {gym!r} can be used", where=str(root), expected=why)
    found = contamination(gym, source.group, tasks) if split_source == "userrl" else None
    chosen = tuple(task for task in tasks if split in (None, task.split))
    return Loaded(chosen, {reason: n for reason, n in left_out.items() if n}, found)


def _records(source: Source, root: Path) -> Iterator[Record]:
    """Yield the records of all task files, or of the tables where those hold whole records."""
    files = [root / name for name in source.files if (root / name).is_file()]
    if files:
        for file in files:
            yield from source.records(file.stem, read_json(file))
    elif source.from_row is not None:
        for _, reward in _rows(source, root):
            yield source.from_row(reward)
    else:
        raise DataError(
            f"no task file of gym {source.gym!r}",
            where=str(root),
            expected=source.files[0],
            mend="name the folder of a whole checkout of UserRL",
        )


def _made(
    source: Source, records: Sequence[Record], left_out: Counter[str]
) -> list[tuple[str, Task]]:
    """Return what the tables call each task, and the task."""
    found = []
    seen: set[str] = set()
    for record in records:
        try:
            task = source.task(record)
            _check(task)
        except DataError as error:
            left_out[f"unusable: {_without_place(error)}"] += 1
            continue
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            left_out[
                f"unusable: a value of another kind than expected ({type(error).__name__})"
            ] += 1
            continue
        if task.id in seen:
            left_out["id seen before"] += 1
            continue
        seen.add(task.id)
        found.append((fold(source.name_of(record)), task))
    if source.regroup is None:
        return found
    groups = source.regroup([task for _, task in found])
    return [
        (name, replace(task, groups=own)) for (name, task), own in zip(found, groups, strict=True)
    ]


def _check(task: Task) -> None:
    """Let the gym read the task; tasks of tau-bench can be checked only where that is.

    Raises:
        DataError: it cannot be played.
    """
    with suppress(EnvironmentFault):
        load_gym(task.gym).secrets(task)


def _without_place(error: DataError) -> str:
    """Return what is wrong without saying where, so that like faults are counted together."""
    return error.what


def _grouped(source: Source, tasks: Sequence[Task], left_out: Counter[str]) -> list[Task]:
    """Place tasks by their groups; those whose groups belong to several splits are left out."""
    found = []
    for task in tasks:
        splits = {split_of(source.gym, group) for group in task.groups}
        if source.evaluation_only:
            splits = {"test"}
        if len(splits) > 1:
            left_out["groups of several splits"] += 1
        else:
            found.append(replace(task, split=splits.pop()))
    return found


def _published(
    published: Mapping[str, str], made: Sequence[tuple[str, Task]], left_out: Counter[str]
) -> list[Task]:
    """Place tasks as the tables do; those that they do not name are left out."""
    left_out["not in the published split"] += sum(name not in published for name, _ in made)
    return [replace(task, split=published[name]) for name, task in made if name in published]


def _rows(source: Source, root: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield split and `reward_model` of every row of the tables.

    Raises:
        DataError: there is no table, or one is damaged.
    """
    files = [
        (split, root / folder / f"{split}.parquet")
        for folder in source.folders
        for split in _PUBLISHED
    ]
    there = [(split, file) for split, file in files if file.is_file()]
    if not there:
        raise DataError(
            f"no published split of gym {source.gym!r}",
            where=str(root),
            expected=f"{source.folders[0]}/test.parquet",
        )
    for split, file in there:
        for record in raw.parquet(raw.Source(str(file), file), _refuse):
            reward = record.value.get("reward_model")
            if not isinstance(reward, Mapping):
                _refuse(record.where, "missing_keys", "no reward_model")
            yield split, reward


def _refuse(where: str, reason: str, detail: str) -> None:
    raise DataError(f"{reason}: {detail}", where=where, expected="a table of UserRL")
