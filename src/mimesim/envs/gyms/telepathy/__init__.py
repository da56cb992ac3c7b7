"""The gym `telepathy`; `things` says how its tasks are written, `table.toml` holds the own ones."""

from __future__ import annotations

from mimesim.envs.gyms.telepathy.agents import EagerAgent, PatientAgent
from mimesim.envs.gyms.telepathy.gym import TelepathyGym
from mimesim.envs.gyms.telepathy.tasks import make_tasks, moves
from mimesim.envs.gyms.telepathy.things import check
from mimesim.envs.turns.kind import TurnKind

__all__ = ["GYM"]

GYM = TurnKind(
    name="telepathy",
    episode=TelepathyGym,
    make_tasks=make_tasks,
    check=check,
    best=lambda task: 1.0,
    moves=moves,
    agents={"eager": EagerAgent, "patient": PatientAgent},
)
"""The registry's entry."""
