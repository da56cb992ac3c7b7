"""Bootstrap of any statistic over clusters: it is computed anew on every draw."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from mimesim.stats.intervals import Interval, bounds

V = TypeVar("V")
RECOMPUTED_DRAWS = 2000


def statistic_ci(
    values: Sequence[V],
    clusters: Sequence[Hashable],
    statistic: Callable[[Sequence[V]], float | None],
    seed: int = 0,
    draws: int = RECOMPUTED_DRAWS,
) -> Interval:
    """Return a statistic with its percentile bootstrap; clusters count with multiplicity.

    Draws in which it does not exist are left out; with fewer than half of them left, or fewer than
    two clusters, there are no bounds.

    Args:
        values: the observations.
        clusters: of each value; they keep the order of first appearance.
        statistic: of a list of values; None where it does not exist.
        seed: of the resampling.
        draws: of the bootstrap.
    """
    import numpy as np

    value, n = statistic(values), len(values)
    groups: dict[Hashable, list[V]] = {}
    for one, key in zip(values, clusters, strict=True):
        groups.setdefault(key, []).append(one)
    listed = list(groups.values())
    if value is None or len(listed) < 2:
        return Interval(value, None, None, n, "no interval")
    picked = np.random.default_rng(seed).integers(0, len(listed), size=(draws, len(listed)))
    drawn = [statistic([one for place in row for one in listed[place]]) for row in picked]
    found = [one for one in drawn if one is not None]
    if 2 * len(found) < draws:
        return Interval(value, None, None, n, "no interval: it seldom exists when resampled")
    low, high = bounds(np.asarray(found))
    return Interval(value, low, high, n, f"bootstrap over {len(listed)} clusters, {draws} draws")
