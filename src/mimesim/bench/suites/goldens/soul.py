"""Golden checks of SOUL: its aggregation reproduces what is printed (benchmarks.md 5.6, 5.7, 18.12)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mimesim.bench.suites.goldens.base import Check, numbers
from mimesim.bench.suites.references import references
from mimesim.bench.suites.soul_files import AXES, FILES
from mimesim.results.suite import ReferenceRow

_MACROS = {
    "macro27": (69.31, 67.03, 67.50, 66.89, 64.60, 61.55, 52.08, 40.65, 53.81, 48.37),
    "macro23": (68.45, 66.04, 66.77, 66.13, 63.46, 59.53, 49.60, 37.49, 50.92, 45.49),
    "macro5": (71.70, 69.36, 68.70, 68.86, 66.90, 59.44, 55.34, 43.84, 55.38, 50.06),
}
"""Of the ten models of the page, in its order."""


def _tables() -> tuple[Sequence[ReferenceRow], Sequence[ReferenceRow]]:
    rows = references("soul")
    axes = [row for row in rows if "micro" in row.values]
    return axes, [row for row in rows if "Fantom" in row.values]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _axis(row: ReferenceRow, axis: str) -> float:
    return _mean([row.values[file.title] for file in FILES if file.axis == axis])


def _axes() -> Mapping[str, float]:
    return {f"{row.subject} {axis}": _axis(row, axis) for row in _tables()[1] for axis in AXES}


def _macros() -> Mapping[str, float]:
    found = {}
    axes, files = _tables()
    for row in axes:
        found[f"{row.subject} macro5"] = _mean([row.values[axis] for axis in AXES])
    for row in files:
        align = [row.values[file.title] for file in FILES if file.task == "alignx"]
        others = [row.values[file.title] for file in FILES if file.task != "alignx"]
        found[f"{row.subject} macro27"] = _mean([*others, *align])
        found[f"{row.subject} macro23"] = _mean([*others, _mean(align)])
    return found


CHECKS: list[Check] = [
    numbers(
        "soul/axes from files",
        {f"{row.subject} {axis}": row.values[axis] for row in _tables()[0] for axis in AXES},
        _axes,
        tolerance=0.06,
    ),
    numbers(
        "soul/macros from files",
        {
            f"{row.subject} {name}": values[place]
            for place, row in enumerate(_tables()[1])
            for name, values in _MACROS.items()
        },
        _macros,
        tolerance=0.011,
    ),
]
