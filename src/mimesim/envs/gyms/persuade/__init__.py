"""The gym `persuade`."""

from __future__ import annotations

from mimesim.envs.gyms.persuade.gym import PersuadeGym, best, check, moves
from mimesim.envs.gyms.persuade.tasks import make_tasks
from mimesim.envs.turns.kind import TurnKind

__all__ = ["GYM"]

GYM = TurnKind(
    name="persuade",
    episode=PersuadeGym,
    make_tasks=make_tasks,
    check=check,
    best=best,
    moves=moves,
)
"""The registry's entry."""
