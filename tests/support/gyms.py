"""Parties and plays for tests of gyms: a person and a judge that can fail, and one whole episode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from mimesim import jsonio
from mimesim.dialogue.types import Identity, Reply, Thought
from mimesim.envs.actions import as_message
from mimesim.envs.base import Agent, AgentAction, AgentView, GymEnv, Observation, StepResult, Task
from mimesim.envs.load import load_gym, make_gym
from mimesim.judges.base import JudgeRequest, JudgeResult
from mimesim.judges.rule import RuleJudge
from mimesim.registry import unknown_name
from mimesim.seeds import derive
from mimesim.users.base import User, UserRequest
from mimesim.users.load import make_user

T = TypeVar("T", bound=BaseModel)
CANARY = "canary-thought-4127"
"""What every person of these tests thinks."""


class Person:
    """Passes questions on to a user, notes them, thinks the canary, and fails when told to.

    Args:
        fails: one entry for each question: what is raised at it, None = nothing.
        late: whether it fails after the user has answered, and so changed, inside.
    """

    def __init__(
        self, inner: User, *, fails: Sequence[Exception | None] = (), late: bool = False
    ) -> None:
        self._inner = inner
        self._fails = list(fails)
        self._late = late
        self.heard: list[UserRequest] = []

    async def respond(self, request: UserRequest) -> Reply:
        """Answer or fail."""
        self.heard.append(request)
        error = self._fails.pop(0) if self._fails else None
        if error is not None and not self._late:
            raise error
        reply = await self._inner.respond(request)
        if error is not None:
            raise error
        return replace(reply, thought=Thought(f"{CANARY} {reply.utterance}"))

    def snapshot(self) -> dict[str, Any]:
        """Return the state of the user inside."""
        return self._inner.snapshot()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set the user inside back."""
        self._inner.restore(state)


class People:
    """A source of persons, each of whom fails in the same way; it keeps them in `made`."""

    identity = Identity("scripted", "test:people")

    def __init__(
        self, kind: str = "scripted:neutral", fails: Sequence[Exception | None] = ()
    ) -> None:
        self._inner = make_user(kind)
        self._fails = fails
        self.made: list[Person] = []

    def start(self, scenario: Mapping[str, Any], *, seed: int) -> User:
        """Make one."""
        self.made.append(Person(self._inner.start(scenario, seed=seed), fails=self._fails))
        return self.made[-1]

    async def aclose(self) -> None:
        """Release nothing."""


class Referee:
    """Passes questions on to the rule judge, notes them, and fails when told to."""

    identity = Identity("rule", "test:referee")

    def __init__(self, *, fails: Sequence[Exception | None] = ()) -> None:
        self._inner = RuleJudge()
        self._fails = list(fails)
        self.asked: list[JudgeRequest[Any]] = []

    async def judge(self, request: JudgeRequest[T]) -> JudgeResult[T]:
        """Judge or fail."""
        self.asked.append(request)
        error = self._fails.pop(0) if self._fails else None
        if error is not None:
            raise error
        return await self._inner.judge(request)

    async def aclose(self) -> None:
        """Release nothing."""


@dataclass(frozen=True)
class Table:
    """A gym with the parties of one episode."""

    env: GymEnv
    task: Task
    person: Person
    referee: Referee


@dataclass
class Played:
    """What came of an episode."""

    observation: Observation
    actions: list[AgentAction] = field(default_factory=list)
    results: list[StepResult] = field(default_factory=list)

    @property
    def total(self) -> float:
        """The return."""
        return sum(result.reward for result in self.results)

    def transcript(self) -> str:
        """Return all that the agent saw and got, as one text to compare."""
        return jsonio.dumps(
            [
                [self.observation.system, self.observation.first_user],
                *(plain(result) for result in self.results),
            ]
        )


def plain(result: StepResult) -> list[Any]:
    """Return what counts of a step as JSON values."""
    return [
        [[message.role.value, message.content] for message in result.feedback],
        result.reward,
        [result.terminated, result.truncated, result.success, result.valid],
        [result.reason, result.by],
        dict(result.private.grading),
        [dict(verdict) for verdict in result.private.judge],
    ]


def table(
    task: Task,
    *,
    seed: int = 0,
    kind: str = "scripted:neutral",
    fails: Sequence[Exception | None] = (),
    judge_fails: Sequence[Exception | None] = (),
    options: Mapping[str, Any] | None = None,
) -> Table:
    """Make the gym of a task with its parties; equal arguments give equal episodes."""
    inner = make_user(kind).start(task.scenario, seed=derive(seed, "user"))
    person, referee = Person(inner, fails=fails), Referee(fails=judge_fails)
    profile = str(task.public.get("profile", "default"))
    env = make_gym(task.gym, profile=profile, user=person, judge=referee, options=options)
    return Table(env, task, person, referee)


async def play(
    at: Table,
    agent: Agent | str,
    *,
    seed: int = 0,
    after: Callable[[Played], None] = lambda played: None,
) -> Played:
    """Play one episode to its end.

    Args:
        agent: an agent, or the name of one of the gym's own.
        after: called after every step.
    """
    if isinstance(agent, str):
        agent = load_gym(at.task.gym).agent(agent, at.task, derive(seed, "agent"))
    played = Played(await at.env.reset(at.task, seed=seed))
    heard: tuple[Any, ...] = ()
    for step in range(at.env.spec.max_steps):
        left = at.env.spec.max_steps - step
        move = await agent.act(AgentView(played.observation, heard, step, left))
        assert move.action is not None
        result = await at.env.step(move.action)
        played.actions.append(move.action)
        played.results.append(result)
        heard = (*heard, as_message(move.action), *result.feedback)
        after(played)
        if result.done:
            break
    return played


class Fewer:
    """A gym of somebody else, with the two agents that every gym has and no other."""

    name, profiles = "fewer", ("compact",)

    def __init__(self) -> None:
        inner = load_gym("function")
        self.spec, self.make, self.tasks = inner.spec, inner.make, inner.tasks
        self.attainable, self.secrets = inner.attainable, inner.secrets
        self._agent = inner.agent

    def agent(self, kind: str, task: Task, seed: int) -> Agent:
        """Make one of the two."""
        if kind not in ("oracle", "null"):
            raise unknown_name("agent", kind, ["oracle", "null"])
        return self._agent(kind, task, seed)


FEWER = Fewer()
"""Named `tests.support.gyms:FEWER` at the door."""
