"""What numbers of a config may be: one check and one wording for all configs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from mimesim.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`; `low` itself is outside when `above` is set."""

    low: float
    high: float = math.inf
    above: bool = False

    def holds(self, value: float) -> bool:
        """Tell whether a finite `value` lies in the range."""
        over = value > self.low if self.above else value >= self.low
        return math.isfinite(value) and over and value <= self.high

    def __str__(self) -> str:
        """Return the range in words."""
        if self.above:
            most = "" if self.high == math.inf else f", at most {self.high:,.10g}"
            return f"a number above {self.low:g}{most}"
        return (
            f"{self.low:g} or more"
            if self.high == math.inf
            else f"{self.low:g} to {self.high:,.10g}"
        )


COUNT = Range(1)
ROWS = Range(1, 1_000_000)
"""How much may be made before a run begins: it is all held in memory."""
NATURAL = Range(0)
POSITIVE = Range(0, above=True)
SHARE = Range(0, 1)


def check_ranges(config: Any, allowed: Range, *names: str) -> None:
    """Make sure that the numbers `names` of `config` lie in a range; None is left alone.

    Args:
        config: a dataclass.
        allowed: the range.
        names: its fields, dotted where they are those of a dataclass inside.

    Raises:
        ConfigError: naming the first that does not.
    """
    for name in names:
        value = attrgetter(name)(config)
        if value is not None and not allowed.holds(value):
            raise ConfigError(f"{name!r} cannot be {value}", expected=str(allowed))
