"""Published rows of the index, and when they may stand beside ours."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from mimesim.results.suite import ReferenceRow

_FILE = Path(__file__).parents[1] / "references" / "usi.toml"
TASKS = 165
BATCHES = 3


@cache
def table() -> dict[str, Any]:
    """Return the published tables, numbers as printed."""
    return tomllib.loads(_FILE.read_text("utf-8"))


def rows() -> tuple[ReferenceRow, ...]:
    """Return the published rows of the index, both agents; `scale` names the agent."""
    found = []
    for part in ("five", "six"):
        told = table()[part]
        for row in told["row"]:
            values = {name: value for name, value in row.items() if name != "subject"}
            numbers = {k: float(v) for k, v in values.items() if not isinstance(v, list)}
            found.append(ReferenceRow(row["subject"], numbers, told["source"], told["scale"]))
    return tuple(found)
