"""How far scores tell two kinds apart: the area under the ROC curve. Numpy is loaded when needed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mimesim.stats.intervals import Interval, bounds

_DRAWS = 2_000


def auc(
    scores: Sequence[float],
    positive: Sequence[bool],
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
    draws: int = _DRAWS,
) -> Interval:
    """Return P(score of a positive > score of a negative), ties half, with a cluster bootstrap.

    Args:
        scores: one per observation.
        positive: which kind each is.
        clusters: what is resampled as one (both kinds of a cluster together); default: each alone.
        seed: of the bootstrap.
        draws: of the bootstrap.

    Raises:
        ValueError: the lengths differ.
    """
    import numpy as np

    keys = list(range(len(scores)) if clusters is None else clusters)
    if not len(scores) == len(positive) == len(keys):
        raise ValueError("scores, positive and clusters differ in length")
    kind = np.asarray(positive, dtype=bool)
    if not kind.any() or kind.all():
        return Interval(None, None, None, len(scores), "one kind only")
    value = np.asarray(scores, dtype=float)
    place = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    cluster = np.asarray([place[key] for key in keys])
    high, low = value[kind][:, None], value[~kind][None, :]
    wins = (high > low) + 0.5 * (high == low)
    point = float(wins.mean())
    size = len(place)
    if size < 2:
        return Interval(point, None, None, len(scores), "no interval from one cluster")
    rng = np.random.default_rng(seed)
    samples = []
    for picked in rng.integers(0, size, size=(draws, size)):
        weight = np.bincount(picked, minlength=size).astype(float)
        a, b = weight[cluster[kind]], weight[cluster[~kind]]
        if a.any() and b.any():
            samples.append(float(a @ wins @ b) / float(a.sum() * b.sum()))
    interval = bounds(np.asarray(samples))
    method = f"bootstrap over {size} clusters, {draws} draws"
    return Interval(point, *interval, len(scores), method)
