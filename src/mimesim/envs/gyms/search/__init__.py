"""The gym `search`."""

from __future__ import annotations

from mimesim.envs.base import Task
from mimesim.envs.gyms.search.gym import SearchGym, moves, read_hidden
from mimesim.envs.gyms.search.tasks import make_tasks
from mimesim.envs.turns.kind import TurnKind

__all__ = ["GYM", "check"]


def check(task: Task) -> list[str]:
    """Return what `public` must not hold."""
    hidden = read_hidden(task)
    return [hidden.answer, *hidden.aliases]


GYM = TurnKind(
    name="search",
    episode=SearchGym,
    make_tasks=make_tasks,
    check=check,
    best=lambda task: 1.0,
    moves=moves,
)
"""The registry's entry."""
