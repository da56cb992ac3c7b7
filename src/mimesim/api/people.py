"""Whom an agent meets: a file, a pack, scenarios as objects, or goals in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.conversation import read_scenarios, tasks_of
from mimesim.errors import DataError, UsageError
from mimesim.jsonio import canonical
from mimesim.scenarios.compose import compose
from mimesim.scenarios.manual import PACKS
from mimesim.scenarios.manual import load as load_manual
from mimesim.scenarios.rows import row_to_scenario
from mimesim.scenarios.types import Scenario
from mimesim.seeds import fingerprint

Scenarios = str | Path | Sequence[str | Mapping[str, Any] | Scenario]
"""A path, the name of a pack, or a list of goals and scenarios (`docs/formats.md`)."""

PACK_SIZE = 20
"""Cases composed from a pack when no number is asked for."""

LINES_GOAL = "say the lines that were written"
"""Goal of a person who only reads out a list of lines."""


def people_of(
    scenarios: Scenarios | None,
    *,
    seed: int,
    limit: int | None,
    lines: Sequence[str] = (),
) -> tuple[Task, ...]:
    """Return one task per person.

    Args:
        scenarios: who they are; None only with `lines`.
        seed: of the cases that a pack composes.
        limit: how many at most; None = all there are, or `PACK_SIZE` of a pack.
        lines: what they say, word for word, whoever they are.

    Raises:
        UsageError: nobody, or no such file or pack.
        DataError: a scenario that cannot be played.
    """
    if isinstance(scenarios, str | Path):
        tasks = _named(str(scenarios), seed, PACK_SIZE if limit is None else limit)
    else:
        reader = [{"id": "lines", "goal": LINES_GOAL}] if lines else []
        tasks = tasks_of(_listed(reader if scenarios is None else scenarios))
    if not tasks:
        raise UsageError("there is nobody to talk to", expected="at least one scenario")
    if lines:
        tasks = [_with_lines(task, lines) for task in tasks]
    return tuple(tasks[:limit])


def _named(name: str, seed: int, count: int) -> list[Task]:
    """Read a file, or compose the cases of a pack."""
    if Path(name).suffix or Path(name).exists():
        return read_scenarios(name)
    packs = sorted(path.parent.name for path in PACKS.glob("*/manual.toml"))
    if name not in packs:
        raise UsageError(
            f"{name!r} is neither a file nor a pack of scenarios",
            expected="X.jsonl, one of " + ", ".join(packs) + ", or a list",
            mend="put a single goal into a list: [goal]",
        )
    manual = load_manual(name)
    rows = compose(manual, seed=seed, count=count).rows
    return tasks_of(
        (f"{name}[{row.index}]", row_to_scenario(row, manual).to_json()) for row in rows
    )


def _listed(scenarios: Sequence[str | Mapping[str, Any] | Scenario]) -> Iterator[tuple[str, Any]]:
    """Yield where each scenario stands and its JSON values; what has no id is named by its content."""
    for place, entry in enumerate(scenarios):
        where = f"scenarios[{place}]"
        if isinstance(entry, Scenario):
            yield where, entry.to_json()
        elif isinstance(entry, str):
            if not entry.strip():
                raise DataError("a goal is empty", where=where, expected="what the person wants")
            yield where, {"id": f"goal-{fingerprint(entry)[:8]}", "goal": entry.strip()}
        elif isinstance(entry, Mapping):
            yield where, {"id": f"scenario-{fingerprint(canonical(entry))[:8]}", **entry}
        else:
            raise DataError(
                f"a scenario is of the type {type(entry).__name__}",
                where=where,
                expected="a goal or an object",
            )


def _with_lines(task: Task, lines: Sequence[str]) -> Task:
    scenario = {**task.scenario, "script": list(lines)}
    return tasks_of([(f"scenario {task.id!r}", scenario)])[0]
