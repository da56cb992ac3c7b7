"""Scores over trials: pass^k and calibration error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mimesim.stats.intervals import Interval, mean_ci

CUTS = (0.2, 0.4, 0.6, 0.8)
"""Inner borders of the difficulty bins."""


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


def _pass_one(c: int, n: int, k: int, kind: str) -> float:
    if kind == "all":
        return math.comb(c, k) / math.comb(n, k)
    return 1 - math.comb(n - c, k) / math.comb(n, k)
