"""The gym `turtle`; `stories` says how its tasks are written."""

from __future__ import annotations

from mimesim.envs.gyms.turtle.gym import TurtleGym
from mimesim.envs.gyms.turtle.stories import check
from mimesim.envs.gyms.turtle.tasks import make_tasks, moves
from mimesim.envs.turns.kind import TurnKind

__all__ = ["GYM"]

GYM = TurnKind(
    name="turtle",
    episode=TurtleGym,
    make_tasks=make_tasks,
    check=check,
    best=lambda task: 1.0,
    moves=moves,
)
"""The registry's entry."""
