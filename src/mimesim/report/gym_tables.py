"""Scores by gym and the averages over gyms, arranged as one table per user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mimesim.report.figures import UNKNOWN, percent
from mimesim.results import Estimate, GymAverages, MatrixRow, RunRecord

_NOBODY = "none"  # the user of a gym in which nobody is talked to


class Scored(NamedTuple):
    """One cell: a score, and what must be read with it."""

    value: str
    note: str = ""


class Line(NamedTuple):
    """One line of a table: a gym, or an average over gyms."""

    name: str
    cells: tuple[Scored, ...]
    average: bool = False


@dataclass(frozen=True, slots=True)
class GymTable:
    """Everything under one user and one judge. `arms` are the columns.

    Attributes:
        warnings: what makes the averages partial or not reportable, each once.
    """

    user: str
    judge: str
    arms: tuple[str, ...]
    lines: tuple[Line, ...]
    warnings: tuple[str, ...]


def gym_tables(record: RunRecord) -> tuple[GymTable, ...]:
    """Return one table per user; none where the record is not one over gyms."""
    users = dict.fromkeys(one.user for one in record.gym_averages)
    return tuple(_table(record, user) for user in users)


def _table(record: RunRecord, user: str) -> GymTable:
    mine = [one for one in record.gym_averages if one.user == user]
    rows = {(row.gym, row.arm): row for row in record.rows if row.user in (user, _NOBODY)}
    lines = [
        Line(gym, tuple(_cell(rows.get((gym, one.arm))) for one in mine))
        for gym in dict.fromkeys(gym for gym, _ in rows)
    ]
    lines += [
        Line(name, tuple(cells), average=True)
        for name, *cells in zip(_AVERAGES, *map(_averages, mine), strict=True)
    ]
    return GymTable(
        user=user,
        judge=mine[0].judge,
        arms=tuple(one.arm for one in mine),
        lines=tuple(lines),
        warnings=tuple(dict.fromkeys(w for one in mine for w in one.warnings)),
    )


def _cell(row: MatrixRow | None) -> Scored:
    if row is None:
        return Scored(UNKNOWN)
    notes = [f"{percent(row.success.value)} % success"] if row.success.value is not None else []
    counting, floor = row.counting, row.floor
    if counting is not None and row.invalid_rate:
        faults = [f"{name} {percent(v, 1)} %" for name, v in counting.faults.items() if v]
        notes.append(f"not counted {percent(row.invalid_rate, 1)} % ({', '.join(faults)})")
        notes.append(f"as 0: {_score(counting.strict)}")
    if floor is not None and floor.null > 0:
        notes.append(f"null agent {_score(floor.null)}, above it {_score(floor.corrected)}")
    if row.note:
        notes.append(row.note)
    return Scored(_score(row.reward.value), "; ".join(notes))


_AVERAGES = (
    "average, weighted",
    "not counted as 0",
    "unweighted",
    "without intention",
    "gyms with a user",
    "held-in gyms",
    "held-out gyms",
)


def _averages(one: GymAverages) -> tuple[Scored, ...]:
    return (
        Scored(_score(one.weighted.value), _range(one.weighted)),
        Scored(_score(one.weighted_strict)),
        Scored(_score(one.unweighted.value), _range(one.unweighted)),
        Scored(_score(one.without_intention)),
        Scored(_score(one.user_gyms)),
        Scored(_score(one.held_in)),
        Scored(_score(one.held_out)),
    )


def _range(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{estimate.low:.3f} to {estimate.high:.3f}"


def _score(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3f}"
