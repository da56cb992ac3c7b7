"""Geometry of the charts, in percent of the drawing area; templates draw it as inline SVG.

Positions are fractions of 100, so a chart fills any width while its text stays HTML and readable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mimesim.report.figures import MINUS
from mimesim.results import Curve, Estimate

SERIES = 8
"""Number of series colors the style sheet has."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: position in percent and its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis from `low` to `high` with round ticks."""

    low: float
    high: float
    ticks: tuple[Tick, ...]

    def at(self, value: float) -> float:
        """Return the position of `value` in percent, cut to the axis."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)


def axis(low: float, high: float, count: int = 5) -> Axis:
    """Return an axis that holds [low, high] and ends on round ticks."""
    low, high = _apart(low, high)
    step = _round_step((high - low) / count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return _axis(first * step, last * step, range(first, last + 1), step)


def tight_axis(low: float, high: float, count: int = 5) -> Axis:
    """Return an axis from `low` to `high` exactly, with the round ticks that fall inside."""
    low, high = _apart(low, high)
    step = _round_step((high - low) / count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return _axis(low, high, range(first, last + 1), step)


def _apart(low: float, high: float) -> tuple[float, float]:
    return (low - 0.5, high + 0.5) if high - low < 1e-12 else (low, high)


def _round_step(rough: float) -> float:
    scale = 10.0 ** math.floor(math.log10(rough))
    return next(s * scale for s in (1, 2, 2.5, 5, 10) if s * scale >= rough * (1 - 1e-9))


def _axis(low: float, high: float, marks: Iterable[int], step: float) -> Axis:
    digits = next((d for d in range(9) if abs(round(step, d) - step) < 1e-9 * step), 9)
    bare = Axis(low, high, ())
    ticks = [Tick(bare.at(k * step), f"{k * step:.{digits}f}") for k in marks]
    return Axis(low, high, tuple(Tick(t.at, t.label.replace("-", MINUS)) for t in ticks))


@dataclass(frozen=True, slots=True)
class Span:
    """An interval on an axis: positions in percent; None where a bound is unknown."""

    value: float | None
    low: float | None
    high: float | None


def span(estimate: Estimate, on: Axis, scale: float = 1.0) -> Span:
    """Return the positions of an estimate, multiplied by `scale`, on an axis."""

    def place(value: float | None) -> float | None:
        return None if value is None else on.at(scale * value)

    return Span(place(estimate.value), place(estimate.low), place(estimate.high))


@dataclass(frozen=True, slots=True)
class Line:
    """One polyline: `series` is its color, `path` the SVG path; `faint` = one seed of several."""

    series: int
    path: str
    faint: bool


@dataclass(frozen=True, slots=True)
class Key:
    """A legend entry: color, name, and the value at the end of the line."""

    series: int
    label: str
    last: str


@dataclass(frozen=True, slots=True)
class LineChart:
    """A training chart of one metric."""

    title: str
    x_label: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    keys: tuple[Key, ...]
    note: str


def line_chart(metric: str, curves: Sequence[Curve], series: dict[str, int]) -> LineChart:
    """Draw the curves of one metric: each seed faintly, the smoothed mean of an arm strongly."""
    known = [v for c in curves for v in c.y if v is not None and math.isfinite(v)]
    steps = [x for c in curves for x in c.x]
    y = axis(min(known, default=0.0), max(known, default=1.0), 4)
    x = tight_axis(min(steps, default=0.0), max(steps, default=1.0))
    lines: list[Line] = []
    keys: list[Key] = []
    window = 1
    for arm in dict.fromkeys(c.arm for c in curves):
        mine = [c for c in curves if c.arm == arm]
        color = series.get(arm, 0)
        mean = _mean_curve(mine)
        window = max(1, len(mean) // 20)
        smooth = _smooth(mean, window)
        lines += [Line(color, _path(list(zip(c.x, c.y, strict=False)), x, y), True) for c in mine]
        lines.append(Line(color, _path(smooth, x, y), False))
        last = next((v for _, v in reversed(smooth) if v is not None), None)
        keys.append(Key(color, arm, "" if last is None else f"{last:.2f}"))
    many = max((len({c.seed for c in curves if c.arm == k.label}) for k in keys), default=1)
    parts = ["thin: single seeds" if many > 1 else "thin: every step", "thick: mean of seeds"]
    if window > 1:
        parts.append(f"smoothed over {window} steps")
    lines.sort(key=lambda line: not line.faint)
    return LineChart(metric, curves[0].x_label, x, y, tuple(lines), tuple(keys), ", ".join(parts))


def _mean_curve(curves: Sequence[Curve]) -> list[tuple[float, float | None]]:
    at: dict[float, list[float]] = {}
    for curve in curves:
        for x, y in zip(curve.x, curve.y, strict=False):
            at.setdefault(x, [])
            if y is not None:
                at[x].append(y)
    return [(x, sum(ys) / len(ys) if ys else None) for x, ys in sorted(at.items())]


def _smooth(
    points: list[tuple[float, float | None]], window: int
) -> list[tuple[float, float | None]]:
    out: list[tuple[float, float | None]] = []
    for i, (x, _) in enumerate(points):
        near = [y for _, y in points[max(0, i - window + 1) : i + 1] if y is not None]
        out.append((x, sum(near) / len(near) if near else None))
    return out


def _path(points: Sequence[tuple[float, float | None]], x: Axis, y: Axis) -> str:
    """Return an SVG path; a missing value breaks the line."""
    parts: list[str] = []
    pen = "M"
    for px, py in points:
        if py is None or not math.isfinite(py):
            pen = "M"
            continue
        parts.append(f"{pen}{x.at(px):g} {100 - y.at(py):g}")
        pen = "L"
    return "".join(parts)
