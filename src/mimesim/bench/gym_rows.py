"""Rows and averages of the matrix over gyms, from what was played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mimesim import stats
from mimesim.bench import averages
from mimesim.bench.averages import Played
from mimesim.results import Estimate, GymAverages, MatrixRow

NOBODY = "none"
"""What stands for the user, or the judge, of a gym that has none."""
_NULL = "null"


@dataclass(frozen=True, slots=True)
class GymCell:
    """What one agent did in one gym under one user.

    Attributes:
        clusters: task -> what is resampled as one.
        attainable: task -> the most that could be had.
        known_null: task -> what doing nothing is known to earn, where that was published.
        settings: what the numbers cannot be compared without.
    """

    gym: str
    arm: str
    agent: str
    user: str
    judge: str
    episodes: tuple[Played, ...]
    clusters: Mapping[str, str]
    attainable: Mapping[str, float]
    known_null: Mapping[str, float]
    settings: Mapping[str, Any]


def row_of(cell: GymCell, null: Mapping[str, float]) -> MatrixRow:
    """Return the row of a cell.

    Args:
        cell: what was played.
        null: score of the null agent by task, as far as it is known.
    """
    counted = averages.counting(cell.episodes)
    scores = averages.task_scores(cell.episodes)
    won = [(e.task, e.success) for e in cell.episodes if e.success is not None]
    pairs = averages.successes(cell.episodes)
    rollouts = len(cell.episodes) // max(1, len(cell.clusters))
    success = stats.rate_ci([s for _, s in won], [cell.clusters[task] for task, _ in won])
    shares = [averages.normalized(v, cell.attainable[task]) for task, v in scores.items()]
    return MatrixRow(
        arm=cell.arm,
        user=cell.user,
        success=Estimate.of(success),
        agent=cell.agent,
        judge=cell.judge,
        gym=cell.gym,
        profile=", ".join(cell.settings["profiles"]),
        n=counted.counted,
        seeds=(int(cell.settings["seed"]),),
        reward=Estimate.of(
            stats.mean_ci(list(scores.values()), [cell.clusters[t] for t in scores])
        ),
        success_strict=sum(s for _, s in won) / counted.episodes if counted.episodes else None,
        invalid_rate=counted.invalid_rate,
        note="" if counted.reportable else "not reportable",
        counting=counted,
        floor=averages.above_floor(scores, null),
        pass_k={str(k): stats.pass_k(pairs, k).value for k in range(1, rollouts + 1)},
        of_attainable=sum(shares) / len(shares) if shares else None,
        settings=cell.settings,
    )


def null_scores(cell: GymCell, cells: Sequence[GymCell]) -> dict[str, float]:
    """Return what doing nothing earned under the same user, or is known to earn."""
    found: dict[str, float] = {}
    for other in cells:
        if (other.gym, other.user, other.agent) == (cell.gym, cell.user, _NULL):
            found |= averages.task_scores(other.episodes)
    return {**found, **cell.known_null}


def averages_of(arm: str, user: str, cells: Sequence[GymCell]) -> GymAverages:
    """Return the averages of one arm under one user.

    Args:
        arm: label of the arm.
        user: door name of the user.
        cells: of that arm and user, and of gyms where nobody is talked to.
    """
    scores = {cell.gym: averages.gym_score(cell.episodes) for cell in cells}
    counted = {cell.gym: averages.counting(cell.episodes) for cell in cells}
    means = averages.averages(scores)
    strict = averages.averages({gym: one.strict for gym, one in counted.items()})
    judges = sorted({cell.judge for cell in cells} - {NOBODY})
    return GymAverages(
        arm=arm,
        agent=cells[0].agent,
        user=user,
        judge=", ".join(judges) or NOBODY,
        weighted=_interval("weighted", cells),
        unweighted=_interval("unweighted", cells),
        weighted_strict=strict["weighted"].value,
        without_intention=means["without_intention"].value,
        user_gyms=means["user_gyms"].value,
        held_in=means["held_in"].value,
        held_out=means["held_out"].value,
        gyms=scores,
        search=next((str(c.settings["search"]) for c in cells if "search" in c.settings), ""),
        missing=means["weighted"].missing,
        not_reportable=tuple(gym for gym, one in counted.items() if not one.reportable),
    )


def _interval(name: str, cells: Sequence[GymCell]) -> Estimate:
    chosen = [cell for cell in cells if cell.gym in averages.AVERAGES[name]]
    groups = []
    for cell in chosen:
        scores = averages.task_scores(cell.episodes)
        groups.append((list(scores.values()), [cell.clusters[task] for task in scores]))
    weights = [averages.weight(cell.gym, name) for cell in chosen]
    return Estimate.of(stats.macro_mean_ci(groups, weights=weights))


def verdict(found: Sequence[GymAverages]) -> str:
    """Return what came out, in one sentence."""
    parts = [
        f"{one.arm} {one.weighted.value:.3f}"
        + (f" under {one.user}" if len({other.user for other in found}) > 1 else "")
        for one in found
        if one.weighted.value is not None
    ]
    partial = " (partial)" if any(one.missing for one in found) else ""
    return f"Weighted average{partial}: {', '.join(parts)}." if parts else "No gym of the averages."
