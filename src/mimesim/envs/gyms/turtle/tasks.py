"""Tasks of the gym `turtle`: a written pack; related stories share a group, so one split."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mimesim.envs import packs
from mimesim.envs.base import Task
from mimesim.seeds import generator

_PACK = Path(__file__).with_name("pack.jsonl")
_ASKED = (
    "Does it happen at night?",
    "Is there an animal in it?",
    "Did somebody make a mistake?",
    "Is the place important?",
)


def make_tasks(split: str, seed: int, count: int) -> list[Task]:
    """Return stories of a split in a seeded order: `count` of them, or all there are."""
    tasks = [task for task in _pack() if task.split == split]
    generator(seed, "turtle-tasks", split).shuffle(tasks)
    return tasks[:count]


def moves(task: Task) -> list[tuple[str, str]]:
    """Return what a random agent does here: ask anything, or tell what it was told."""
    asked = [("action", text) for text in _ASKED]
    return [*asked, ("answer", task.public["surface"]), ("answer", task.public["title"])]


@cache
def _pack() -> tuple[Task, ...]:
    return tuple(packs.read_tasks(_PACK))
