"""Means over panels: groups of columns that share their clusters, e.g. gyms under several users.

The columns of one panel (users, training seeds) meet the same tasks, so one draw of clusters serves
all of them: what they share makes their mean no more certain. Numpy is loaded when it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mimesim.stats.intervals import DRAWS, Interval, bounds, resampled_means

if TYPE_CHECKING:
    import numpy as np

_EXACT = 13
"""Clusters up to which all signs are tried."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Columns of values by key, and the cluster of each key. The mean is over columns' means."""

    columns: Sequence[Mapping[str, float]]
    clusters: Mapping[str, str]

    @property
    def filled(self) -> list[Mapping[str, float]]:
        """The columns that hold anything."""
        return [column for column in self.columns if column]

    @property
    def mean(self) -> float | None:
        """The mean over the columns of their means; None without a value."""
        means = [math.fsum(column.values()) / len(column) for column in self.filled]
        return math.fsum(means) / len(means) if means else None


def panel_means(
    panels: Sequence[Panel],
    weightings: Sequence[Sequence[float]],
    seed: int = 0,
    draws: int = DRAWS,
) -> list[Interval]:
    """Return one weighted mean of the panels per weighting, clusters resampled inside each panel.

    Args:
        panels: each has a stream of its own.
        weightings: weights of the panels; 0 = not in this mean. Empty panels drop out.
        seed: of the resampling.
        draws: of the bootstrap.

    Raises:
        ValueError: a weighting of another length than `panels`.
    """
    samples: dict[int, np.ndarray[Any, Any] | None] = {}
    found = []
    for weights in weightings:
        pairs = list(enumerate(zip(panels, weights, strict=True)))
        used = [(i, panel, w) for i, (panel, w) in pairs if w and panel.filled]
        for i, panel, _ in used:
            if i not in samples:
                samples[i] = _samples(panel, (seed, i), draws)
        found.append(_combined(used, samples, draws))
    return found


def _combined(
    used: Sequence[tuple[int, Panel, float]],
    samples: Mapping[int, np.ndarray[Any, Any] | None],
    draws: int,
) -> Interval:
    if not used:
        return Interval(None, None, None, 0, "no observation")
    total = math.fsum(w for _, _, w in used)
    mean = math.fsum(w * (panel.mean or 0.0) for _, panel, w in used) / total
    n = sum(len(column) for _, panel, _ in used for column in panel.filled)
    drawn = [(samples[i], w) for i, _, w in used]
    known = [(draw, w) for draw, w in drawn if draw is not None]
    if len(known) < len(drawn):
        return Interval(mean, None, None, n, "no interval from a group of one cluster")
    weighed = [draw * w for draw, w in known]
    low, high = bounds(sum(weighed[1:], weighed[0]) / total)
    size = sum(len(set(map(panel.clusters.__getitem__, _keys(panel)))) for _, panel, _ in used)
    columns = max(len(panel.filled) for _, panel, _ in used)
    beside = f" shared by {columns} columns" if columns > 1 else ""
    groups = f" in {len(used)} groups" if len(used) > 1 else ""
    method = f"bootstrap over {size} clusters{groups}{beside}, {draws} draws"
    return Interval(mean, low, high, n, method)


def sign_flip(
    panels: Sequence[Panel], weights: Sequence[float], seed: int = 0, draws: int = DRAWS
) -> float | None:
    """Return the two-sided p value of a weighted mean of differences against 0, by flipped signs.

    The sign of a cluster is flipped for all its columns together. Up to 13 clusters all signs are
    tried; above that as many random ones as `draws`, the observed one counted among them.
    None = no difference was observed at all.
    """
    import numpy as np

    parts = np.asarray(_contributions(panels, weights))
    if not len(parts):
        return None
    observed = abs(parts.sum()) * (1 - 1e-12)
    if len(parts) <= _EXACT:
        bits = (np.arange(2 ** len(parts))[:, None] >> np.arange(len(parts))) & 1
        return float((np.abs((2 * bits - 1) @ parts) >= observed).mean())
    rng = np.random.default_rng([seed, len(parts)])
    hits = 1
    for start in range(0, draws, 512):
        size = (min(512, draws - start), len(parts))
        hits += int((np.abs((2 * rng.integers(0, 2, size=size) - 1) @ parts) >= observed).sum())
    return hits / (draws + 1)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Return p values corrected by Holm for their number; None stays None and is not counted."""
    known = sorted((p, i) for i, p in enumerate(values) if p is not None)
    found: list[float | None] = [None] * len(values)
    least = 0.0
    for place, (p, i) in enumerate(known):
        least = max(least, min(1.0, (len(known) - place) * p))
        found[i] = least
    return found


def _keys(panel: Panel) -> list[str]:
    return list(dict.fromkeys(key for column in panel.filled for key in column))


def _contributions(panels: Sequence[Panel], weights: Sequence[float]) -> list[float]:
    """Return what each cluster adds to the weighted mean."""
    used = [(panel, w) for panel, w in zip(panels, weights, strict=True) if w and panel.filled]
    total = math.fsum(w for _, w in used)
    found: dict[tuple[int, Hashable], float] = {}
    for place, (panel, w) in enumerate(used):
        for column in panel.filled:
            share = w / total / len(panel.filled) / len(column)
            for key, value in column.items():
                cluster = (place, panel.clusters[key])
                found[cluster] = found.get(cluster, 0.0) + share * value
    return list(found.values())


def _samples(panel: Panel, seed: tuple[int, int], draws: int) -> np.ndarray[Any, Any] | None:
    """Return the panel's mean under each resampling of its clusters; None = one cluster only."""
    import numpy as np

    place: dict[str, int] = {}
    for key in _keys(panel):
        place.setdefault(panel.clusters[key], len(place))
    if len(place) < 2:
        return None
    sums = np.zeros((len(place), len(panel.filled)))
    counts = np.zeros_like(sums)
    for number, column in enumerate(panel.filled):
        for key, value in column.items():
            row = place[panel.clusters[key]]
            sums[row, number] += value
            counts[row, number] += 1
    rng = np.random.default_rng(list(seed))
    means = np.concatenate(list(resampled_means(rng, sums, counts, draws)))
    known = ~np.isnan(means)
    with np.errstate(invalid="ignore"):
        averaged: np.ndarray[Any, Any] = np.where(known, means, 0).sum(axis=1) / known.sum(axis=1)
    return averaged
