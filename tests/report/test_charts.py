"""Geometry: everything lies on its axis, gaps break lines, ticks are round."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.report.charts import axis, line_chart, span, tight_axis
from mimesim.results import Curve, Estimate

sane = st.floats(-1e6, 1e6)


@given(sane, sane, st.integers(2, 8))
def test_an_axis_holds_its_range(a: float, b: float, count: int) -> None:
    low, high = min(a, b), max(a, b)
    found = axis(low, high, count)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    assert found.low <= low + slack
    assert found.high >= high - slack
    assert all(0 <= tick.at <= 100 for tick in found.ticks)
    assert 2 <= len(found.ticks) <= 2 * count + 3


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-7, 29, ["−10", "0", "10", "20", "30"]),
        (3, 3, ["2.50", "2.75", "3.00", "3.25", "3.50"]),
    ],
)
def test_ticks_are_round(low: float, high: float, labels: list[str]) -> None:
    assert [t.label for t in axis(low, high, 5 if low == 0 else 4).ticks] == labels


def test_a_tight_axis_keeps_its_ends() -> None:
    found = tight_axis(0, 149)
    assert (found.low, found.high) == (0, 149)
    assert [t.label for t in found.ticks] == ["0", "50", "100"]


def test_a_span_keeps_unknown_bounds_unknown() -> None:
    on = axis(0, 100)
    assert span(Estimate(0.5), on, 100).low is None
    assert span(Estimate(0.5, 0.4, 0.6), on, 100).high == 60


def test_a_missing_value_breaks_the_line() -> None:
    curve = Curve("a", 0, "reward", (0, 1, 2, 3), (0.0, None, float("nan"), 1.0))
    chart = line_chart("reward", [curve], {"a": 2})
    seed = next(line for line in chart.lines if line.faint)
    assert seed.path == "M0 100M100 0"
    assert seed.series == 2
    assert chart.keys[0].last == "1.00"


def test_seeds_are_drawn_below_their_mean() -> None:
    curves = [Curve("a", seed, "reward", (0, 1), (seed, seed)) for seed in (0, 1)]
    chart = line_chart("reward", curves, {"a": 0})
    assert [line.faint for line in chart.lines] == [True, True, False]
    assert set(re.findall(r" ([\d.]+)", chart.lines[-1].path)) == {"50"}
    assert "mean of seeds" in chart.note


def test_an_empty_curve_is_an_empty_chart() -> None:
    chart = line_chart("reward", [Curve("a", 0, "reward", (), ())], {})
    assert [line.path for line in chart.lines] == ["", ""]
