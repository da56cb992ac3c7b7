"""Published rows to read beside a new run, and what keeps the two from being compared.

Paper: MIMESIS, its table of agents.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from mimesim.bench.averages import WEIGHTS
from mimesim.config import from_options
from mimesim.results import GymAverages, Reference

_FILE = Path(__file__).with_name("published.toml")


@cache
def published() -> tuple[Reference, ...]:
    """Return the published rows, numbers as printed."""
    table = tomllib.loads(_FILE.read_text("utf-8"))
    shared = {"protocol": table["protocol"]}
    return tuple(from_options(Reference, shared | row, where=_FILE.name) for row in table["row"])


def warnings(arms: Iterable[GymAverages], max_steps: Iterable[int] = ()) -> tuple[str, ...]:
    """Return in which respects a run was made differently from the published rows.

    Args:
        arms: of the run, over all users.
        max_steps: step limits of its gyms.
    """
    theirs = published()[0].protocol
    found: dict[str, str] = {}
    for one in arms:
        if one.judge_mode != theirs["judge"]:
            found["judge"] = f"judge: theirs is each user itself, here {one.judge_mode}"
        if one.search != theirs["search"]:
            found["search"] = (
                f"search: theirs {theirs['search']} (inferred), here {one.search or 'not played'}"
            )
        if one.tasks != theirs["tasks"] or one.missing:
            found["tasks"] = (
                f"tasks: theirs {theirs['tasks']} of UserRL in eight gyms, here {one.tasks} "
                f"in {len(WEIGHTS) - len(one.missing)} of them"
            )
        if set(one.users) != set(theirs["users"]):
            found["users"] = f"users: theirs nine named models, here {len(one.users)}"
    if set(max_steps) - {theirs["max_steps"]}:
        found["steps"] = f"steps: theirs at most {theirs['max_steps']}, here {_listed(max_steps)}"
    found["strict"] = "failures: theirs count 0, so compare the column that counts them 0"
    found["scale"] = "scale: printed numbers are times 100; so are those of this table"
    return tuple(found.values())


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(str(value) for value in sorted(set(values)))
