"""Intervals and paired comparisons, by bootstrap, by seed and in closed form.

The bootstraps load numpy when they are called; the rest is plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


DRAWS = 10_000
_CHUNK = 512  # rows of resampled clusters held in memory at once
_Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its 95 % interval.

    Attributes:
        value: the point value; None when nothing was observed.
        low: lower bound; None when the data cannot give one.
        high: upper bound.
        n: observations (pairs, tasks) behind the value.
        method: how the interval was made, with the number of clusters and draws.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.low is not None and self.low > 0

    @property
    def resolved(self) -> bool:
        """Whether the interval excludes 0; otherwise say "not resolved"."""
        return self.above_zero or (self.high is not None and self.high < 0)


@dataclass(frozen=True, slots=True)
class PairedRun:
    """Two arms scored on the same keys under one pair of training seeds.

    Attributes:
        outer: warm-start (SFT) seed. inner: RL seed.
        a: score by key of the arm of interest. b: the same of the arm it is compared with.
        clusters: cluster of each key, e.g. its task.
    """

    outer: int
    inner: int
    a: Mapping[Hashable, float]
    b: Mapping[Hashable, float]
    clusters: Mapping[Hashable, Hashable]


@dataclass(frozen=True, slots=True)
class SeedValue:
    """The mean difference under one pair of training seeds; None without a common key."""

    outer: int
    inner: int
    value: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Hierarchical:
    """A hierarchical interval, with the value of each seed beside it (few seeds: read those)."""

    interval: Interval
    per_seed: tuple[SeedValue, ...]


def mean_ci(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
    draws: int = DRAWS,
) -> Interval:
    """Return the mean with a percentile bootstrap over clusters (default: over the values).

    Clusters keep the order of first appearance; repeated ones count with multiplicity.

    Raises:
        ValueError: `clusters` has another length than `values`.
    """
    keys: Sequence[Hashable] = range(len(values)) if clusters is None else clusters
    if len(keys) != len(values):
        raise ValueError(f"{len(values)} values but {len(keys)} clusters")
    if not values:
        return Interval(None, None, None, 0, "no observation")
    mean = math.fsum(values) / len(values)
    sums, counts = _by_cluster(values, keys)
    unit = "observations" if clusters is None else "clusters"
    if len(sums) < 2:
        return Interval(mean, None, None, len(values), f"no interval from one of {unit}")
    low, high = _bootstrap_ratio(sums, counts, seed, draws)
    method = f"bootstrap over {len(sums)} {unit}, {draws} draws"
    return Interval(mean, low, high, len(values), method)


def macro_mean_ci(
    groups: Sequence[tuple[Sequence[float], Sequence[Hashable]]],
    seed: int = 0,
    draws: int = DRAWS,
    weights: Sequence[float] | None = None,
) -> Interval:
    """Return the plain or weighted mean of the groups' means, clusters resampled inside each group.

    Args:
        groups: values and their clusters, one pair per group, e.g. per corpus.
        seed: of the resampling; each group has a stream of its own.
        draws: of the bootstrap.
        weights: of the groups, in any scale; None = all alike. Those of empty groups drop out.

    Raises:
        ValueError: `weights` has another length than `groups`.
    """
    shares = [1.0] * len(groups) if weights is None else list(weights)
    full = [(*pair, share) for pair, share in zip(groups, shares, strict=True) if pair[0]]
    n = sum(len(values) for values, _, _ in full)
    if not full:
        return Interval(None, None, None, 0, "no observation")
    total = math.fsum(share for _, _, share in full)
    mean = math.fsum(share * math.fsum(v) / len(v) for v, _, share in full) / total
    parts = [_by_cluster(values, keys) for values, keys, _ in full]
    if any(len(sums) < 2 for sums, _ in parts):
        return Interval(mean, None, None, n, "no interval from a group of one cluster")
    samples = [
        share * _bootstrap_samples(sums, counts, [seed, place], draws)
        for place, ((sums, counts), (_, _, share)) in enumerate(zip(parts, full, strict=True))
    ]
    low, high = bounds(sum(samples[1:], samples[0]) / total)
    kind = "mean" if weights is None else "weighted mean"
    method = f"{kind} of {len(parts)} groups, bootstrap over clusters inside each, {draws} draws"
    return Interval(mean, low, high, n, method)


def rate_ci(
    outcomes: Sequence[bool],
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
    draws: int = DRAWS,
) -> Interval:
    """Return a success rate: Wilson without clusters, else a cluster bootstrap.

    A bootstrap of outcomes that are all alike would claim certainty, so those get a Wilson
    interval over the number of clusters.
    """
    k, n = sum(outcomes), len(outcomes)
    if clusters is None:
        return wilson(k, n)
    if 0 < k < n:
        return mean_ci([float(o) for o in outcomes], clusters, seed, draws)
    size = len(set(clusters))
    narrow = wilson(size if k else 0, size)
    return Interval(narrow.value, narrow.low, narrow.high, n, f"Wilson over {size} clusters")


def wilson(k: int, n: int) -> Interval:
    """Return the Wilson score interval of `k` successes in `n` trials.

    Raises:
        ValueError: unless 0 <= k <= n.
    """
    if not 0 <= k <= n:
        raise ValueError(f"k must lie in [0, n], got k={k}, n={n}")
    if n == 0:
        return Interval(None, None, None, 0, "no observation")
    p, z2 = k / n, _Z95**2
    center = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z95 / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return Interval(p, max(0.0, center - half), min(1.0, center + half), n, "Wilson")


def paired_difference(
    a: Mapping[Hashable, float],
    b: Mapping[Hashable, float],
    clusters: Mapping[Hashable, Hashable],
    seed: int = 0,
    draws: int = DRAWS,
) -> Interval:
    """Return the mean of a - b over the keys that both have, bootstrapped over clusters.

    Keys that only one side has (e.g. an episode that was not counted) are left out and told
    in `method`.
    """
    keys = [key for key in a if key in b]
    lost = len(a) + len(b) - 2 * len(keys)
    found = mean_ci([a[k] - b[k] for k in keys], [clusters[k] for k in keys], seed, draws)
    note = f"; {lost} unpaired left out" if lost else ""
    return Interval(found.value, found.low, found.high, found.n, f"paired {found.method}{note}")


def hierarchical_paired(
    runs: Sequence[PairedRun], seed: int = 0, draws: int = DRAWS
) -> Hierarchical:
    """Return the mean of a - b over seeds, resampling outer seeds, inner seeds, then clusters.

    The clusters are crossed with the seeds (every run meets the same tasks), so one draw of
    clusters serves all runs of a bootstrap draw. Each outer seed weighs the same, and within it
    each inner seed.

    Raises:
        ValueError: no run, or two runs with the same pair of seeds.
    """
    if not runs or len({(r.outer, r.inner) for r in runs}) < len(runs):
        raise ValueError("expected at least one run, and each pair of seeds once")
    cells = [_differences(run) for run in runs]
    per_seed = tuple(
        SeedValue(run.outer, run.inner, _mean(list(cell.values())), len(cell))
        for run, cell in zip(runs, cells, strict=True)
    )
    usable = [i for i, cell in enumerate(cells) if cell]
    nest: dict[int, list[int]] = {}
    for column, i in enumerate(usable):
        nest.setdefault(runs[i].outer, []).append(column)
    names = list(dict.fromkeys(runs[i].clusters[key] for i in usable for key in cells[i]))
    values = [per_seed[i].value for i in usable]
    n = sum(len(cell) for cell in cells)
    method = (
        f"hierarchical bootstrap over {len(nest)} SFT seeds, {len(usable)} runs and "
        f"{len(names)} clusters, {draws} draws"
    )
    value = _mean([_mean([values[c] for c in columns]) for columns in nest.values()])
    if len(names) < 2:
        return Hierarchical(Interval(value, None, None, n, method), per_seed)
    low, high = _nested_bounds([(runs[i], cells[i]) for i in usable], names, nest, (seed, draws))
    return Hierarchical(Interval(value, low, high, n, method), per_seed)


def jackknife(value: float, without: Sequence[float], n: int) -> Interval:
    """Return a statistic with a normal interval from its values without each cluster in turn.

    Args:
        value: of all.
        without: of all but one cluster, one per cluster.
        n: observations behind the value.
    """
    size = len(without)
    if size < 3:
        return Interval(value, None, None, n, f"no interval from {size} clusters")
    mean = math.fsum(without) / size
    spread = math.sqrt((size - 1) / size * math.fsum((one - mean) ** 2 for one in without))
    half = _Z95 * spread
    return Interval(value, value - half, value + half, n, f"jackknife over {size} clusters")


def t_interval(values: Sequence[float]) -> Interval:
    """Return the mean over training seeds with Student's t interval (n - 1 degrees)."""
    n = len(values)
    if n < 2:
        return Interval(_mean(values), None, None, n, "no interval from fewer than 2 seeds")
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    half = t_quantile(n - 1) * spread / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, n, f"Student t, {n - 1} degrees of freedom")


