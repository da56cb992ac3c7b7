"""Rows and averages of a matrix, from what was played in its cells.

Cells of several training seeds, or of several users, stand side by side as columns over the same
tasks: a score is the mean over the columns, and its interval resamples the tasks of all of them
together. Success is a share of all their episodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mimesim import stats
from mimesim.bench import averages
from mimesim.bench.averages import Played
from mimesim.results import UNKNOWN, Estimate, GymAverages, MatrixRow

NOBODY = "none"
"""What stands for the user, or the judge, of a gym that has none."""
_NULL = "null"


@dataclass(frozen=True, slots=True)
class GymCell:
    """What one checkpoint did in one gym under one user.

    Attributes:
        seed: training seed of the checkpoint.
        judge_mode: rule, fixed or self; none where nobody judges.
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
    seed: int = 0
    judge_mode: str = NOBODY

    @property
    def scores(self) -> dict[str, float]:
        """Score by task, over the counted rollouts."""
        return averages.task_scores(self.episodes)

    @property
    def wins(self) -> dict[str, float]:
        """Share of the counted rollouts of a task that succeed."""
        found: dict[str, list[bool]] = {}
        for one in self.episodes:
            if one.success is not None:
                found.setdefault(one.task, []).append(one.success)
        return {task: sum(won) / len(won) for task, won in found.items()}


def row_of(cells: Sequence[GymCell], null: Mapping[str, float], user: str = "") -> MatrixRow:
    """Return the row of one arm in one gym, the cells of its seeds (and users) together.

    Args:
        cells: at least one, all of one arm and gym.
        null: score of the null agent by task, as far as it is known.
        user: what the row calls their users; "" = the one user of all.
    """
    first = cells[0]
    episodes = [one for cell in cells for one in cell.episodes]
    counted = averages.counting(episodes)
    scores = averages.task_scores(episodes)
    won = [(one.task, one.success) for one in episodes if one.success is not None]
    shares = [averages.normalized(v, first.attainable[task]) for task, v in scores.items()]
    panel = stats.Panel([cell.scores for cell in cells], first.clusters)
    success = stats.rate_ci([s for _, s in won], [first.clusters[task] for task, _ in won])
    ends = Counter(one.stop for one in episodes if one.score is not None)
    return MatrixRow(
        arm=first.arm,
        user=user or first.user,
        success=Estimate.of(success),
        agent=first.agent,
        judge=_judges(cells),
        gym=first.gym,
        profile=", ".join(first.settings["profiles"]),
        n=counted.counted,
        seeds=tuple(dict.fromkeys(cell.seed for cell in cells)),
        reward=Estimate.of(stats.panel_means([panel], [[1.0]])[0]),
        success_strict=sum(s for _, s in won) / counted.episodes if counted.episodes else None,
        invalid_rate=counted.invalid_rate,
        ends={end: n / ends.total() for end, n in sorted(ends.items()) if end},
        note="" if counted.reportable else "not reportable",
        counting=counted,
        floor=averages.above_floor(scores, null),
        pass_k=_pass_k(cells),
        of_attainable=sum(shares) / len(shares) if shares else None,
        settings=first.settings,
    )


def _judges(cells: Iterable[GymCell]) -> str:
    return ", ".join(sorted({cell.judge for cell in cells} - {NOBODY})) or NOBODY


def _pass_k(cells: Sequence[GymCell]) -> dict[str, float | None]:
    """Return pass^k up to the rollouts of a task, the mean over the cells."""
    found: dict[str, float | None] = {}
    for k in range(1, int(cells[0].settings["trials"]) + 1):
        values = [stats.pass_k(averages.successes(cell.episodes), k).value for cell in cells]
        found[str(k)] = mean_of(values)
    return found


def null_scores(cell: GymCell, cells: Sequence[GymCell]) -> dict[str, float]:
    """Return what doing nothing earned under the same user, or is known to earn."""
    found: dict[str, float] = {}
    for other in cells:
        if (other.gym, other.user, other.agent) == (cell.gym, cell.user, _NULL):
            found |= other.scores
    return {**found, **cell.known_null}


def averages_of(arm: str, user: str, cells: Sequence[GymCell]) -> GymAverages:
    """Return the averages of one arm over gyms: the mean over the users and seeds of `cells`.

    Args:
        arm: label of the arm.
        user: whom they are under, in words.
        cells: of that arm, those of gyms where nobody is talked to among them.
    """
    by_gym = grouped(cells)
    scores = {gym: panel_of(group).mean for gym, group in by_gym.items()}
    counted = {gym: averages.counting(_episodes(group)) for gym, group in by_gym.items()}
    means = averages.averages(scores)
    strict = averages.averages({gym: _strict(group) for gym, group in by_gym.items()})
    weighted, unweighted = _intervals(by_gym)
    seeds = tuple(dict.fromkeys(cell.seed for cell in cells))
    per_seed = {seed: _weighted([c for c in cells if c.seed == seed]) for seed in seeds}
    known = {f"seed {seed}": value for seed, value in per_seed.items() if value is not None}
    return GymAverages(
        arm=arm,
        agent=cells[0].agent,
        user=user,
        judge=_judges(cells),
        weighted=weighted,
        unweighted=unweighted,
        weighted_strict=strict["weighted"].value,
        without_intention=means["without_intention"].value,
        user_gyms=means["user_gyms"].value,
        held_in=means["held_in"].value,
        held_out=means["held_out"].value,
        gyms=scores,
        search=next((str(c.settings["search"]) for c in cells if "search" in c.settings), ""),
        missing=means["weighted"].missing,
        not_reportable=tuple(gym for gym, one in counted.items() if not one.reportable),
        users=tuple(dict.fromkeys(cell.user for cell in cells if cell.user != NOBODY)),
        seeds=seeds,
        per_seed=known,
        over_seeds=Estimate.of(stats.t_interval(list(known.values()))) if known else UNKNOWN,
        judge_mode=", ".join(sorted({cell.judge_mode for cell in cells} - {NOBODY})) or NOBODY,
        n=sum(one.counted for one in counted.values()),
        episodes=sum(one.episodes for one in counted.values()),
        tasks=sum(len(group[0].clusters) for group in by_gym.values()),
    )


def grouped(cells: Iterable[GymCell]) -> dict[str, list[GymCell]]:
    """Return the cells by gym, in order."""
    found: dict[str, list[GymCell]] = {}
    for cell in cells:
        found.setdefault(cell.gym, []).append(cell)
    return found


def panel_of(cells: Sequence[GymCell]) -> stats.Panel:
    """Return the scores of cells of one gym as columns over its tasks."""
    return stats.Panel([cell.scores for cell in cells], cells[0].clusters)


def mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _episodes(cells: Sequence[GymCell]) -> list[Played]:
    return [one for cell in cells for one in cell.episodes]


def _strict(cells: Sequence[GymCell]) -> float | None:
    return mean_of(averages.counting(cell.episodes).strict for cell in cells)


def _weighted(cells: Sequence[GymCell]) -> float | None:
    scores = {gym: panel_of(group).mean for gym, group in grouped(cells).items()}
    return averages.averages(scores)["weighted"].value


def _intervals(by_gym: Mapping[str, Sequence[GymCell]]) -> list[Estimate]:
    """Return the weighted and the unweighted average with their intervals over tasks."""
    panels = [panel_of(group) for group in by_gym.values()]
    weightings = [
        [averages.weight(gym, name) for gym in by_gym] for name in ("weighted", "unweighted")
    ]
    return [Estimate.of(one) for one in stats.panel_means(panels, weightings)]
