"""Correlations of paired values: Spearman, Pearson and Kendall's tau-b, plain Python.

None where a correlation does not exist: fewer than two pairs, or a side that does not vary.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

Pairs = Sequence[tuple[float, float]]


def spearman(pairs: Pairs) -> float | None:
    """Return the rank correlation, ties at their mean rank."""
    left, right = _sides(pairs)
    return _pearson(_ranks(left), _ranks(right))


def pearson(pairs: Pairs) -> float | None:
    """Return the linear correlation."""
    return _pearson(*_sides(pairs))


def kendall(pairs: Pairs) -> float | None:
    """Return tau-b: concordant minus discordant pairs of items, corrected for ties."""
    n = len(pairs)
    balance = sum(
        _sign(a[0] - b[0]) * _sign(a[1] - b[1]) for a, b in itertools.combinations(pairs, 2)
    )
    total = math.comb(n, 2)
    free = [total - _tied(side) for side in _sides(pairs)]
    return balance / math.sqrt(free[0] * free[1]) if all(free) else None


def sample_deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation with n - 1; None from fewer than two values."""
    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))


def _sides(pairs: Pairs) -> tuple[list[float], list[float]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _tied(values: Sequence[float]) -> int:
    return sum(math.comb(count, 2) for count in Counter(values).values())


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            ranks[place] = (start + end - 1) / 2
        start = end
    return ranks


def _pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    if len(first) < 2:
        return None
    a, b = (math.fsum(side) / len(side) for side in (first, second))
    left, right = [x - a for x in first], [y - b for y in second]
    size = math.sqrt(math.fsum(x * x for x in left) * math.fsum(y * y for y in right))
    return math.fsum(x * y for x, y in zip(left, right, strict=True)) / size if size else None
