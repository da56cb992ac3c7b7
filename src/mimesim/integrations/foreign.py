"""An environment of somebody else as a gym of ours: one text in, one text out.

What the agent says is its action. The other environment cannot be set back, so a step that failed
is not tried again, and there are no snapshots; whatever it raises is a failure of the environment
and never a score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mimesim import prompts
from mimesim.dialogue.stop import Party, StopReason
from mimesim.dialogue.types import PublicMessage, Role, Usage
from mimesim.envs.actions import problem_of
from mimesim.envs.base import (
    Agent,
    AgentAction,
    Choice,
    GymEnv,
    GymSpec,
    Observation,
    StepPrivate,
    StepResult,
    Task,
)
from mimesim.envs.turns.agents import NullAgent, RandomAgent
from mimesim.envs.turns.law import MAX_INVALID
from mimesim.envs.turns.parts import invalid_text
from mimesim.errors import CallerError, DataError, EnvError, MimesimError
from mimesim.registry import unknown_name
from mimesim.seeds import derive

_SEEDS = 2**31 - 1  # what Gymnasium takes as a seed


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the other side does not tell.

    Attributes:
        max_steps: actions of one episode.
        low, high: of the reward of one step. total: the highest return.
        success: the return from which an episode is a success, where the environment does not say.
    """

    max_steps: int = 16
    low: float = 0.0
    high: float = 1.0
    total: float = 1.0
    success: float | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What an environment answered.

    Attributes:
        success: at the end, whether it says that the task was done; None = it does not say.
    """

    text: str
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    success: bool | None = None


class World(Protocol):
    """One episode of another environment."""

    async def start(self) -> str:
        """Start and return the first text."""
        ...

    def check(self, text: str) -> str:
        """Tell why a text is no action; "" = it is one."""
        ...

    async def step(self, text: str) -> Said:
        """Carry out an action."""
        ...

    async def finish(self) -> float:
        """End at the limit of steps and return the reward that is still owed."""
        ...

    async def aclose(self) -> None:
        """Release what it holds; twice is harmless."""
        ...


MakeWorld = Callable[[Mapping[str, Any]], World]
"""`hidden.world` of a task -> the world of one episode."""
Rows = Callable[[str, int, int], Sequence[Mapping[str, Any]]]
"""Split, seed and count -> what `hidden.world` of the tasks holds."""


def seeded_rows(split: str, seed: int, count: int) -> list[Mapping[str, Any]]:
    """Return `count` seeds of a split."""
    return [{"seed": derive(seed, "foreign", split, place) % _SEEDS} for place in range(count)]


@dataclass(frozen=True)
class ForeignKind:
    """The door of a wrapped environment; see `envs.load.Gym`.

    Attributes:
        name: the path by which it is found.
        world: makes one episode's world.
        system: what the agent is told of it, "" = the least that can be told.
        rows: what its tasks are; by default seeds.
        tries: texts that a random agent draws from.
    """

    name: str
    world: MakeWorld
    bounds: Bounds = field(default_factory=Bounds)
    system: str = ""
    rows: Rows = seeded_rows
    tries: tuple[str, ...] = ("yes",)
    profiles: tuple[str, ...] = ("default",)

    def spec(self, profile: str) -> GymSpec:
        """Return the static facts."""
        bounds = self.bounds
        return GymSpec(
            name=self.name,
            choices=(Choice.ACTION,),
            max_steps=bounds.max_steps,
            step_bounds=(bounds.low, bounds.high),
            return_bound=bounds.total,
            needs_user=False,
            needs_judge=False,
            summary="an environment of somebody else",
        )

    def make(
        self, profile: str, *, user: Any, judge: Any, options: Mapping[str, Any] | None
    ) -> GymEnv:
        """Make the gym of one episode."""
        if options:
            raise CallerError(f"the gym {self.name!r} has no options: {sorted(options)}")
        return ForeignGym(self)

    def tasks(self, profile: str, split: str, seed: int, count: int) -> list[Task]:
        """Make `count` tasks, or as many as there are."""
        found = []
        for place, row in enumerate(self.rows(split, seed, count)):
            name = f"{split}-{row.get('id', f'{seed}-{place:05d}')}"
            scenario = {"id": name, "goal": "none", "meta": {"profile": "asked"}}
            found.append(
                Task(
                    gym=self.name,
                    id=name,
                    split=split,
                    groups=(f"{split}:{row.get('id', row.get('seed', place))}",),
                    public={},
                    hidden={"world": dict(row), "scenario": scenario},
                    meta={"source": "foreign"},
                )
            )
        return found

    def agent(self, kind: str, task: Task, seed: int) -> Agent:
        """Make one of the two agents that need to know nothing.

        Raises:
            UnknownNameError: no such agent.
        """
        if kind == "null":
            return NullAgent(task, seed)
        if kind == "random":
            return RandomAgent([(Choice.ACTION.value, text) for text in self.tries], seed)
        raise unknown_name(f"agent of gym {self.name!r}", kind, ["null", "random"])

    def secrets(self, task: Task) -> list[str]:
        """Return nothing: what is secret, the other side knows."""
        return []

    def attainable(self, task: Task) -> float:
        """Return the highest return.

        Raises:
            DataError: the task is none of this gym.
        """
        if not isinstance(task.hidden.get("world"), Mapping):
            raise DataError("no world", where=f"task {task.id!r}", expected="hidden.world")
        return self.bounds.total


class ForeignGym:
    """One episode (single use)."""

    def __init__(self, kind: ForeignKind) -> None:
        self.spec = kind.spec("default")
        self.opening_private = StepPrivate()
        self.user_usage = Usage()
        self.judge_usage = Usage()
        self._kind = kind
        self._world: World | None = None
        self._steps = 0
        self._invalid = 0
        self._total = 0.0
        self._done = False
        self._busy = False

    async def reset(self, task: Task, *, seed: int) -> Observation:
        """Start the episode.

        Raises:
            CallerError: it was used before.
            DataError: a damaged task.
            EnvError: the other side failed.
        """
        if self._world is not None:
            raise CallerError("a gym is single-use: make a new one for each episode")
        self._kind.attainable(task)
        self._world = self._kind.world(task.hidden["world"])
        try:
            first = _text(await self._world.start())
        except MimesimError:
            raise
        except Exception as error:
            raise EnvError(f"{type(error).__name__}: {error}") from error
        system = self._kind.system or prompts.render("envs/foreign/system")
        return Observation(system=system, first_user=first)

    async def step(self, action: AgentAction) -> StepResult:
        """Pass on what the agent said.

        Raises:
            CallerError: not started, over, or two steps at once.
            EnvError: the other side failed; the episode cannot go on.
        """
        world = self._world
        if world is None or self._done or self._busy:
            raise CallerError("the episode was not started, is over, or is in a step")
        self._busy = True
        try:
            problem = problem_of(action, self.spec) or world.check(action.content)
            said = Said(invalid_text(problem, self.spec)) if problem else None
            if said is None:
                said = await world.step(action.content)
            result = await self._result(world, said, valid=not problem)
        except MimesimError:
            self._done = True
            raise
        except Exception as error:
            self._done = True
            raise EnvError(f"{type(error).__name__}: {error}") from error
        finally:
            self._busy = False
        self._done = result.done
        return result

    def snapshot(self) -> dict[str, Any]:
        """Refuse.

        Raises:
            CallerError: always.
        """
        raise CallerError("an environment of somebody else has no snapshots")

    def restore(self, state: Mapping[str, Any]) -> None:
        """Refuse.

        Raises:
            CallerError: always.
        """
        raise CallerError("an environment of somebody else cannot be set back")

    async def aclose(self) -> None:
        """Close the other side; twice is harmless."""
        if self._world is not None:
            await self._world.aclose()

    async def _result(self, world: World, said: Said, *, valid: bool) -> StepResult:
        self._steps += 1
        self._invalid = 0 if valid else self._invalid + 1
        given_up = self._invalid >= MAX_INVALID
        full = self._steps >= self.spec.max_steps
        reward, terminated = said.reward, said.terminated or given_up
        truncated = not terminated and (said.truncated or full)
        if (given_up or full) and not (said.terminated or said.truncated):
            reward += await world.finish()
        low, high = self.spec.step_bounds
        if not math.isfinite(reward) or not low <= reward <= high:
            raise EnvError(f"a reward of {reward!r} is outside {low} to {high}")
        self._total += reward
        reason, by = None, None
        if terminated:
            reason, by = StopReason.CASE_CLOSED, Party.ENV
        if given_up:
            reason, by = StopReason.AGENT_INVALID, Party.AGENT
        if truncated:
            reason, by = StopReason.MAX_STEPS, Party.RUNNER
        return StepResult(
            feedback=(PublicMessage(Role.TOOL, _text(said.text)),) if said.text else (),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            reason=reason,
            by=by,
            success=self._success(said) if reason is not None else None,
            valid=valid,
        )

    def _success(self, said: Said) -> bool | None:
        if said.success is not None:
            return said.success
        least = self._kind.bounds.success
        return None if least is None else self._total >= least


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise EnvError(f"the environment answered with {type(value).__name__}, not with a text")
    return value
