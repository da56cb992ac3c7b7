"""What a perfect simulator's calibration error is by chance alone, for who played what.

Two ways. `null_ece` draws both sides at given rates: right where the rates are those of the tasks and
were frozen before. `swapped_ece` deals the outcomes of every task anew to the places of both sides:
right for any rates, and where the difficulty of a task was made from all its outcomes, which no deal
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mimesim.stats.intervals import Interval
from mimesim.stats.scores import CUTS, difficulty_bin

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

NULL_DRAWS = 2_000
NULL_RANGE = "5 to 95 %"
"""What the bounds of a null's interval are."""
_BLOCK = 1 << 22  # numbers held in memory at once
_TIE = 1e-9  # equal errors are summed in another order


@dataclass(frozen=True, slots=True)
class NullEce:
    """What a perfect simulator's calibration error is by chance alone.

    Attributes:
        samples: sorted errors, one per repetition.
        sd: their standard deviation.
        interval: their mean with the 5 % and 95 % points; `n` = tasks.
    """

    samples: tuple[float, ...]
    sd: float
    interval: Interval

    def share_at_least(self, observed: float) -> float:
        """Return the share of perfect simulators whose error is at least the observed one."""
        return sum(one >= observed - _TIE for one in self.samples) / len(self.samples)


@dataclass(frozen=True, slots=True)
class Design:
    """How often every run and every batch played each task.

    Attributes:
        runs: runs of the simulator x tasks. batches: batches of people x tasks.
        by_tasks: whether a pair of a run and a batch weighs by their common tasks; else the error is
            the mean over runs, then over batches.
    """

    runs: Array
    batches: Array
    by_tasks: bool = False

    @classmethod
    def full(cls, runs: int, batches: int, tasks: int) -> Design:
        """Return the design in which everybody played every task once."""
        import numpy as np

        return cls(np.ones((runs, tasks), dtype=int), np.ones((batches, tasks), dtype=int))

    @property
    def scale(self) -> Array:
        """Runs x batches: what a task of a pair counts in the error."""
        import numpy as np

        common = (self.runs > 0).astype(float) @ (self.batches > 0).T
        if not common.any():
            raise ValueError("expected a run and a batch with a common task")
        if self.by_tasks:
            return np.full(common.shape, 1 / common.sum())
        known = common > 0
        of_batch = np.maximum(known.sum(axis=0), 1)
        found: Array = known / np.maximum(common, 1) / of_batch / known.any(axis=0).sum()
        return found


def outcome_table(runs: Sequence[Mapping[str, float]], tasks: Sequence[str]) -> Array:
    """Return runs x tasks; nan where a run did not play a task."""
    import numpy as np

    return np.array([[run.get(task, np.nan) for task in tasks] for run in runs], dtype=float)


def null_ece(
    difficulty: Sequence[float],
    design: Design,
    *,
    rates: Sequence[float] | None = None,
    draws: int = NULL_DRAWS,
    seed: int = 0,
) -> NullEce:
    """Return the error of a simulator that succeeds on each task exactly as often as people do.

    Args:
        difficulty: of each task; it chooses the bin.
        design: who played what.
        rates: success rate of each task on both sides; None = the difficulty.
        draws: repetitions.
        seed: of the standard numpy generator.

    Raises:
        ValueError: no task that a run and a batch have in common.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    chance = np.asarray(difficulty if rates is None else rates)

    def draw(rows: int) -> tuple[Array, ...]:
        sides = (design.runs, design.batches)
        return tuple(
            rng.binomial(side, chance, size=(rows, *side.shape)) / np.maximum(side, 1)
            for side in sides
        )

    return _null(difficulty, design, draw, draws, "perfect simulators")


def swapped_ece(
    difficulty: Sequence[float],
    runs: Array,
    batches: Array,
    *,
    draws: int = NULL_DRAWS,
    seed: int = 0,
) -> NullEce:
    """Return the error after dealing the outcomes of every task anew to runs and batches.

    Where the simulator is perfect, which outcome of a task is whose is a matter of chance alone, so
    this is exact for tasks of any rates, whoever played them how often.

    Args:
        difficulty: of each task; frozen, or made from all outcomes of the task alike.
        runs: outcomes 0 or 1 of the simulator, see `outcome_table`.
        batches: the same of people.
        draws: repetitions.
        seed: of the standard numpy generator.

    Raises:
        ValueError: no task that a run and a batch have in common.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    slots = np.concatenate([runs, batches])
    taken = ~np.isnan(slots)
    won = np.nansum(slots, axis=0).astype(int)

    def draw(rows: int) -> tuple[Array, ...]:
        keys = np.where(taken, rng.random((rows, *slots.shape)), 2.0)
        last = np.sort(keys, axis=1)[:, np.maximum(won - 1, 0), np.arange(len(won))]
        dealt = (keys <= np.where(won > 0, last, -1.0)[:, None]).astype(float)
        return dealt[:, : len(runs)], dealt[:, len(runs) :]

    design = Design(taken[: len(runs)].astype(int), taken[len(runs) :].astype(int), by_tasks=True)
    return _null(difficulty, design, draw, draws, "deals of the outcomes of each task")


def _null(
    difficulty: Sequence[float],
    design: Design,
    draw: Callable[[int], tuple[Array, ...]],
    draws: int,
    what: str,
) -> NullEce:
    import numpy as np

    scale = design.scale
    member = np.eye(len(CUTS) + 1)[[difficulty_bin(one) for one in difficulty]]
    runs, tasks = design.runs.shape
    batches = len(design.batches)
    block = max(1, _BLOCK // max(tasks * (runs + batches), runs * batches * member.shape[1]))
    parts = []
    for start in range(0, draws, block):
        ours, theirs = draw(min(block, draws - start))
        gaps = _sums(ours, design.batches > 0, member)
        gaps -= _sums(theirs, design.runs > 0, member).swapaxes(1, 2)
        parts.append((np.abs(gaps).sum(axis=3) * scale).sum(axis=(1, 2)))
    samples = np.sort(np.concatenate(parts))
    low, high = np.percentile(samples, (5, 95))
    method = f"{draws} {what}, {runs} runs, {batches} batches, {NULL_RANGE}"
    return NullEce(
        tuple(samples.tolist()),
        float(samples.std()),
        Interval(float(samples.mean()), float(low), float(high), tasks, method),
    )


def _sums(values: Array, others: Array, member: Array) -> Array:
    """Return draws x own side x other side x bins: sums over the tasks that the other one has too."""
    import numpy as np

    kinds, place = np.unique(others, axis=0, return_inverse=True)
    columns = (kinds[:, :, None] * member).transpose(1, 0, 2).reshape(len(member), -1)
    shape = (*values.shape[:2], len(kinds), member.shape[1])
    found: Array = (values @ columns).reshape(shape)[:, :, place.ravel()]
    return found
