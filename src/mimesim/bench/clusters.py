"""What is resampled as one in an interval: tasks that share a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mimesim.envs.base import Task


def clusters_of(tasks: Sequence[Task]) -> dict[str, str]:
    """Return task id -> cluster: tasks that share a group, directly or through others, are one.

    Where that makes most tasks one cluster (many groups per task, as in `travel`), no interval
    could be had; then every task stands alone, which makes intervals somewhat too narrow.
    """
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for task in tasks:
        first, *others = task.groups
        for other in others:
            parent[root(other)] = root(first)
    found = {task.id: root(task.groups[0]) for task in tasks}
    largest = max(Counter(found.values()).values(), default=0)
    if 2 * largest > len(tasks) > 1:
        return {task.id: task.id for task in tasks}
    return found
