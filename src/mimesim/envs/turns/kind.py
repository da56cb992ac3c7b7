"""The door of a turn-taking gym: what the registry asks, answered from one class and one pack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mimesim.dialogue.types import Reply, Thought
from mimesim.envs.base import Agent, GymEnv, GymSpec, Task, profile_of
from mimesim.envs.turns.agents import NullAgent, RandomAgent, TraceAgent
from mimesim.envs.turns.law import TurnGym
from mimesim.errors import UsageError
from mimesim.registry import unknown_name

Moves = Callable[[Task], Sequence[tuple[str, str]]]
"""Task -> (choice, content) pairs that a random agent draws from; public side only."""


@dataclass(frozen=True)
class TurnKind:
    """What a gym offers; see `envs.load.Gym`.

    Attributes:
        episode: the gym of one episode.
        make_tasks: split, seed and count -> own tasks; equal arguments give equal tasks.
        check: task -> the strings of its hidden side that `public` must not hold; raises
            `DataError` on a task that an episode could not read.
        best: task -> an upper bound of the return.
        moves: what a random agent draws from.
        agents: further agents of the gym's own.
    """

    name: str
    episode: type[TurnGym[Any]]
    make_tasks: Callable[[str, int, int], list[Task]]
    check: Callable[[Task], list[str]]
    best: Callable[[Task], float]
    moves: Moves
    agents: Mapping[str, Callable[[Task, int], Agent]] = field(default_factory=dict)
    profiles: tuple[str, ...] = ("default",)

    def __post_init__(self) -> None:
        """Refuse a gym that is not written yet, when it is loaded and not in every episode.

        Raises:
            UsageError: a method or a fact is missing.
        """
        written = {name for one in self.episode.__mro__ for name in vars(one)}
        missing = [*sorted(self.episode.__abstractmethods__), *sorted({"SPEC", "STATE"} - written)]
        if missing:
            raise UsageError(
                f"{self.episode.__name__} lacks {', '.join(missing)}",
                where=f"gym {self.name!r}",
                expected="all that `mimesim.envs.turns.law.TurnGym` leaves open",
            )

    def spec(self, profile: str) -> GymSpec:
        """Return the static facts."""
        return self.episode.SPEC

    def make(
        self, profile: str, *, user: Any, judge: Any, options: Mapping[str, Any] | None
    ) -> GymEnv:
        """Make the gym of one episode."""
        return self.episode(user=user, judge=judge, options=options)

    def tasks(self, profile: str, split: str, seed: int, count: int) -> list[Task]:
        """Make `count` tasks; equal arguments give equal tasks."""
        return self.make_tasks(split, seed, count)

    def agent(self, kind: str, task: Task, seed: int) -> Agent:
        """Make one of the gym's own agents.

        Raises:
            UnknownNameError: no such agent.
        """
        known: dict[str, Callable[[Task, int], Agent]] = {
            "oracle": TraceAgent,
            "null": NullAgent,
            "random": lambda one, key: RandomAgent(self.moves(one), key),
            **self.agents,
        }
        if kind not in known:
            raise unknown_name(f"agent of gym {self.name!r}", kind, list(known))
        return known[kind](task, seed)

    def options(self, profile: str) -> dict[str, Any]:
        """Return the gym's own options with their defaults; `compat.flags_of` has the flags."""
        return self.episode.own_options()

    def secrets(self, task: Task) -> list[str]:
        """Return strings of `task.hidden` that `task.public` must not hold."""
        return self.check(task)

    def attainable(self, task: Task) -> float:
        """Return an upper bound of the return on this task.

        Raises:
            DataError: an episode could not read it.
        """
        self.check(task)
        return self.best(task)


@dataclass(frozen=True)
class ProfiledKind:
    """A gym with several task profiles; see `envs.load.Gym`.

    Attributes:
        kinds: what each profile offers, by the name that stands in its tasks; the first is default.
    """

    name: str
    kinds: Mapping[str, TurnKind]

    @property
    def profiles(self) -> tuple[str, ...]:
        """Names of the task profiles."""
        return tuple(self.kinds)

    def spec(self, profile: str) -> GymSpec:
        """Return the static facts of a profile."""
        return self.kinds[profile].spec(profile)

    def make(
        self, profile: str, *, user: Any, judge: Any, options: Mapping[str, Any] | None
    ) -> GymEnv:
        """Make the gym of one episode."""
        return self.kinds[profile].make(profile, user=user, judge=judge, options=options)

    def tasks(self, profile: str, split: str, seed: int, count: int) -> list[Task]:
        """Make `count` tasks; equal arguments give equal tasks."""
        return self.kinds[profile].tasks(profile, split, seed, count)

    def agent(self, kind: str, task: Task, seed: int) -> Agent:
        """Make one of the agents of the task's profile.

        Raises:
            UnknownNameError: no such agent.
        """
        return self._of(task).agent(kind, task, seed)

    def options(self, profile: str) -> dict[str, Any]:
        """Return the options of a profile with their defaults; `compat.flags_of` has the flags."""
        return self.kinds[profile].options(profile)

    def secrets(self, task: Task) -> list[str]:
        """Return strings of `task.hidden` that `task.public` must not hold."""
        return self._of(task).secrets(task)

    def attainable(self, task: Task) -> float:
        """Return an upper bound of the return on this task.

        Raises:
            DataError: an episode could not read it.
        """
        return self._of(task).attainable(task)

    def _of(self, task: Task) -> TurnKind:
        profile = profile_of(task)
        if profile not in self.kinds:
            raise unknown_name(f"profile of {self.name}", profile, list(self.kinds))
        return self.kinds[profile]


def scripted(utterance: str, thought: str = "") -> Reply:
    """Return what a scripted person says, and what it thinks, if anything."""
    return Reply(Thought(thought) if thought else None, utterance, source="scripted")
