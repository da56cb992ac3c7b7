"""How difficult tasks are: frozen success rates, which choose the bins of the calibration error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mimesim import jsonio
from mimesim.errors import DataError
from mimesim.stats import ece

FROZEN = Path(__file__).parent / "data" / "tau_usi_difficulty.json"
"""Of the 165 tasks of tau-bench; its license stands beside it."""

FAR = 0.1
"""Distance of a map from both sides' success above which chance at its rates is not chance here."""

_TAU = re.compile(r"(airline|retail)[_-](\d+)(?:_(?:ann)?\d+)?")


def task_key(name: str) -> str:
    """Return a task's name without the number of its run or batch, as the frozen map has it.

    Only names of tau-bench are understood (`retail_12_3` and `retail-012` are `retail_12`); any
    other one stays as it is.
    """
    found = _TAU.fullmatch(name)
    return f"{found[1]}_{int(found[2])}" if found else name


def off_map(difficulty: Mapping[str, float], *sides: Mapping[str, float]) -> float:
    """Return how far a map is from the success of the nearer side, mean over bins by their tasks."""
    return min(ece(side, difficulty, difficulty).value or 0.0 for side in sides)


@cache
def frozen_difficulty() -> dict[str, float]:
    """Return the map that comes with the package."""
    return read_difficulty(FROZEN)


def read_difficulty(path: Path | str) -> dict[str, float]:
    """Return task -> frozen success rate, from a flat map or one under `difficulty`.

    Raises:
        DataError: not such a map, or a rate outside [0, 1].
    """
    value = jsonio.read_object(path)
    inner = value.get("difficulty", value)
    if not isinstance(inner, dict) or not inner:
        raise DataError("no map of difficulties", where=str(path), expected='{"task": rate, ...}')
    for task, rate in inner.items():
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise DataError(
                f"the difficulty of {task!r} is {rate!r}",
                where=str(path),
                expected="a success rate from 0 to 1",
            )
    return {task: float(rate) for task, rate in inner.items()}
