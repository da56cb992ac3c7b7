"""How far success under simulated users is from success under people, in all and by difficulty."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mimesim import stats
from mimesim.bench.calibration.sides import Side
from mimesim.bench.suites.difficulty import off_map
from mimesim.errors import UsageError
from mimesim.stats import Interval, NullEce

NullFrom = Literal["difficulty", "swapped"]
"""How perfect simulators are made, see `stats.nulls`."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Tasks of like difficulty.

    Attributes:
        low, high: difficulties of the bin, [low, high), the last one closed.
        simulated, human: success rates. gap: simulated minus human, over tasks.
    """

    low: float
    high: float
    tasks: int
    simulated: float
    human: float
    gap: Interval


@dataclass(frozen=True, slots=True)
class Gaps:
    """What separates the two sides on the tasks that both have.

    Attributes:
        ece: mean over pairs of a run and a batch, by their common tasks, of sum_b n_b/n |gap_b|.
        null: what a perfect simulator would get: mean and 5 to 95 % of chance; not 95 %.
        share_at_least: share of perfect simulators with an error at least as large.
        off_map: distance of the difficulties from the nearer side's success, mean over bins.
        overall: simulated minus human success, over tasks.
        common: tasks on both sides; only_simulated, only_human: on one; unknown: without a bin.
    """

    ece: float
    null: Interval
    share_at_least: float
    off_map: float
    overall: Interval
    simulated: float
    human: float
    bins: tuple[Bin, ...]
    common: int
    only_simulated: int
    only_human: int
    unknown: int

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def gaps(
    simulated: Side,
    human: Side,
    difficulty: Mapping[str, float],
    *,
    null_from: NullFrom = "swapped",
    seed: int = 0,
    draws: int = stats.DRAWS,
) -> Gaps:
    """Compare two sides; tasks that one of them lacks are counted and left out.

    Args:
        simulated: one side.
        human: the other.
        difficulty: task -> rate, which chooses its bin.
        null_from: `difficulty` only where that is frozen.
        seed: of the intervals.
        draws: of the intervals.

    Raises:
        UsageError: no task is common to both sides and the difficulties.
    """
    ours, theirs = simulated.rates, human.rates
    both = [task for task in ours if task in theirs]
    tasks = [task for task in both if task in difficulty]
    if not tasks:
        raise UsageError(
            "no task is common to both sides and has a difficulty",
            where=f"{simulated.name} against {human.name}",
            expected="conversations about the same tasks, e.g. of one gym and seed",
            mend=f"{len(both)} tasks are on both sides, but not in the file of --difficulty: name "
            "one that has them, or leave it out"
            if both
            else "the names of the tasks must be the same on both sides, e.g. "
            f"{next(iter(ours))!r} here, {next(iter(theirs))!r} there",
        )
    value = _error(simulated, human, difficulty)
    null = _null(simulated, human, {task: difficulty[task] for task in tasks}, null_from)
    ours, theirs = ({t: side[t] for t in tasks} for side in (ours, theirs))
    return Gaps(
        ece=value,
        null=null.interval,
        share_at_least=null.share_at_least(value),
        off_map=off_map(difficulty, ours, theirs),
        overall=_gap(ours, theirs, tasks, (seed, draws)),
        simulated=math.fsum(ours.values()) / len(tasks),
        human=math.fsum(theirs.values()) / len(tasks),
        bins=_bins(ours, theirs, difficulty, (seed, draws)),
        common=len(tasks),
        only_simulated=len(simulated.rates) - len(both),
        only_human=len(human.rates) - len(both),
        unknown=len(both) - len(tasks),
    )


def _error(simulated: Side, human: Side, difficulty: Mapping[str, float]) -> float:
    """Return the mean error over all pairs of a run and a batch, by their common tasks."""
    found = [stats.ece(r, b, difficulty) for r in simulated.runs for b in human.runs]
    known = [(one.n, one.value) for one in found if one.value is not None]
    return math.fsum(n * value for n, value in known) / sum(n for n, _ in known)


def _null(
    simulated: Side, human: Side, difficulty: Mapping[str, float], null_from: NullFrom
) -> NullEce:
    tables = [stats.outcome_table(side.runs, list(difficulty)) for side in (simulated, human)]
    rates = list(difficulty.values())
    if null_from == "swapped":
        return stats.swapped_ece(rates, *tables)
    runs, batches = ((table == table).astype(int) for table in tables)  # nan is not itself
    return stats.null_ece(rates, stats.Design(runs, batches, by_tasks=True))


def _bins(
    ours: Mapping[str, float],
    theirs: Mapping[str, float],
    difficulty: Mapping[str, float],
    sampling: tuple[int, int],
) -> tuple[Bin, ...]:
    edges = (0.0, *stats.CUTS, 1.0)
    found = []
    for place, tasks in sorted(by_bin(list(ours), difficulty).items()):
        found.append(
            Bin(
                low=edges[place],
                high=edges[place + 1],
                tasks=len(tasks),
                simulated=math.fsum(ours[t] for t in tasks) / len(tasks),
                human=math.fsum(theirs[t] for t in tasks) / len(tasks),
                gap=_gap(ours, theirs, tasks, sampling),
            )
        )
    return tuple(found)


def _gap(
    ours: Mapping[str, float],
    theirs: Mapping[str, float],
    tasks: Sequence[str],
    sampling: tuple[int, int],
) -> Interval:
    seed, draws = sampling
    return stats.paired_difference(
        {t: ours[t] for t in tasks},
        {t: theirs[t] for t in tasks},
        {t: t for t in tasks},
        seed,
        draws,
    )


def by_bin(tasks: Sequence[str], difficulty: Mapping[str, float]) -> dict[int, list[str]]:
    """Return bin -> its tasks; empty bins do not occur."""
    found: dict[int, list[str]] = {}
    for task in tasks:
        found.setdefault(stats.difficulty_bin(difficulty[task]), []).append(task)
    return found
