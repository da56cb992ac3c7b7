"""The support desk: one gym, two task profiles that are never averaged (design ruling 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mimesim.envs.base import Agent, GymEnv, GymSpec, Task, profile_of
from mimesim.envs.gyms.support_desk import (
    compact,
    compact_agents,
    full,
    full_agents,
    full_tasks,
    typed,
)
from mimesim.envs.gyms.support_desk.case import read_case
from mimesim.envs.gyms.support_desk.texts import identifying
from mimesim.envs.turns.agents import RandomAgent
from mimesim.errors import ConfigError
from mimesim.registry import unknown_name

__all__ = ["GYM", "SupportDesk"]

_AGENTS: dict[str, dict[str, Callable[[Task, int], Agent]]] = {
    "full": {
        "oracle": full_agents.OracleAgent,
        "null": full_agents.NullAgent,
        "eager": full_agents.EagerAgent,
        "patient": full_agents.PatientAgent,
    },
    "compact": {
        "oracle": compact_agents.OracleAgent,
        "null": typed.SilentAgent,
        "eager": compact_agents.EagerAgent,
        "patient": compact_agents.PatientAgent,
    },
}


@dataclass(frozen=True)
class SupportDesk:
    """What the support desk offers; see `envs.load.Gym`."""

    name: str = "support-desk"
    profiles: tuple[str, ...] = ("full", "compact")

    def spec(self, profile: str) -> GymSpec:
        """Return the static facts of a profile."""
        return full.SPEC if profile == "full" else compact.SPEC

    def make(
        self, profile: str, *, user: Any, judge: Any, options: Mapping[str, Any] | None
    ) -> GymEnv:
        """Make the gym of one episode."""
        if options:
            raise ConfigError(
                f"the support desk has no option {next(iter(options))!r}", expected="no options"
            )
        kind = full.FullDesk if profile == "full" else compact.CompactDesk
        return kind(user=user, judge=judge, options=options)

    def tasks(self, profile: str, split: str, seed: int, count: int) -> list[Task]:
        """Make `count` tasks; equal arguments give equal tasks."""
        make = full_tasks.make_tasks if profile == "full" else compact.make_tasks
        return make(split, seed, count)

    def agent(self, kind: str, task: Task, seed: int) -> Agent:
        """Make one of the gym's own agents.

        Raises:
            UnknownNameError: no such agent in the task's profile.
        """
        profile = profile_of(task)
        known = _AGENTS[profile]
        if kind == "random":
            return RandomAgent(full_agents.MOVES if profile == "full" else compact.MOVES, seed)
        if kind not in known:
            raise unknown_name("agent of the support desk", kind, [*known, "random"])
        agent = known[kind](task, seed)
        return typed.Typed(agent) if profile == "compact" else agent

    def secrets(self, task: Task) -> list[str]:
        """Return strings of `task.hidden` that `task.public` must not hold."""
        return identifying(read_case(task)) if profile_of(task) == "full" else []

    def attainable(self, task: Task) -> float:
        """Return an upper bound of the return on this task.

        Raises:
            DataError: it is too thin to be won, or an episode could not read it.
        """
        (full.check_task if profile_of(task) == "full" else compact.check_task)(task)
        return 1.0


GYM = SupportDesk()
"""The registry's entry."""
