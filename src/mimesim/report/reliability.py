"""The reliability plot of a calibration: simulated against human success by difficulty, as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim.errors import DataError
from mimesim.jsonio import read_object, write_text
from mimesim.report.html import drawing

_LEFT, _BOTTOM, _SIDE = 60.0, 350.0, 320.0


@dataclass(frozen=True, slots=True)
class Mark:
    """One bin of tasks; the bar is the interval of the gap around the diagonal's distance."""

    x: float
    y: float
    radius: float
    low: float | None
    high: float | None
    label: str


def plot(record: Path | str, out: Path | str) -> None:
    """Draw the record of `mimesim calibrate` at `record` into the file `out`.

    Raises:
        DataError: not such a record.
    """
    found = read_object(record, "gaps")["gaps"]
    try:
        marks = [_mark(one) for one in found["bins"]]
        title = f"ECE {found['ece']:.3f}; a perfect simulator {found['null']['value']:.3f}"
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            "not the record of a calibration", where=str(record), expected="calibration.json"
        ) from error
    write_text(out, drawing("reliability.svg.jinja", marks=marks, title=title, ticks=_TICKS))


_TICKS = (0, 20, 40, 60, 80, 100)


def _mark(one: Mapping[str, Any]) -> Mark:
    human, simulated, gap = float(one["human"]), float(one["simulated"]), one["gap"]
    bounds = [None if gap[side] is None else human + float(gap[side]) for side in ("low", "high")]
    low, high = (None if b is None else _height(min(1.0, max(0.0, b))) for b in bounds)
    label = (
        f"difficulty {one['low']:g} to {one['high']:g}: {one['tasks']} tasks, "
        f"simulated {simulated:.1%}, people {human:.1%}"
    )
    radius = round(3 + 1.2 * math.sqrt(one["tasks"]) / 2, 1)
    return Mark(round(_LEFT + _SIDE * human, 1), _height(simulated), radius, low, high, label)


def _height(rate: float) -> float:
    return round(_BOTTOM - _SIDE * rate, 1)
