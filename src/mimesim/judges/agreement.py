"""How far two judges, or a judge and people, agree on the same items.

An item that either side left without a verdict (None) is left out and counted, never scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

L = TypeVar("L", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two raters.

    Attributes:
        n: items that both decided.
        excluded: items that at least one did not decide.
        share: share of equal labels in [0, 1]; None without items.
        kappa: Cohen's kappa in [-1, 1]; None where chance alone explains everything (both raters
            use one and the same label) or without items.
    """

    n: int
    excluded: int
    share: float | None
    kappa: float | None


def agreement(first: Sequence[L | None], second: Sequence[L | None]) -> Agreement:
    """Compare labels without order, e.g. A, B and tie.

    Raises:
        ValueError: the lists differ in length.
    """
    return _agreement(first, second, lambda a, b: float(a != b))


def ordinal_agreement(first: Sequence[float | None], second: Sequence[float | None]) -> Agreement:
    """Compare grades: kappa with quadratic weights, so near misses weigh little.

    Raises:
        ValueError: the lists differ in length.
    """
    return _agreement(first, second, lambda a, b: (a - b) ** 2)


def _agreement(
    first: Sequence[L | None], second: Sequence[L | None], distance: Callable[[L, L], float]
) -> Agreement:
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    n, excluded = len(pairs), len(first) - len(pairs)
    if not n:
        return Agreement(0, excluded, None, None)
    seen = sum(distance(a, b) for a, b in pairs) / n
    lefts, rights = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(
        distance(a, b) * count * other for a, count in lefts.items() for b, other in rights.items()
    ) / (n * n)
    share = sum(a == b for a, b in pairs) / n
    return Agreement(n, excluded, share, 1 - seen / chance if chance else None)
