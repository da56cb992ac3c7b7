"""The gym `persuade`."""

from __future__ import annotations

from mimesim.envs.gyms.kind import TurnKind
from mimesim.envs.gyms.persuade.gym import PersuadeGym, best, check, moves
from mimesim.envs.gyms.persuade.tasks import make_tasks

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
