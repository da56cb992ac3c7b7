"""Scores over trials: pass^k and calibration error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mimesim.stats.intervals import Interval, mean_ci

if TYPE_CHECKING:
    import numpy as np

CUTS = (0.2, 0.4, 0.6, 0.8)
"""Inner borders of the difficulty bins."""
NULL_DRAWS = 2_000
_BLOCK = 1 << 22  # outcomes held in memory at once


def pass_k(
    counts: Iterable[tuple[int, int]],
    k: int,
    kind: Literal["all", "any"] = "all",
    seed: int = 0,
) -> Interval:
    """Return pass^k (`all` k trials succeed) or pass@k (`any` of them does), mean over tasks.

    Args:
        counts: (successes, trials) of each task.
        k: trials drawn without replacement.
        kind: `all` or `any`.
        seed: of the bootstrap over tasks.
    """
    pairs = list(counts)
    scores = [_pass_one(c, n, k, kind) for c, n in pairs if n >= k]
    left_out = len(pairs) - len(scores)
    found = mean_ci(scores, seed=seed)
    sign = "^" if kind == "all" else "@"
    note = f"; {left_out} tasks with fewer than {k} trials left out" if left_out else ""
    return Interval(
        found.value, found.low, found.high, found.n, f"pass{sign}{k}, {found.method}{note}"
    )


@dataclass(frozen=True, slots=True)
class Calibration:
    """Expected calibration error of simulated against human success; None without common tasks.

    Attributes:
        bins: (tasks, simulated rate, human rate) of each non-empty difficulty bin.
    """

    value: float | None
    n: int
    bins: tuple[tuple[int, float, float], ...]
    method: str


def ece(
    simulated: Mapping[str, float],
    human: Mapping[str, float],
    difficulty: Mapping[str, float],
    cuts: Sequence[float] = CUTS,
) -> Calibration:
    """Return sum_b n_b/n |simulated - human| over difficulty bins [0, cut), ..., [cut, 1].

    Args:
        simulated: success of each task in one run, in [0, 1].
        human: success of each task with people.
        difficulty: frozen success rate of each task, which chooses its bin.
        cuts: inner borders of the bins.
    """
    binned: dict[int, list[str]] = {}
    for task in simulated:
        if task in human and task in difficulty:
            binned.setdefault(difficulty_bin(difficulty[task], cuts), []).append(task)
    n = sum(map(len, binned.values()))
    method = f"{len(cuts) + 1} frozen difficulty bins"
    bins = []
    for _, tasks in sorted(binned.items()):
        rates = [math.fsum(side[t] for t in tasks) / len(tasks) for side in (simulated, human)]
        bins.append((len(tasks), rates[0], rates[1]))
    value = math.fsum(size / n * abs(s - h) for size, s, h in bins) if n else None
    return Calibration(value, n, tuple(bins), method)


def difficulty_bin(rate: float, cuts: Sequence[float] = CUTS) -> int:
    """Return the bin of a difficulty: [0, cut) is 0, [last cut, 1] the last one."""
    return sum(rate >= cut for cut in cuts)


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
        return sum(one >= observed for one in self.samples) / len(self.samples)


def null_ece(
    difficulty: Sequence[float],
    *,
    runs: int = 1,
    batches: int = 1,
    rates: Sequence[float] | None = None,
    draws: int = NULL_DRAWS,
    seed: int = 0,
) -> NullEce:
    """Return the error of a simulator that succeeds on each task exactly as often as people do.

    Args:
        difficulty: of each task; it chooses the bin.
        runs: of the simulator.
        batches: of people; the error is the mean over all pairs of a run and a batch.
        rates: success rate of each task on both sides; None = the difficulty.
        draws: repetitions.
        seed: of the standard numpy generator.

    Raises:
        ValueError: no task.
    """
    import numpy as np

    if not difficulty:
        raise ValueError("expected at least one task")
    rng = np.random.default_rng(seed)
    chance = np.asarray(difficulty if rates is None else rates)
    places = [difficulty_bin(one) for one in difficulty]
    member = np.eye(len(CUTS) + 1)[places]
    block = max(1, _BLOCK // (len(chance) * (runs + batches)))
    parts = []
    for start in range(0, draws, block):
        rows = min(block, draws - start)
        ours, theirs = (
            (rng.random((rows, sides, len(chance))) < chance) @ member for sides in (runs, batches)
        )
        parts.append(_mean_error(ours, theirs) / len(chance))
    samples = np.sort(np.concatenate(parts))
    low, high = np.percentile(samples, (5, 95))
    method = f"{draws} perfect simulators, {runs} runs, {batches} batches, 5 to 95 %"
    return NullEce(
        tuple(samples.tolist()),
        float(samples.std()),
        Interval(float(samples.mean()), float(low), float(high), len(chance), method),
    )


def _mean_error(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the sum over bins of |ours - theirs| of each repetition, mean over pairs."""
    import numpy as np

    found: np.ndarray[Any, Any] = (
        np.abs(ours[:, :, None] - theirs[:, None]).sum(axis=3).mean(axis=(1, 2))
    )
    return found


def _pass_one(c: int, n: int, k: int, kind: str) -> float:
    if kind == "all":
        return math.comb(c, k) / math.comb(n, k)
    return 1 - math.comb(n - c, k) / math.comb(n, k)
