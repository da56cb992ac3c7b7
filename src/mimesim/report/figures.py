"""Numbers as people read them: percent, points, durations; unknown is a dash, never 0."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mimesim.results import Estimate

UNKNOWN = "–"
MINUS = "\u2212"
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def percent(value: float | None, digits: int = 0) -> str:
    """Return a fraction as percent, without the sign."""
    return UNKNOWN if value is None else f"{100 * value:.{digits}f}"


def percent_range(estimate: Estimate, digits: int = 0) -> str:
    """Return the 95 % interval of a fraction in percent, e.g. `22 to 46`; empty when unknown."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{percent(estimate.low, digits)} to {percent(estimate.high, digits)}"


def points(value: float | None, digits: int = 1) -> str:
    """Return a difference of fractions in percentage points, with its sign."""
    if value is None:
        return UNKNOWN
    shown = f"{abs(100 * value):.{digits}f}"
    if float(shown) == 0:
        return shown
    return f"{'+' if value > 0 else MINUS}{shown}"


def points_range(estimate: Estimate) -> str:
    """Return the 95 % interval of a difference in points; empty when unknown."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{points(estimate.low)} to {points(estimate.high)}"


def number(value: float | None) -> str:
    """Return a plain number with three significant digits at most after the point."""
    if value is None:
        return UNKNOWN
    size = abs(value)
    digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2
    text = f"{value:,.{digits}f}"
    return text.replace("-", MINUS)


def measured(estimate: Estimate, unit: str = "") -> str:
    """Return the value of a metric in its unit; `%` is a fraction shown as percent."""
    if estimate.value is None:
        return UNKNOWN
    if unit == "%":
        return f"{percent(estimate.value, 1)} %"
    return _fixed(estimate.value, _places(estimate))


def measured_range(estimate: Estimate, unit: str = "") -> str:
    """Return the 95 % interval of a metric, as exact as its value; empty when unknown."""
    if estimate.low is None or estimate.high is None:
        return ""
    if unit == "%":
        return percent_range(estimate, 1)
    places = _places(estimate)
    return f"{_fixed(estimate.low, places)} to {_fixed(estimate.high, places)}"


def _places(estimate: Estimate) -> int:
    size = abs(estimate.value or 0)
    return 0 if size >= 1000 else 1 if size >= 10 else 2


def _fixed(value: float, places: int) -> str:
    return f"{value:,.{places}f}".replace("-", MINUS)


def duration(seconds: float | None) -> str:
    """Return seconds as `4 s`, `3 min 20 s` or `1 h 5 min`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def plain(value: Any) -> str:
    """Return a JSON value as one readable line."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {plain(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(inner) for inner in value)
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    return str(value)


def words(name: str) -> str:
    """Return a key such as `max_turns` as words."""
    return name.replace("_", " ")


def printable(text: str) -> str:
    """Return `text` with control characters and lone surrogates as U+FFFD, fit for a file."""
    return _UNPRINTABLE.sub("\ufffd", text)
