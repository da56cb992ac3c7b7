"""Two sides of a calibration: success by task and trial, under people and under simulated users."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from mimesim.bench.suites.sessions import SessionSet
from mimesim.errors import DataError, UsageError

FEW = 10
"""Outcomes of a task below which a difficulty made from them is called rough."""


@dataclass(frozen=True, slots=True)
class Side:
    """Success of one side.

    Attributes:
        runs: one per trial: task -> success, 0 or 1.
        left_out: reason -> conversations without a place here.
    """

    name: str
    runs: tuple[Mapping[str, float], ...]
    left_out: Mapping[str, int]

    @property
    def rates(self) -> dict[str, float]:
        """Return the mean success of each task over its trials."""
        found: dict[str, list[float]] = defaultdict(list)
        for run in self.runs:
            for task, value in run.items():
                found[task].append(value)
        return {task: math.fsum(values) / len(values) for task, values in found.items()}

    @property
    def n(self) -> int:
        """How many conversations have an outcome."""
        return sum(map(len, self.runs))


def side_of(sessions: SessionSet) -> Side:
    """Return the outcomes of a set; conversations without a task or an outcome are counted out.

    Raises:
        UsageError: none has both, or one trial of a task occurs twice.
    """
    lost = Counter(sessions.left_out)
    runs: dict[int, dict[str, float]] = defaultdict(dict)
    for one in sessions.sessions:
        if one.success is None:
            lost["no_outcome"] += 1
        elif not one.task:
            lost["no_task"] += 1
        elif one.task in runs[one.trial]:
            raise DataError(
                f"trial {one.trial} of task {one.task!r} occurs twice",
                where=sessions.name,
                expected="one conversation for each task and trial",
                mend="give repetitions trial numbers of their own, or join runs under `trial`",
            )
        else:
            runs[one.trial][one.task] = float(one.success)
    if not any(runs.values()):
        told = ", ".join(f"{n} {reason}" for reason, n in lost.items() if n)
        raise UsageError(
            "no conversation with a task and a known success" + (f": {told}" if told else ""),
            where=sessions.name,
            expected="episodes of a gym, or in each dialogue of your own, beside its turns: "
            '"outcome": {"task": "t1", "success": true}',
        )
    ordered = tuple(runs[trial] for trial in sorted(runs) if runs[trial])
    return Side(sessions.name, ordered, dict(lost))


def own_difficulty(*sides: Side) -> tuple[dict[str, float], str]:
    """Return difficulties pooled over all outcomes of all sides, and a warning or nothing.

    The bins then depend on the very outcomes that are compared, which makes the error look smaller
    than frozen bins would.
    """
    pooled: dict[str, list[float]] = defaultdict(list)
    for side in sides:
        for run in side.runs:
            for task, value in run.items():
                pooled[task].append(value)
    fewest = min(len(values) for values in pooled.values())
    warning = "difficulty bins are made from the outcomes themselves"
    if fewest < FEW:
        warning += f", from as few as {fewest} of a task"
    rates = {task: math.fsum(values) / len(values) for task, values in pooled.items()}
    return rates, warning + "; name frozen ones by --difficulty"
