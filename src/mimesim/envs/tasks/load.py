"""Tasks by name: the registry, reading rows, making the environment of one episode.

A registry entry is a `UserTask`. Outsiders add one with an entry point in `mimesim.tasks`; nothing
here knows a particular task. Rows come from the own pack, or from the user's copy of a public row
file; a row that cannot be used is left out, noted with file and line, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from mimesim import jsonio, seeds
from mimesim.corpora.base import Record, Unfit
from mimesim.corpora.places import records
from mimesim.envs.base import Task
from mimesim.envs.packs import SPLITS
from mimesim.envs.tasks.answers import as_object, raw_fields
from mimesim.envs.tasks.base import PREFIX, Row, TaskInfo, UserTask
from mimesim.envs.tasks.env import TaskEnv, TaskOptions
from mimesim.envs.tasks.partner import Partner
from mimesim.errors import ConfigError, DataError, UsageError
from mimesim.judges.base import Judge
from mimesim.registry import Registry, closest

_HERE = "mimesim.envs.tasks"
REGISTRY = Registry(
    "task",
    {
        "fantom": f"{_HERE}.fantom:TASK",
        "hitom": f"{_HERE}.hitom:TASK",
        "paratomi": f"{_HERE}.paratomi:TASK",
        "social_r1": f"{_HERE}.social_r1:TASK",
        "lifechoices": f"{_HERE}.lifechoices:TASK",
        "twinvoice": f"{_HERE}.twinvoice:TASK",
        "behaviorchain": f"{_HERE}.behaviorchain:TASK",
        "mistakes": f"{_HERE}.mistakes:TASK",
        "alignx": f"{_HERE}.alignx:TASK",
        "socsci210": f"{_HERE}.socsci210:TASK",
        "humanllm": f"{_HERE}.humanllm:TASK",
        "userllm": f"{_HERE}.userllm:TASK",
        "mirrorbench": f"{_HERE}.mirrorbench:TASK",
        "humanual_chat": f"{_HERE}.humanual:CHAT",
        "humanual_email": f"{_HERE}.humanual:EMAIL",
        "humanual_news": f"{_HERE}.humanual:NEWS",
        "humanual_politics": f"{_HERE}.humanual:POLITICS",
        "humanual_book": f"{_HERE}.humanual:BOOK",
        "humanual_opinion": f"{_HERE}.humanual:OPINION",
        "sim_doc": f"{_HERE}.sim_doc:TASK",
        "sim_math": f"{_HERE}.sim_math:TASK",
        "sotopia": f"{_HERE}.sotopia:TASK",
        "coser": f"{_HERE}.coser:TASK",
        "turing": f"{_HERE}.turing:TASK",
        "behavior": f"{_HERE}.behavior:TASK",
    },
    group="tasks",
)
"""All tasks."""
_NEEDS = ("info", "read", "open", "react", "oracle", "null")
_SHARES = (0.6, 0.8)
"""Where the train and the validation part of an own pack end."""


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that was left out. `where` is `file:line`."""

    where: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """Tasks read from rows.

    Attributes:
        rejects: rows that could not be used.
        counts: `rows` read, `tasks` made, `other_task` rows of other tasks, and rejects by reason.
    """

    tasks: tuple[Task, ...]
    rejects: tuple[Reject, ...]
    counts: Mapping[str, int]


def load_task(name: str) -> UserTask[Any]:
    """Return the task called `name`.

    Raises:
        UnknownNameError: no such task.
    """
    return cast(UserTask[Any], REGISTRY.load(name, needs=_NEEDS))


def task_of(task: Task) -> UserTask[Any]:
    """Return the task that a task line belongs to.

    Raises:
        UsageError: it is the line of a gym.
        UnknownNameError: no such task.
    """
    if not task.gym.startswith(PREFIX):
        raise UsageError(f"{task.gym!r} is no task", expected=f"a name that begins with {PREFIX}")
    return load_task(task.gym.removeprefix(PREFIX))


def make_env(
    task: Task,
    *,
    judge: Judge | None = None,
    partner: Partner | None = None,
    options: TaskOptions | None = None,
) -> TaskEnv:
    """Make the environment of one episode of `task`; nothing is read and nobody is called.

    Args:
        task: from `load_rows`.
        judge: who gives verdicts; not needed by judge-free tasks.
        partner: who speaks on the other side, where somebody does.
        options: mode and weights of the hack checks.

    Raises:
        UnknownNameError: no such task.
        UsageError: judge or partner is missing.
        ConfigError: the task has no such mode.
    """
    kind = task_of(task)
    check_parties(kind.info, judge, partner, options)
    return TaskEnv(kind, judge=judge, partner=partner, options=options)


def check_parties(
    info: TaskInfo,
    judge: Judge | None,
    partner: Partner | None,
    options: TaskOptions | None = None,
) -> None:
    """Refuse a run that could only fail; see `make_env`.

    Raises:
        UsageError: judge or partner is missing.
        ConfigError: the task has no such mode.
    """
    mend = "name one, e.g. rule (needs no model) or model:<model>"
    if not info.judge_free and judge is None:
        raise UsageError(f"task {info.name!r} needs a judge", mend=mend)
    if info.needs_partner and partner is None:
        raise UsageError(f"task {info.name!r} needs a partner", mend=mend)
    mode = options.mode if options is not None else ""
    if mode and mode not in info.modes:
        raise ConfigError(
            f"task {info.name!r} has no mode {mode!r}{closest(mode, list(info.modes))}",
            expected="one of " + ", ".join(info.modes),
        )


