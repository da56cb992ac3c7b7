"""Tasks of the gym `intention`: templates with slots, a few open details each, made from a seed.

The template decides the split, so no kind of task occurs in two of them.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.turns.splits import split_of
from mimesim.errors import DataError
from mimesim.seeds import generator

_TEMPLATES = Path(__file__).with_name("templates.toml")
_FEWEST, _MOST = 3, 5
"""Open details of a task."""
_TRIES = 50


def make_tasks(split: str, seed: int, count: int) -> list[Task]:
    """Return `count` tasks of a split; no two have the same open details with the same answers.

    Raises:
        DataError: so many different tasks were not found.
    """
    rng = generator(seed, "intention-tasks", split)
    names = [name for name in templates() if split_of("intention", group_of(name)) == split]
    tasks: list[Task] = []
    seen: set[tuple[str, ...]] = set()
    for _ in range(_TRIES * count if names else 0):
        if len(tasks) == count:
            break
        task = _draw(rng, rng.choice(names), split, f"ms-in-{split}-{seed}-{len(tasks):04d}")
        target = tuple(f"{d['description']}: {d['answer']}" for d in task.hidden["details"])
        if target not in seen:
            seen.add(target)
            tasks.append(task)
    if len(tasks) < count:
        raise DataError(f"only {len(tasks)} different tasks of {count} found", where="intention")
    return tasks


def group_of(template: str) -> str:
    """Return the group of the tasks of a template."""
    return f"tmpl:{template}"


@cache
def templates() -> Mapping[str, Any]:
    """Return the templates by name, as they stand in the file."""
    return tomllib.loads(_TEMPLATES.read_text(encoding="utf-8"))


def _draw(rng: random.Random, name: str, split: str, key: str) -> Task:
    template = templates()[name]
    slots = {slot: rng.choice(values) for slot, values in template["slots"].items()}
    text = rng.choice(template["tasks"]).format(**slots)
    known = template["details"]
    size = rng.randint(_FEWEST, min(_MOST, len(known)))
    chosen = [known[place] for place in sorted(rng.sample(range(len(known)), size))]
    details = [
        {
            "id": index,
            **{k: detail[k] for k in ("description", "importance", "inquiry", "options")},
            "answer": rng.choice(detail["options"]),
        }
        for index, detail in enumerate(chosen)
    ]
    trace = [["action", detail["inquiry"]] for detail in chosen]
    return Task(
        gym="intention",
        id=key,
        split=split,
        groups=(group_of(name),),
        public={"category": template["category"], "task": text},
        hidden={
            "details": details,
            "cues": {str(index): detail["cue"] for index, detail in enumerate(chosen)},
            "oracle_trace": trace,
            "scenario": {
                "id": key,
                "goal": f"Have this done: {text}",
                "meta": {"profile": "asked"},
            },
        },
        meta={"source": "mimesim", "license": "Apache-2.0", "generator": name, "schema": 1},
    )