def t_quantile(degrees: int) -> float:
    """Return t with P(|T| <= t) = .95 for a whole number of degrees of freedom.

    The closed form of P in the angle atan(t / sqrt(degrees)) is inverted by bisection.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_mass(middle, degrees) < 0.95 else (low, middle)
    return math.tan(low) * math.sqrt(degrees)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return math.fsum(known) / len(known) if known else None


def _by_cluster(values: Sequence[float], keys: Sequence[Hashable]) -> tuple[list[float], list[int]]:
    sums: dict[Hashable, float] = {}
    counts: dict[Hashable, int] = {}
    for value, key in zip(values, keys, strict=True):
        sums[key] = sums.get(key, 0.0) + value
        counts[key] = counts.get(key, 0) + 1
    return list(sums.values()), list(counts.values())


def bounds(samples: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return the 95 % percentile bounds of bootstrap samples."""
    import numpy as np

    low, high = np.nanpercentile(samples, (2.5, 97.5))
    return float(low), float(high)


def _bootstrap_ratio(
    sums: Sequence[float], counts: Sequence[int], seed: int, draws: int
) -> tuple[float, float]:
    """Return percentile bounds of sum(sums) / sum(counts) over resampled clusters."""
    return bounds(_bootstrap_samples(sums, counts, seed, draws))


