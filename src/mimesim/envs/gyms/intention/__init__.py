"""The gym `intention`."""

from __future__ import annotations

from mimesim.envs.gyms.intention.details import best, check
from mimesim.envs.gyms.intention.gym import IntentionGym, moves
from mimesim.envs.gyms.intention.tasks import make_tasks
from mimesim.envs.turns.kind import TurnKind

__all__ = ["GYM"]

GYM = TurnKind(
    name="intention",
    episode=IntentionGym,
    make_tasks=make_tasks,
    check=check,
    best=best,
    moves=moves,
)
"""The registry's entry."""
