"""Tasks of the gym `function`: rules made from a seed, split by what they mean."""

from __future__ import annotations

import random
from fractions import Fraction

from mimesim.envs.base import Task
from mimesim.envs.gyms.function import rules
from mimesim.envs.turns.splits import split_of
from mimesim.errors import DataError
from mimesim.seeds import generator

_WEIGHTS = {"+": 4, "-": 3, "*": 4, "/": 1, "**": 1}
_LARGEST = 5000
_TRIES = 400


def make_tasks(split: str, seed: int, count: int) -> list[Task]:
    """Return `count` tasks of a split; no two have rules that mean the same.

    Raises:
        DataError: so many different rules were not found.
    """
    rng = generator(seed, "function-tasks", split)
    tasks: list[Task] = []
    seen: set[str] = set()
    for _ in range(_TRIES * count):
        if len(tasks) == count:
            return tasks
        task = _draw(rng, split, f"ms-fn-{split}-{seed}-{len(tasks):04d}")
        if task is not None and task.groups[0] not in seen:
            seen.add(task.groups[0])
            tasks.append(task)
    if len(tasks) == count:
        return tasks
    raise DataError(f"only {len(tasks)} different rules of {count} were found", where="function")


def _draw(rng: random.Random, split: str, name: str) -> Task | None:
    """Return a task, or None where the draw has no proper value or belongs to another split.

    0 is no proper value: it is what one guesses first.
    """
    rule = _rule(rng)
    tree = rules.parse(rule)
    case = [rng.randint(1, 10) for _ in rules.NAMES]
    try:
        expected = rules.evaluate(tree, case)
    except rules.Undefined:
        return None
    if expected.denominator != 1 or not 0 < abs(expected) <= _LARGEST:
        return None
    group = rules.signature(tree)
    if split_of("function", group) != split:
        return None
    return Task(
        gym="function",
        id=name,
        split=split,
        groups=(group,),
        public={"intro": "The rule is set."},
        hidden={
            "rule": rule,
            "test_case": case,
            "expected": int(expected),
            "oracle_trace": [["search", "test"], ["answer", rules.spell(Fraction(expected))]],
            "scenario": {"id": name, "goal": "none", "meta": {"profile": "asked"}},
        },
        meta={"source": "mimesim", "license": "Apache-2.0", "schema": 1},
    )


def _rule(rng: random.Random) -> str:
    """Return a rule in which every variable stands at least once, with three to five operations."""
    operations = rng.randint(3, 5)
    names = [*rules.NAMES, *rng.choices([*rules.NAMES, "2", "3"], k=operations - 3)]
    rng.shuffle(names)
    parts = names
    while len(parts) > 1:
        place = rng.randrange(len(parts) - 1)
        operator = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        left, right = parts[place], "2" if operator == "**" else parts[place + 1]
        joined = f"({left} {operator} {right})"
        kept = [joined] if operator != "**" else [f"({joined} + {parts[place + 1]})"]
        parts = [*parts[:place], *kept, *parts[place + 2 :]]
    return parts[0][1:-1]