def _bootstrap_samples(
    sums: Sequence[float], counts: Sequence[int], seed: int | Sequence[int], draws: int
) -> np.ndarray[Any, Any]:
    """Return sum(sums) / sum(counts) of each resampling of the clusters."""
    import numpy as np

    rng = np.random.default_rng(seed)
    top, bottom, size = np.asarray(sums), np.asarray(counts), len(sums)
    samples = np.empty(draws)
    for start in range(0, draws, _CHUNK):
        rows = min(_CHUNK, draws - start)
        picked = rng.integers(0, size, size=(rows, size))
        samples[start : start + rows] = top[picked].sum(axis=1) / bottom[picked].sum(axis=1)
    return samples


def _differences(run: PairedRun) -> dict[Hashable, float]:
    return {key: run.a[key] - run.b[key] for key in run.a if key in run.b}


def _nested_bounds(
    cells: Sequence[tuple[PairedRun, Mapping[Hashable, float]]],
    names: Sequence[Hashable],
    nest: Mapping[int, Sequence[int]],
    seed_draws: tuple[int, int],
) -> tuple[float, float]:
    """Return percentile bounds of the mean over resampled seeds and clusters."""
    import numpy as np

    seed, draws = seed_draws
    rng = np.random.default_rng(seed)
    place = {name: i for i, name in enumerate(names)}
    sums = np.zeros((len(names), len(cells)))
    counts = np.zeros_like(sums)
    for column, (run, cell) in enumerate(cells):
        for key, value in cell.items():
            row = place[run.clusters[key]]
            sums[row, column] += value
            counts[row, column] += 1
    means = np.concatenate(list(resampled_means(rng, sums, counts, draws)))
    outer = [list(columns) for columns in nest.values()]
    samples = np.empty(draws)
    for d, chosen in enumerate(rng.integers(0, len(outer), size=(draws, len(outer)))):
        inner = [means[d, rng.choice(outer[o], size=len(outer[o]))].mean() for o in chosen]
        samples[d] = sum(inner) / len(inner)
    return bounds(samples)


def resampled_means(
    rng: np.random.Generator,
    sums: np.ndarray[Any, Any],
    counts: np.ndarray[Any, Any],
    draws: int,
) -> Iterable[np.ndarray[Any, Any]]:
    """Yield chunks of (draws, runs): each run's mean over the same resampled clusters."""
    import numpy as np

    for weight in resampled_weights(rng, len(sums), draws):
        with np.errstate(invalid="ignore"):
            yield (weight @ sums) / (weight @ counts)


def resampled_weights(
    rng: np.random.Generator, size: int, draws: int
) -> Iterable[np.ndarray[Any, Any]]:
    """Yield chunks of (draws, size): how often each of `size` clusters was drawn.

    All chunks together are the one draw `rng.integers(0, size, size=(draws, size))`.
    """
    import numpy as np

    for start in range(0, draws, _CHUNK):
        rows = min(_CHUNK, draws - start)
        picked = rng.integers(0, size, size=(rows, size))
        flat = (picked + size * np.arange(rows)[:, None]).ravel()
        yield np.bincount(flat, minlength=rows * size).reshape(rows, size)


def _t_mass(angle: float, degrees: int) -> float:
    """Return P(|T| <= sqrt(degrees) tan(angle)), the finite series for whole degrees."""
    cosine = math.cos(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = 0.0
    for step in range(degrees // 2):
        total += term
        upper = 2 * step + 2 if odd else 2 * step + 1
        term *= cosine * cosine * upper / (upper + 1)
    mass = total * math.sin(angle)
    return 2 / math.pi * (angle + mass) if odd else mass