def make_task(name: str, fields: Mapping[str, Any], split: str) -> Task:
    """Return the task line of one row that comes from no file.

    Args:
        name: door name of the task.
        fields: the row, as its schema has it.
        split: train, validation or test.

    Raises:
        UnknownNameError: no such task.
        Unfit: the fields make no row.
    """
    kind = load_task(name)
    return _task(name, kind.read(fields), split)


def load_rows(
    name: str, *, place: str | None = None, split: str = "train", limit: int | None = None
) -> Loaded:
    """Return the tasks of `name`: of the own pack, or of the user's copy of a public row file.

    Args:
        name: door name of the task.
        place: file, folder, glob or `hub:<owner>/<name>[@<split>]` (`corpora.places`); None = the
            own rows. Rows of other tasks in it are passed over.
        split: which part of the own rows (by groups, fixed); the rows of a place are all taken and
            bear this name.
        limit: at most so many tasks, in file order.

    Raises:
        UnknownNameError: no such task.
        UsageError: no such split.
        DataError: the place does not exist, or holds no usable row of this task.
    """
    kind = load_task(name)
    if split not in SPLITS:
        raise UsageError(f"no split {split!r}", expected="one of " + ", ".join(SPLITS))
    rejects: list[Reject] = []

    def reject(where: str, reason: str, detail: str) -> None:
        rejects.append(Reject(where, reason, detail))

    own = place is None
    found = _own_rows(kind.info) if place is None else records(place, on_reject=reject)
    counts: Counter[str] = Counter()
    tasks = list(_tasks(name, found, split, counts, rejects, None if own else limit))
    if own and tasks:
        tasks = [task for task in _parted(tasks) if task.split == split][:limit]
        if not tasks:
            raise DataError(
                f"none of the task's own rows falls into {split!r}",
                where=str(kind.info.rows),
                expected="rows of five groups or more, which are parted 60/20/20",
                mend="add rows, or take the split train",
            )
    counts.update(tasks=len(tasks))
    counts.update(reject.reason for reject in rejects)
    if not tasks:
        first = (
            f"; the first row left out: {rejects[0].where}: {rejects[0].detail}" if rejects else ""
        )
        raise DataError(
            f"no usable row of the task {name!r}{first}",
            where=place or str(kind.info.rows),
            expected="rows with its data_source and fields",
        )
    return Loaded(tuple(tasks), tuple(rejects), dict(counts))


def _own_rows(info: TaskInfo) -> Iterator[Record]:
    for line in jsonio.read_jsonl(info.rows):
        yield Record(f"{info.rows}:{line.number}", line.value)


def _tasks(
    name: str,
    found: Iterable[Record],
    split: str,
    counts: Counter[str],
    rejects: list[Reject],
    limit: int | None,
) -> Iterator[Task]:
    kind, seen = load_task(name), dict[str, str]()
    for where, value in found:
        if limit is not None and len(seen) >= limit:
            return
        counts["rows"] += 1
        try:
            extra = _fields(kind.info, value)
            if extra is None:
                counts["other_task"] += 1
                continue
            row = kind.read(extra)
            task = _task(name, row, split)
            if task.id in seen:
                raise Unfit("duplicate", f"the same row as {seen[task.id]}")
        except Unfit as unfit:
            rejects.append(Reject(where, unfit.reason, unfit.detail))
            continue
        seen[task.id] = where
        yield task


def _fields(info: TaskInfo, value: Any) -> dict[str, Any] | None:
    """Return the fields of a raw row; None = a row of another task.

    Raises:
        Unfit: it is no row.
    """
    if not isinstance(value, Mapping):
        raise Unfit("no_object", "the row is no JSON object")
    source = value.get("data_source")
    if source is not None and not isinstance(source, str):
        raise Unfit("bad_row", "data_source: expected a text")
    if source is not None and not info.owns(source):
        return None
    extra = as_object(value.get("extra_info", value))
    if not isinstance(extra, Mapping):
        raise Unfit("bad_row", "extra_info: expected an object")
    return raw_fields(extra)


def _task(name: str, row: Row, split: str) -> Task:
    """Return the task line of a row; it keeps the door name, by which its task is found again."""
    content = jsonio.canonical([row.public, row.hidden])
    row_id = row.id or seeds.fingerprint(content, 12)
    return Task(
        gym=PREFIX + name,
        id=f"{load_task(name).info.name}-{row_id}",
        split=split,
        groups=row.groups or (f"row:{row_id}",),
        public=row.public,
        hidden=row.hidden,
        meta={"policy": "user", "schema": 1},
    )


def _parted(tasks: list[Task]) -> list[Task]:
    """Give every group of the own rows its split: 60, 20 and 20 per cent, by hash."""
    first = {task.groups[0] for task in tasks}
    order = sorted(first, key=lambda group: seeds.derive(0, "task-split", group))
    ends = [round(share * len(order)) for share in _SHARES]
    split_of = {g: SPLITS[sum(place >= end for end in ends)] for place, g in enumerate(order)}
    return [replace(task, split=split_of[task.groups[0]]) for task in tasks]


def describe_tasks() -> list[dict[str, Any]]:
    """Return one plain object per task; an extension that cannot be described is left out."""
    return REGISTRY.each(describe_task)


def describe_task(name: str) -> dict[str, Any]:
    """Return the facts of one task as a plain object.

    Raises:
        UnknownNameError: no such task.
    """
    info = load_task(name).info
    return {
        "name": info.name,
        "axis": info.axis,
        "judge_free": info.judge_free,
        "partner": info.needs_partner,
        "turns": info.turns,
        "answer": info.answer,
        "modes": list(info.modes),
        "floor": info.floor,
        "ceiling": info.ceiling,
        "data_source": list(dict.fromkeys((info.name, *info.sources))),
        "rows": sum(1 for _ in jsonio.read_jsonl(info.rows)),
        "summary": info.summary,
    }
