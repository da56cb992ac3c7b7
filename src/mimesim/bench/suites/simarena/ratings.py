"""The arithmetic of SimulatorArena: z-scores per worker, three levels of correlation, standings."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from mimesim.stats.correlations import sample_deviation
from mimesim.stats.proportions import f1

FEWEST = 3
"""From so many ratings on a worker has a scale of their own."""
LEVELS = ("instance", "intermediate", "system")


@dataclass(frozen=True, slots=True)
class Rated:
    """A person's rating of one conversation.

    Attributes:
        worker: who rated. assistant: whom they talked to. kind: difficulty level or document type.
    """

    worker: str
    assistant: str
    kind: str
    rating: float


@dataclass(frozen=True, slots=True)
class Point:
    """A person's z-score and the judge's rating of the simulated conversation on the same task."""

    rated: Rated
    human: float
    simulated: float


def z_scores(ratings: Sequence[Rated]) -> list[float]:
    """Return the z-score of each rating on its worker's own scale.

    Workers with fewer than three ratings share one scale; a scale of one rating, or without
    spread, gives 0.
    """
    own: dict[str, list[float]] = {}
    for one in ratings:
        own.setdefault(one.worker, []).append(one.rating)
    pooled = [value for values in own.values() if len(values) < FEWEST for value in values]
    scales = {
        worker: _scale(values if len(values) >= FEWEST else pooled)
        for worker, values in own.items()
    }
    found = []
    for one in ratings:
        mean, spread = scales[one.worker]
        found.append((one.rating - mean) / spread if spread else 0.0)
    return found


def _scale(values: Sequence[float]) -> tuple[float, float]:
    return math.fsum(values) / len(values), sample_deviation(values) or 0.0


def grouped(points: Sequence[Point], level: str) -> list[tuple[float, float]]:
    """Return (human, simulated) per conversation, per assistant and kind, or per assistant."""
    groups: dict[Hashable, list[Point]] = {}
    for place, one in enumerate(points):
        keys: Mapping[str, Hashable] = {
            "instance": place,
            "intermediate": (one.rated.assistant, one.rated.kind),
            "system": one.rated.assistant,
        }
        groups.setdefault(keys[level], []).append(one)
    return [
        (
            math.fsum(one.human for one in group) / len(group),
            math.fsum(one.simulated for one in group) / len(group),
        )
        for group in groups.values()
    ]


def macro_f1(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Return the mean F1 of right and wrong of (simulated, human) outcomes; None without any."""
    if not pairs:
        return None
    both, neither = pairs.count((True, True)), pairs.count((False, False))
    only, missed = pairs.count((True, False)), pairs.count((False, True))
    return (f1(both, only, missed) + f1(neither, missed, only)) / 2


def standings(rows: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return name -> mean population z-score over its columns, best first."""
    columns = list(zip(*rows.values(), strict=True))
    scales = []
    for column in columns:
        mean = math.fsum(column) / len(column)
        scales.append((mean, math.sqrt(math.fsum((v - mean) ** 2 for v in column) / len(column))))
    found = {
        name: math.fsum((v - m) / s for v, (m, s) in zip(row, scales, strict=True)) / len(row)
        for name, row in rows.items()
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))
