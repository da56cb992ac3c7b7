"""Which tasks a user is trained and measured on: several in one run, each with its share.

The rows of a task are its own, or the user's copy of a public file; behavior scenarios are composed
without limit. Which prompt comes when depends on the seed alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from mimesim.config.build import HUB
from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, SHARE, check_ranges
from mimesim.envs.base import GymEnv, Task
from mimesim.envs.tasks.env import TaskOptions
from mimesim.envs.tasks.load import (
    REGISTRY,
    check_parties,
    load_rows,
    load_task,
    make_env,
    make_task,
)
from mimesim.envs.tasks.partner import Partner, make_partner
from mimesim.errors import ConfigError, DataError
from mimesim.judges.base import Judge
from mimesim.judges.behavior_rules import has_rules
from mimesim.judges.load import make_judge
from mimesim.scenarios import manual
from mimesim.scenarios.compose import compose
from mimesim.scenarios.views import to_view
from mimesim.seeds import derive, generator

BEHAVIOR_TASK = "behavior"
"""Door name of the task whose rows are composed."""
NEUTRAL = "neutral"
_HELD_OUT_RULE = "rule-heldout"
_LOOKED_AT = 200
"""Rows of a task that `check_run` reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPart:
    """One task of a run.

    Attributes:
        name: door name of the task.
        weight: its share of the prompts, relative to the others.
        rows: file, folder or hub id of a row file; "" = the own rows, or composed scenarios.
        limit: most rows read; 0 = all.
        judge: who rewards. held_out_judge: who scores before and after; "" = the same, whose score
            a policy may have learnt to please.
        partner: who speaks on the other side.
        mode: way to score; "" = the task's default.
        hack_weights: hack check -> how much of the reward it takes away; empty = logged only.
    """

    name: str
    weight: float = 1.0
    rows: str = ""
    limit: int = 0
    judge: str = "rule"
    held_out_judge: str = ""
    partner: str = "rule"
    mode: str = ""
    hack_weights: Mapping[str, float] = field(default_factory=dict)
    judge_options: Mapping[str, Any] = field(default_factory=dict)
    partner_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that make no share.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, POSITIVE, "weight")
        check_ranges(self, NATURAL, "limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneConfig:
    """The behavior scenarios that are composed where no row file is named.

    Attributes:
        manual: company manual, as `scenarios.manual.load` takes it.
        behaviors: as `scenarios.compose.Options`: `all`, `annotated`, or ids joined by commas.
        neutral_share: share of rows without a behavior.
        replay: none, identity or cut: what was said before the first message.
        turn_budget: most messages of the customer.
    """

    manual: str = "company"
    behaviors: str = "all"
    neutral_share: float = 1 / 3
    replay: str = "identity"
    turn_budget: int = 8

    def __post_init__(self) -> None:
        """Refuse numbers that make no scenario.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, SHARE, "neutral_share")
        check_ranges(self, COUNT, "turn_budget")


def check_parts(parts: Sequence[TaskPart]) -> None:
    """Refuse a mixture that cannot be drawn from.

    Raises:
        ConfigError: no task, or one of them twice.
    """
    names = [part.name for part in parts]
    if not names:
        raise ConfigError("'tasks' is empty", expected="at least one task")
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"'tasks' names {name!r} twice", expected="every task once")


def check_run(parts: Sequence[TaskPart], scenes: SceneConfig, *, scored: bool) -> None:
    """Refuse a run that could only fail, before a folder is made or weights are read.

    Args:
        parts: the mixture; rows on the hub are not looked at.
        scenes: what is composed.
        scored: whether held-out rows are scored.

    Raises:
        UsageError: a name that nobody has, a task without rows, a judge that must stay silent.
    """
    for held_out in (False, True) if scored else (False,):
        asyncio.run(Stage(parts, held_out=held_out).aclose())
        judges = judge_names(parts, held_out=held_out)
        for part in parts:
            rows: Sequence[Task] = ()
            if not part.rows.startswith(HUB):
                rows = rows_of(part, "test" if held_out else "train", scenes, _LOOKED_AT, 0)
            _check_judge(part.name, judges[part.name], rows)


def _check_judge(name: str, judge: str, rows: Iterable[Task]) -> None:
    """Refuse a judge by rules for a task, or for a behavior, that brings no rules for it.

    Raises:
        ConfigError: its every verdict would be missing.
    """
    mend = "name a model, model:<model>"
    if name != BEHAVIOR_TASK:
        if judge == _HELD_OUT_RULE and name in REGISTRY.builtin:
            raise ConfigError(f"task {name!r} brings no rules for judge {judge!r}", mend=mend)
        return
    if judge not in ("rule", _HELD_OUT_RULE):
        return
    for behavior in {str(row.public["behavior"]) for row in rows if row.public.get("behavior")}:
        if not has_rules(behavior):
            raise ConfigError(
                f"judge {judge!r} has no rules for behavior {behavior!r}",
                where=f"task {name!r}",
                expected="B1 to B13",
                mend=f"{mend}, as judge and held_out_judge, or leave that behavior out",
            )


def judge_names(parts: Sequence[TaskPart], *, held_out: bool = False) -> dict[str, str]:
    """Return who judges each task; "" where nobody does."""
    names = {}
    for part in parts:
        judge = part.held_out_judge if held_out and part.held_out_judge else part.judge
        names[part.name] = "" if load_task(part.name).info.judge_free else judge
    return names


class Stage:
    """The tasks of a run with their judges and partners; close it afterwards.

    Args:
        parts: the mixture.
        held_out: let the held-out judges score instead of those that reward.
    """

    def __init__(self, parts: Sequence[TaskPart], *, held_out: bool = False) -> None:
        self._judges: dict[str, Judge | None] = {}
        self._partners: dict[str, Partner | None] = {}
        self._options: dict[str, TaskOptions] = {}
        names = judge_names(parts, held_out=held_out)
        for part in parts:
            info = load_task(part.name).info
            # What was given for one judge does not fit another.
            given = part.judge_options if names[part.name] == part.judge else {}
            judge = make_judge(names[part.name], options=given) if names[part.name] else None
            partner = None
            if info.needs_partner:
                partner = make_partner(part.partner, options=part.partner_options or None)
            options = TaskOptions(part.mode, {} if held_out else part.hack_weights)
            check_parties(info, judge, partner, options)
            self._judges[part.name] = judge
            self._partners[part.name] = partner
            self._options[part.name] = options

    def make(self, task: Task, user: object = None) -> GymEnv:
        """Make the environment of one episode; nobody sits in the seat of a gym's user."""
        del user
        name = task_name(task)
        env = make_env(
            task,
            judge=self._judges[name],
            partner=self._partners[name],
            options=self._options[name],
        )
        return cast(GymEnv, env)

    async def aclose(self) -> None:
        """Release judges and partners."""
        for party in (*self._judges.values(), *self._partners.values()):
            if party is not None:
                await party.aclose()


def task_name(task: Task) -> str:
    """Return the door name of the task that a task line belongs to."""
    return task.gym.partition(":")[2]


def rows_of(
    part: TaskPart, split: str, scenes: SceneConfig, count: int, seed: int
) -> tuple[Task, ...]:
    """Return rows of a task: read, or composed where it is the behavior task without a file.

    Args:
        part: which task, and where its rows are.
        split: train, validation or test.
        scenes: what is composed.
        count: most rows; a composed row that came to nothing is not replaced.
        seed: of composed rows.

    Raises:
        DataError: there is none.
    """
    if part.name == BEHAVIOR_TASK and not part.rows:
        return composed(scenes, split, count, seed)
    loaded = load_rows(part.name, place=part.rows or None, split=split, limit=part.limit or None)
    return loaded.tasks[:count]


def composed(scenes: SceneConfig, split: str, count: int, seed: int) -> tuple[Task, ...]:
    """Return composed rows of the behavior task.

    Raises:
        ConfigError: a manual, share or behavior that makes no sense.
        DataError: none of the draws made a row.
    """
    found = compose(
        manual.load(scenes.manual),
        seed=derive(seed, "scenes"),
        count=count,
        split=split,
        behaviors=scenes.behaviors,
        neutral_share=scenes.neutral_share,
        replay=scenes.replay,
        turn_budget=scenes.turn_budget,
    )
    if count and not found.rows:
        raise DataError(
            f"none of {count} scenarios could be composed for split {split!r}",
            where="scenes",
            expected="behaviors that fit the manual, the replay and the turn budget",
            mend="allow more behaviors or turns, or take another seed",
        )
    return tuple(
        make_task(BEHAVIOR_TASK, {**to_view(row), "manual": scenes.manual}, split)
        for row in found.rows
    )


def schedule(
    parts: Sequence[TaskPart], tasks: Mapping[str, Sequence[Task]], count: int, seed: int
) -> list[Task]:
    """Return the prompts of a run in order.

    At any point every task has had its share, to within one prompt. The rows of a task are
    shuffled, and again whenever all of them were met.

    Args:
        parts: the mixture.
        tasks: rows by task name, none empty.
        count: prompts wanted.
        seed: of the order.
    """
    total = sum(part.weight for part in parts)
    streams = {part.name: _endless(tasks[part.name], seed, part.name) for part in parts}
    given = dict.fromkeys(streams, 0)
    prompts = []
    for place in range(1, count + 1):
        due = max(parts, key=lambda part: part.weight / total * place - given[part.name])
        given[due.name] += 1
        prompts.append(next(streams[due.name]))
    return prompts


def _endless(tasks: Sequence[Task], seed: int, name: str) -> Iterator[Task]:
    round_ = 0
    while True:
        order = list(tasks)
        generator(seed, "task-order", name, round_).shuffle(order)
        yield from order
        round_ += 1
