"""The hand-written dialogues of `tests/data/behaviors`: one file per behavior, one for neutral.

Each line: `id`, `behavior` (null = neutral), `case` (a row of `cases.json`), `params`, `turns` (public;
`replayed` marks turns that the customer did not generate), perhaps `thoughts` (one per customer
turn), and `expected`: whether the behavior is `realized`, the rule check's `score` and what it comes
to (`check`: at least one half, null = no score), the `kind` (positive, negative, neighbor), whether
it is `announced`, and which `neighbor` it is instead. `note` names a known weak spot of a rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.scenarios import behaviors
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.behaviors import Situation
from mimesim.scenarios.types import Row

FOLDER = Path(__file__).resolve().parents[1] / "data" / "behaviors"
NAMES = (*(f"B{n}" for n in range(1, 14)), "neutral")


@dataclass(frozen=True, slots=True)
class Played:
    """A hand-written dialogue in the situation that it was written for.

    Attributes:
        turns: the whole public transcript; generated: without the replayed turns.
        thoughts: one text per customer turn, or nothing.
    """

    id: str
    behavior: str | None
    case: Situation
    params: dict[str, Any]
    turns: tuple[PublicMessage, ...]
    generated: tuple[PublicMessage, ...]
    thoughts: tuple[str, ...]
    expected: dict[str, Any]


@cache
def cases() -> dict[str, Row]:
    """Return the rows that the dialogues refer to."""
    raw = jsonio.read_json(FOLDER / "cases.json")
    return {name: Row.from_json(value, f"cases.json: {name}") for name, value in raw.items()}


@cache
def dialogues(name: str) -> tuple[Played, ...]:
    """Return the dialogues written for a behavior, or for `neutral`."""
    return tuple(_played(line.value) for line in jsonio.read_jsonl(FOLDER / f"{name}.jsonl"))


def _played(raw: dict[str, Any]) -> Played:
    row, params = cases()[raw["case"]], raw["params"]
    if raw["behavior"]:
        row = replace(row, behavior=raw["behavior"], params=params)
        if params or not behaviors.get(raw["behavior"]).told:
            row = replace(row, directive=behaviors.get(raw["behavior"]).directive(params))
    turns = [
        (PublicMessage(Role(t["role"]), t["text"]), t.get("replayed", False)) for t in raw["turns"]
    ]
    before = tuple(message for message, replayed in turns if replayed)
    return Played(
        id=raw["id"],
        behavior=raw["behavior"],
        case=Situation(row, manuals.load(), before),
        params=params,
        turns=tuple(message for message, _ in turns),
        generated=tuple(message for message, replayed in turns if not replayed),
        thoughts=tuple(raw.get("thoughts", ())),
        expected=raw["expected"],
    )
