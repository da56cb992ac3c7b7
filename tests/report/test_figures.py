"""Numbers as people read them."""

from __future__ import annotations

import pytest

from mimesim.report.figures import (
    duration,
    measured,
    measured_range,
    number,
    percent,
    percent_range,
    plain,
    points,
    points_range,
    printable,
)
from mimesim.results import Estimate


def test_unknown_is_a_dash_and_never_zero() -> None:
    nothing = Estimate(None)
    shown = [percent(None), points(None), number(None), duration(None), measured(nothing)]
    assert shown == ["–"] * 5
    assert (percent_range(nothing), points_range(nothing), measured_range(nothing)) == ("",) * 3


def test_differences_carry_their_sign() -> None:
    assert (points(0.209), points(-0.039), points(0.0), points(-0.0001)) == (
        "+20.9",
        "−3.9",
        "0.0",
        "0.0",
    )
    assert points_range(Estimate(0.1, -0.01, 0.2)) == "−1.0 to +20.0"


def test_metrics_keep_one_precision() -> None:
    assert measured(Estimate(24.31)) == "24.3"
    assert measured_range(Estimate(24.31, 22.84, 26.0)) == "22.8 to 26.0"
    assert measured(Estimate(0.125, 0.06, 0.25), "%") == "12.5 %"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.4 s"), (42, "42 s"), (60, "1 min"), (200, "3 min 20 s"), (3900, "1 h 5 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_json_values_become_one_line() -> None:
    value = {"order": "472", "days": 21, "share": 0.35, "open": True, "tags": ["a", None]}
    assert plain(value) == "order: 472; days: 21; share: 0.35; open: yes; tags: a, –"


def test_what_no_file_can_hold_is_replaced() -> None:
    assert printable("a\ud800b\x00c\nd") == "a\ufffdb\ufffdc\nd"
