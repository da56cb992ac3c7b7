"""The gym `function`."""

from __future__ import annotations

from mimesim.envs.base import Task
from mimesim.envs.gyms.function import compact, gym, tasks
from mimesim.envs.turns.kind import ProfiledKind, TurnKind

__all__ = ["GYM"]


def _check(task: Task) -> list[str]:
    """Return what `public` must not hold."""
    return [gym.read_hidden(task).rule]


_DEFAULT = TurnKind(
    name="function",
    episode=gym.FunctionGym,
    make_tasks=tasks.make_tasks,
    check=_check,
    best=lambda task: 1.0,
    moves=gym.moves,
)
_COMPACT = TurnKind(
    name="function",
    episode=compact.CompactFunction,
    make_tasks=compact.make_tasks,
    check=_check,
    best=lambda task: 1.0,
    moves=compact.moves,
    agents={"eager": compact.EagerAgent, "patient": compact.PatientAgent},
)
GYM = ProfiledKind("function", {"default": _DEFAULT, compact.PROFILE: _COMPACT})
"""The registry's entry."""
