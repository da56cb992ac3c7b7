"""The gym `function`."""

from __future__ import annotations

from mimesim.envs.base import Task
from mimesim.envs.gyms.function.gym import FunctionGym, moves, read_hidden
from mimesim.envs.gyms.function.tasks import make_tasks
from mimesim.envs.gyms.kind import TurnKind

__all__ = ["GYM"]


def check(task: Task) -> list[str]:
    """Return what `public` must not hold."""
    hidden = read_hidden(task)
    return [hidden.rule]


GYM = TurnKind(
    name="function",
    episode=FunctionGym,
    make_tasks=make_tasks,
    check=check,
    best=lambda task: 1.0,
    moves=moves,
)
"""The registry's entry."""
