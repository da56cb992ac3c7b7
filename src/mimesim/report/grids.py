"""The tables of an evaluation as plain cells, for every format alike: Markdown, LaTeX, HTML, screen.

Scores over gyms are times 100 here, as papers print them, with published rows beneath the run's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mimesim.report.figures import UNKNOWN, percent, percent_range, plain, points, points_range
from mimesim.results import Difference, Estimate, GymAverages, MatrixRow, RunRecord

PUBLISHED = "published"
"""What stands behind the arm of a published row."""


@dataclass(frozen=True, slots=True)
class Grid:
    """One table. `key` names it for references; `notes` stand beneath it."""

    key: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def grids(record: RunRecord) -> tuple[Grid, ...]:
    """Return all tables of an evaluation that hold a row."""
    found = [*matrix_grids(record)]
    if not found:
        found.append(success_grid(record.rows, record.averages))
    found += [difference_grid(record.differences), lost_grid(record)]
    return tuple(grid for grid in found if grid.rows)


def matrix_grids(record: RunRecord) -> tuple[Grid, ...]:
    """Return the report rows of the arms, their scores by gym and by user; none without averages."""
    if not record.arm_averages:
        return ()
    found = (_arms(record), _by_gym(record), _by_user(record))
    return tuple(grid for grid in found if grid.rows)


def success_grid(rows: Sequence[MatrixRow], averages: Sequence[MatrixRow]) -> Grid:
    """Return success in percent, arms by users."""
    users = list(dict.fromkeys(row.user for row in rows))
    arms = dict.fromkeys(row.arm for row in (*averages, *rows))
    at = {(row.arm, row.user): row.success for row in rows}
    mean = {row.arm: row.success for row in averages}
    head = ("Arm", *(["All held-out"] if averages else []), *users)
    body = []
    for arm in arms:
        cells = [at.get((arm, user)) for user in users]
        body.append((arm, *map(_success, ([mean.get(arm)] if averages else []) + cells)))
    return Grid("success", "Success, percent", head, tuple(body))


def difference_grid(differences: Sequence[Difference]) -> Grid:
    """Return the paired differences in points; with p values where they were worked out."""
    tested = any(d.p is not None for d in differences)
    rows = [
        (
            f"{d.arm} against {d.baseline}",
            d.measure,
            points(d.value.value),
            points_range(d.value) or UNKNOWN,
            "yes" if d.value.resolved else "not resolved",
            *(
                (p_value(d.p), p_value(d.p_holm), points_range(d.over_seeds) or UNKNOWN)
                if tested
                else ()
            ),
            str(d.value.n),
        )
        for d in differences
    ]
    more = ("p", "p, Holm", "95 %, seeds") if tested else ()
    head = ("Difference", "Measure", "Points", "95 % interval", "Resolved", *more, "n")
    notes = [f"{d.arm} against {d.baseline}, {d.measure}: {d.note}" for d in differences if d.note]
    return Grid("differences", "Paired differences", head, tuple(rows), tuple(notes * tested))


def lost_grid(record: RunRecord) -> Grid:
    """Return the cells that could not be finished."""
    rows = [(one.arm, str(one.seed), one.gym, one.user, one.reason) for one in record.lost]
    head = ("Arm", "Seed", "Gym", "User", "Why")
    return Grid("lost", "Cells that could not be finished", head, tuple(rows))


def _arms(record: RunRecord) -> Grid:
    head = (
        "Arm",
        "Training seeds",
        "Weighted",
        "95 %, tasks",
        "95 %, seeds",
        "Unweighted",
        "Without Intention",
        "User gyms",
        "Held-in",
        "Held-out",
        "Failures as 0",
        "Not counted, %",
        "Counted",
        "Judge",
        "Search",
    )
    rows = [
        (
            one.arm,
            plain(one.seeds),
            hundred(one.weighted.value),
            _range(one.weighted),
            _range(one.over_seeds),
            hundred(one.unweighted.value),
            hundred(one.without_intention),
            hundred(one.user_gyms),
            hundred(one.held_in),
            hundred(one.held_out),
            hundred(one.weighted_strict),
            percent(one.invalid_rate, 1),
            f"{one.n}/{one.episodes}",
            _judge(one),
            one.search or UNKNOWN,
        )
        for one in record.arm_averages
    ]
    notes = [f"{one.arm}: {text}" for one in record.arm_averages for text in one.warnings]
    return Grid("arms", f"Arms, {_over(record)}, times 100", head, tuple(rows), tuple(notes))


def _by_gym(record: RunRecord) -> Grid:
    gyms = list(dict.fromkeys(gym for one in record.arm_averages for gym in one.gyms))
    rows = [
        (
            one.arm,
            *(hundred(one.gyms.get(gym)) for gym in gyms),
            hundred(one.weighted.value),
            hundred(one.unweighted.value),
        )
        for one in record.arm_averages
    ]
    for ref in record.references:
        rows.append(
            (
                f"{ref.arm} ({PUBLISHED})",
                *(_printed(ref.gyms.get(gym), ref.scale) for gym in gyms),
                _printed(ref.weighted, ref.scale),
                _printed(ref.unweighted, ref.scale),
            )
        )
    head = ("Arm", *gyms, "Weighted", "Unweighted")
    title = f"Scores by gym, {_over(record)}, times 100"
    return Grid("gyms", title, head, tuple(rows), _warned(record))


def _by_user(record: RunRecord) -> Grid:
    users = list(dict.fromkeys(one.user for one in record.gym_averages))
    if len(users) < 2:
        return Grid("users", "", (), ())
    at = {(one.arm, one.user): one.weighted.value for one in record.gym_averages}
    rows = [
        (
            one.arm,
            *(hundred(at.get((one.arm, user))) for user in users),
            hundred(one.weighted.value),
        )
        for one in record.arm_averages
    ]
    for ref in record.references:
        if any(user in ref.users for user in users):
            cells = (_printed(ref.users.get(user), ref.scale) for user in users)
            rows.append((f"{ref.arm} ({PUBLISHED})", *cells, _printed(ref.weighted, ref.scale)))
    head = ("Arm", *users, "Mean")
    return Grid("users", "Weighted average by user, times 100", head, tuple(rows), _warned(record))


def _warned(record: RunRecord) -> tuple[str, ...]:
    """Return in which respects the published rows were made differently."""
    told = record.notes.get("references", "")
    if not record.references or not told:
        return ()
    sources = ", ".join(dict.fromkeys(ref.source for ref in record.references))
    return (f"Published rows ({sources}) are not made alike: {told}",)


def _over(record: RunRecord) -> str:
    users = max(len(one.users) for one in record.arm_averages)
    return f"mean over {users} users" if users > 1 else "one user" if users else "no user"


def _judge(one: GymAverages) -> str:
    return one.judge_mode or one.judge


def hundred(value: float | None) -> str:
    """Return a fraction times 100 with two decimals, as papers print scores."""
    return UNKNOWN if value is None else f"{100 * value:.2f}"


def _printed(value: float | None, scale: float) -> str:
    return UNKNOWN if value is None else f"{100 * value / scale:.2f}"


def _range(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return UNKNOWN
    return f"{hundred(estimate.low)} to {hundred(estimate.high)}"


def _success(estimate: Estimate | None) -> str:
    if estimate is None:
        return UNKNOWN
    bounds = percent_range(estimate)
    return f"{percent(estimate.value)} ({bounds})" if bounds else percent(estimate.value)


def p_value(value: float | None) -> str:
    """Return a p value as people print it."""
    if value is None:
        return UNKNOWN
    return "<0.001" if value < 0.001 else f"{value:.3f}"
