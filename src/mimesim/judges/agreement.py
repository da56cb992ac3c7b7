"""How far two judges, or a judge and people, agree on the same items.

An item that either side left without a verdict (None) is left out and counted, never scored.
`compare` tells everything about two lists of scores in [0, 1], with intervals; the shares of items
agreed on stand over those that both decided and over all that were asked about.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mimesim.seeds import generator
from mimesim.stats import Interval, wilson
from mimesim.stats.correlations import Pairs, spearman

L = TypeVar("L", bound=Hashable)

DRAWS = 500
THRESHOLD = 0.5
"""From this score on an item counts as a yes."""
STEPS = 4
"""Scores are rounded to quarters for the kappa of grades."""


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


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two raters on the same items, by scores in [0, 1].

    Attributes:
        asked: items that both were asked about; n: those that both decided.
        missing: items that the first, and that the second rater left without a score.
        share: equal yes or no (from `THRESHOLD` on), of n; share_of_all: of all asked.
        kappa: Cohen's, of yes and no.
        weighted: Cohen's with quadratic weights, of scores in quarters.
        spearman: rank correlation.
        means: mean score of either, over the n items.
    """

    asked: int
    n: int
    missing: tuple[int, int]
    share: Interval
    share_of_all: Interval
    kappa: Interval
    weighted: Interval
    spearman: Interval
    means: tuple[float | None, float | None]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values; each interval as value and bounds."""
        told: dict[str, Any] = {"asked": self.asked, "n": self.n, "missing": list(self.missing)}
        for name in ("share", "share_of_all", "kappa", "weighted", "spearman"):
            one: Interval = getattr(self, name)
            bounds = None if one.low is None or one.high is None else [one.low, one.high]
            told[name] = {"value": one.value, "ci95": bounds}
        return told | {"means": list(self.means)}


def compare(
    first: Sequence[float | None], second: Sequence[float | None], *, seed: int = 0
) -> Comparison:
    """Compare two raters' scores of the same items, in the same order.

    Raises:
        ValueError: the lists differ in length, or a score lies outside [0, 1].
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if not all(0 <= score <= 1 for pair in pairs for score in pair):
        raise ValueError("scores lie in [0, 1]")
    same = sum((a >= THRESHOLD) == (b >= THRESHOLD) for a, b in pairs)
    n, asked = len(pairs), len(first)
    return Comparison(
        asked=asked,
        n=n,
        missing=(sum(a is None for a in first), sum(b is None for b in second)),
        share=wilson(same, n),
        share_of_all=wilson(same, asked),
        kappa=interval(pairs, _kappa, seed),
        weighted=interval(pairs, _weighted, seed),
        spearman=interval(pairs, spearman, seed),
        means=(_mean([a for a, _ in pairs]), _mean([b for _, b in pairs])),
    )


def interval(
    pairs: Pairs, statistic: Callable[[Pairs], float | None], seed: int, draws: int = DRAWS
) -> Interval:
    """Return a statistic with its percentile bootstrap over items.

    Draws in which it is undefined are left out; with fewer than half of them left, or one item,
    there are no bounds.
    """
    value, n = statistic(pairs), len(pairs)
    if value is None or n < 2:
        return Interval(value, None, None, n, "no interval")
    rng = generator(seed, "agreement", n)
    drawn = [statistic(rng.choices(pairs, k=n)) for _ in range(draws)]
    found = sorted(one for one in drawn if one is not None)
    if len(found) * 2 < draws:
        return Interval(value, None, None, n, "no interval")
    low, high = (found[math.floor(q * (len(found) - 1) + 0.5)] for q in (0.025, 0.975))
    return Interval(value, low, high, n, f"bootstrap over {n} items, {len(found)} draws")


def slot_score(label: str, slot: str) -> float:
    """Return the score that a choice between two slots gives to what stands in `slot`.

    Raises:
        ValueError: a label that is neither slot nor a tie.
    """
    if label.casefold() == "tie":
        return 0.5
    if label not in ("A", "B"):
        raise ValueError(f"{label!r} is none of A, B and Tie")
    return float(label == slot)


def _kappa(pairs: Pairs) -> float | None:
    chosen = [(a >= THRESHOLD, b >= THRESHOLD) for a, b in pairs]
    return agreement([a for a, _ in chosen], [b for _, b in chosen]).kappa


def _weighted(pairs: Pairs) -> float | None:
    grades = [(_grade(a), _grade(b)) for a, b in pairs]
    return ordinal_agreement([a for a, _ in grades], [b for _, b in grades]).kappa


def _grade(score: float) -> int:
    return math.floor(STEPS * score + 0.5)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
