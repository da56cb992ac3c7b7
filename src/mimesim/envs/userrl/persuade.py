"""UserRL's PersuadeGym: `[{"id", "claim", "argument"}]`, or the same in the rows of its tables.

Claims and arguments probably come from a set that may not be used commercially: load them, never
pass them or anything made from them on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.packs import fold
from mimesim.envs.turns.cues import derived
from mimesim.envs.userrl.base import Record, Source, listed, made, text
from mimesim.errors import DataError

_LEVELS = 6
_TOLD = 4  # words of a point that the oracle's argument names


def task(record: Record) -> Task:
    """Return the task of a record; whoever takes up a part of the argument moves the person.

    Raises:
        DataError: a text is missing, or the argument is too short to have parts.
    """
    claim = text(record.value, "claim", record.key)
    argument = text(record.value, "argument", record.key)
    words = [word for [word] in derived(argument, [claim])]
    if len(words) < _LEVELS:
        raise DataError(f"the argument has {len(words)} telling words", where=record.key)
    parts = [words[len(words) * i // _LEVELS : len(words) * (i + 1) // _LEVELS] for i in range(6)]
    return made(
        "persuade",
        record,
        groups=[f"claim:{fold(claim)}"],
        public={"claim": claim},
        hidden={
            "argument": argument,
            "counterpoints": [
                {"id": f"p{place}", "cues": [[word] for word in part]}
                for place, part in enumerate(parts, 1)
            ],
            "max_level": _LEVELS,
            "oracle_trace": [["answer", f"Mind {', '.join(part[:_TOLD])}."] for part in parts],
        },
        goal=f"Hold the view: {claim}",
    )


def from_row(reward: Mapping[str, Any]) -> Record:
    """Return the record that a row of a table holds."""
    return Record("table", text(reward, "id", "a row"), reward)


SOURCE = Source(
    gym="persuade",
    group="the claim",
    files=("gyms/PersuadeGym/persuadegym/data/all_statements_refined.json",),
    folders=("data/persuasion_multiturn",),
    records=listed,
    task=task,
    from_row=from_row,
)
