"""Which behaviors go with the gap: how often they show on either side, and what they go with.

A behavior can explain a gap in two ways: it is shown more or less often than by people (`mix`), or
the agent fares differently with it (`within`). Labels are of what was said, so these are
associations, not causes; a behavior may show because a conversation goes badly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mimesim.stats import Interval, wilson
from mimesim.stats.intervals import bounds

if TYPE_CHECKING:
    import numpy as np

LEAST = 5
"""Conversations with and without a behavior that an effect needs."""
_DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Labeled:
    """A conversation with a known end and the behaviors that show in it."""

    task: str
    success: bool
    behaviors: frozenset[str]


@dataclass(frozen=True, slots=True)
class Cause:
    """One behavior on both sides.

    Attributes:
        human, simulated: share of conversations in which it shows.
        human_effect: success with it minus without it, under people, in points of 1; None where
            too few have it or lack it.
        mix: what the difference in shares contributes to the gap (simulated minus human success)
            at the human effect.
        within: what the difference in success with it contributes at the human share.
    """

    behavior: str
    human: Interval
    simulated: Interval
    human_effect: float | None
    mix: Interval
    within: Interval

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def causes(
    simulated: Sequence[Labeled],
    human: Sequence[Labeled],
    names: Sequence[str],
    *,
    seed: int = 0,
    draws: int = _DRAWS,
) -> list[Cause]:
    """Return every behavior that shows on a side, the largest contribution by mix first.

    Intervals resample tasks, both sides together.
    """
    import numpy as np

    tasks = list(dict.fromkeys(one.task for one in (*simulated, *human)))
    place = {task: i for i, task in enumerate(tasks)}
    rng = np.random.default_rng(seed)
    weights = np.ones((draws + 1, len(tasks)))
    for row, picked in enumerate(rng.integers(0, len(tasks), size=(draws, len(tasks)))):
        weights[row + 1] = np.bincount(picked, minlength=len(tasks))
    sides = [_Side(side, place, weights) for side in (simulated, human)]
    found = []
    for name in names:
        counts = [sum(name in one.behaviors for one in side) for side in (simulated, human)]
        if any(counts):
            found.append(_cause(name, (sides[0], sides[1]), counts))
    return sorted(found, key=lambda one: -abs(one.mix.value or 0.0))


class _Side:
    """A side under all resamplings at once; row 0 of `weights` is the data as they are."""

    def __init__(
        self, rows: Sequence[Labeled], place: dict[str, int], weights: np.ndarray[Any, Any]
    ) -> None:
        import numpy as np

        self.rows = rows
        self._weights = weights
        self._at = np.asarray([place[one.task] for one in rows], dtype=int)
        self._won = np.asarray([one.success for one in rows], dtype=float)

    def rates(self, name: str) -> tuple[np.ndarray[Any, Any], ...]:
        """Return share with it, success with it, success without it; one value per resampling."""
        import numpy as np

        has = np.asarray([name in one.behaviors for one in self.rows], dtype=float)
        weight = self._weights[:, self._at]
        held, lacked = weight @ has, weight @ (1 - has)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = held / (held + lacked)
            return (
                share,
                (weight @ (has * self._won)) / held,
                (weight @ ((1 - has) * self._won)) / lacked,
            )


def _cause(name: str, sides: tuple[_Side, _Side], counts: Sequence[int]) -> Cause:
    (s_share, s_with, _), (h_share, h_with, h_without) = (side.rates(name) for side in sides)
    enough = LEAST <= counts[1] <= len(sides[1].rows) - LEAST
    both = enough and counts[0] >= LEAST
    return Cause(
        name,
        human=wilson(counts[1], len(sides[1].rows)),
        simulated=wilson(counts[0], len(sides[0].rows)),
        human_effect=float((h_with - h_without)[0]) if enough else None,
        mix=_interval((s_share - h_share) * (h_with - h_without), counts[1], known=enough),
        within=_interval(h_share * (s_with - h_with), counts[0], known=both),
    )


def _interval(samples: np.ndarray[Any, Any], n: int, *, known: bool) -> Interval:
    import numpy as np

    if not known:
        return Interval(None, None, None, n, f"fewer than {LEAST} conversations")
    drawn = samples[1:][np.isfinite(samples[1:])]
    return Interval(
        float(samples[0]), *bounds(drawn), n, f"bootstrap over tasks, {len(drawn)} draws"
    )
