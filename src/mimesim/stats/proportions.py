"""Tests on counts: exact binomial, McNemar, and the difference of two proportions."""

from __future__ import annotations

import math


def binomial_p(k: int, n: int) -> float:
    """Return the exact two-sided p value of `k` successes in `n` trials against one half.

    Raises:
        ValueError: unless 0 <= k <= n.
    """
    if not 0 <= k <= n:
        raise ValueError(f"k must lie in [0, n], got k={k}, n={n}")
    tail = sum(math.comb(n, i) for i in range(min(k, n - k) + 1))
    return min(1.0, float(2 * tail / 2**n))


def mcnemar(b: int, c: int) -> float:
    """Return the exact p value of two raters on the same items, from the items they part on.

    Args:
        b: items that only the first got right.
        c: items that only the second got right.
    """
    return binomial_p(b, b + c)


def two_proportions(k1: int, n1: int, k2: int, n2: int) -> tuple[float, float] | None:
    """Return z (second minus first, pooled) and its two-sided p; None where nothing varies."""
    pooled = (k1 + k2) / (n1 + n2) if n1 and n2 else 0.0
    if not 0 < pooled < 1:
        return None
    error = math.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2))
    z = (k2 / n2 - k1 / n1) / error
    return z, math.erfc(abs(z) / math.sqrt(2))


def f1(tp: int, fp: int, fn: int) -> float:
    """Return 2 tp / (2 tp + fp + fn); 0 where that has no denominator."""
    below = 2 * tp + fp + fn
    return 2 * tp / below if below else 0.0


def expected_distance(n: int) -> float:
    """Return E|share - 1/2| of `n` fair coins, by the normal approximation."""
    return math.sqrt(2 / math.pi * 0.25 / n) if n else 0.0
