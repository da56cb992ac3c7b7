"""Tasks of the gym `persuade`: a pack written by hand, in an order drawn from a seed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mimesim.envs.base import Task
from mimesim.envs.packs import read_tasks
from mimesim.seeds import generator

PACK = Path(__file__).with_name("pack.jsonl")


def make_tasks(split: str, seed: int, count: int) -> list[Task]:
    """Return `count` tasks of a split, or all of them where there are fewer."""
    tasks = [task for task in _pack() if task.split == split]
    generator(seed, "persuade-tasks", split).shuffle(tasks)
    return tasks[:count]


@cache
def _pack() -> tuple[Task, ...]:
    return tuple(read_tasks(PACK))
