"""Single values: a score or why there is none, and an estimate with its interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Score:
    """A verdict that could be had.

    Attributes:
        value: the score; `direction` says which way is better.
        scorer: who scored, e.g. `rule`. version: of its rubric.
    """

    value: float
    scorer: str = ""
    version: str = ""
    direction: Literal["higher", "lower", "nearer"] = "higher"


@dataclass(frozen=True, slots=True)
class Unscored:
    """A verdict that could not be had; never 0.

    Attributes:
        reason: short, public. raw: what the scorer wrote, for logs.
        state: failed (broken verdict), refused, or skipped (not asked for).
    """

    reason: str
    raw: str = ""
    state: Literal["failed", "refused", "skipped"] = "failed"
    scorer: str = ""
    version: str = ""


class IntervalLike(Protocol):
    """What an `Estimate` is made from; `stats.Interval` is one."""

    @property
    def value(self) -> float | None:
        """Return the point value, None when unknown."""
        ...

    @property
    def low(self) -> float | None:
        """Return the lower 95 % bound, None when unknown."""
        ...

    @property
    def high(self) -> float | None:
        """Return the upper 95 % bound, None when unknown."""
        ...

    @property
    def n(self) -> int:
        """Return the observations behind the value."""
        ...

    @property
    def method(self) -> str:
        """Return how the interval was made."""
        ...


@dataclass(frozen=True, slots=True)
class Estimate:
    """A recorded value with its 95 % interval; None = unknown, never 0."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    method: str = ""

    @classmethod
    def of(cls, interval: IntervalLike) -> Estimate:
        """Record an interval of `stats`."""
        return cls(interval.value, interval.low, interval.high, interval.n, interval.method)

    def times(self, factor: float) -> Estimate:
        """Return the same in another unit, e.g. a fraction in percent by 100."""
        value, low, high = (
            None if v is None else v * factor for v in (self.value, self.low, self.high)
        )
        if factor < 0:
            low, high = high, low
        return replace(self, value=value, low=low, high=high)

    @property
    def resolved(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def brief(self) -> dict[str, Any]:
        """Return `{"mean", "ci95", "n"}`, the shape of `--json` output."""
        bounds = None if self.low is None or self.high is None else [self.low, self.high]
        return {"mean": self.value, "ci95": bounds, "n": self.n}


UNKNOWN = Estimate(None)
