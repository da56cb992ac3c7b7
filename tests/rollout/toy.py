"""A tiny gym, user and agent for tests of the room: everything is scripted and drawn from seeds.

The gym is a talk of `talk` agent messages; the user answers each with a word drawn from its own
generator. `hidden.trouble` makes the gym fail: {"where": "gym", "step": n, "error": name, "times":
how many tries fail, "retryable": whether another try can help}.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mimesim.dialogue.stop import Party, StopReason, UserAction
from mimesim.dialogue.types import Identity, PublicMessage, Reply, Role, Thought, Usage
from mimesim.envs.actions import get_format
from mimesim.envs.base import (
    AgentAction,
    AgentMove,
    AgentView,
    Choice,
    GymSpec,
    Observation,
    StepPrivate,
    StepResult,
    Task,
)
from mimesim.errors import EnvError, InfraError, UserError
from mimesim.rollout.driver import Setup
from mimesim.rollout.engine import Cast
from mimesim.rollout.limits import Limits
from mimesim.rollout.record import Header
from mimesim.seeds import derive, generator
from mimesim.users.base import User, UserRequest

ERRORS = {"user": UserError, "infra": InfraError, "env": EnvError, "bug": KeyError}
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath")


def make_task(number: int, **hidden: Any) -> Task:
    """Return one task."""
    scenario = {"id": f"s{number}", "goal": f"secret goal number {number}", "facts": {"n": number}}
    return Task(
        gym="tests.rollout.toy:GYM",
        id=f"toy-{number:03}",
        split="test",
        groups=(f"g:{number}",),
        public={"profile": "line", "topic": f"topic {number}"},
        hidden={"scenario": scenario, **hidden},
    )


class ToyUser:
    """Answers with words from its own generator; thinks a marked thought."""

    def __init__(self, seed: int, lines: tuple[str, ...] = ()) -> None:
        self._draws = generator(seed, "words")
        self._lines = list(lines)

    async def respond(self, request: UserRequest) -> Reply:
        """Say the next line."""
        await asyncio.sleep(self._draws.random() / 500)
        word = self._draws.choice(WORDS)
        said = self._lines.pop(0) if self._lines else f"I say {word} {self._draws.random():.6f}"
        thought = Thought(f"PRIVATE-THOUGHT {word}")
        return Reply(thought, said, usage=Usage(3, 2, calls=1, cost=0.5), wish={"word": word})

    def snapshot(self) -> dict[str, Any]:
        """Not needed here."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Not needed here."""


class ToyUsers:
    """Makes toy users."""

    def __init__(self, lines: tuple[str, ...] = ()) -> None:
        self.identity = Identity("scripted", "toy-user")
        self._lines = lines

    def start(self, scenario: Mapping[str, Any], *, seed: int) -> User:
        """Make one."""
        return ToyUser(seed, self._lines)

    async def aclose(self) -> None:
        """Release nothing."""


SPEC = GymSpec(
    name="toy",
    choices=(Choice.ACTION, Choice.ANSWER),
    max_steps=16,
    step_bounds=(0.0, 1.0),
    return_bound=1.0,
    needs_user=True,
    needs_judge=False,
    profiles=("line",),
)


class ToyGym:
    """Talks `talk` times; an answer `win` ends with success."""

    spec = SPEC

    def __init__(self, user: User) -> None:
        self.user = user
        self.opening_private = StepPrivate()
        self.user_usage = Usage()
        self.judge_usage = Usage()
        self.closed = 0
        self._steps = 0
        self._tries = 0

    async def reset(self, task: Task, *, seed: int) -> Observation:
        """Open with the user's line."""
        self._task, self._seed = task, seed
        reply = await self._ask(())
        self.opening_private = StepPrivate(reply=reply)
        return Observation(f"You talk about {task.public['topic']}.", reply.utterance)

    async def step(self, action: AgentAction) -> StepResult:
        """Answer one action."""
        self._trouble()
        self._steps += 1
        if action.choice is Choice.ANSWER:
            reason, good = StopReason.GOAL_REACHED, action.content == "win"
            return StepResult((), float(good), True, False, reason, Party.AGENT, good)
        reply = await self._ask((PublicMessage(Role.AGENT, action.content),))
        said = (PublicMessage(Role.USER, reply.utterance),)
        private = StepPrivate(reply=reply, grading={"E": self._steps / 16})
        if self._steps >= self._task.hidden.get("talk", 3):
            return StepResult(
                said, 0.25, True, False, StopReason.USER_STOP, Party.USER, True, private=private
            )
        return StepResult(said, 0.25, False, False, private=private)

    def _trouble(self) -> None:
        trouble = self._task.hidden.get("trouble")
        if trouble is None or trouble["where"] != "gym" or trouble["step"] != self._steps:
            return
        self._tries += 1
        if self._tries <= trouble.get("times", 99):
            kind = ERRORS[trouble["error"]]
            if kind is KeyError:
                raise KeyError("x")
            raise kind("made to fail", retryable=trouble.get("retryable", False))

    async def _ask(self, history: tuple[PublicMessage, ...]) -> Reply:
        text = history[-1].content if history else ""
        request = UserRequest("toy", history, text, derive(self._seed, "user", self._steps))
        reply = await self.user.respond(request)
        self.user_usage = self.user_usage + reply.usage
        assert reply.action is UserAction.SAY
        return reply

    def snapshot(self) -> dict[str, Any]:
        """Not needed here."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Not needed here."""

    async def aclose(self) -> None:
        """Count."""
        self.closed += 1


class ToyAgent:
    """Says the next of its lines; remembers every view."""

    def __init__(self, lines: tuple[Any, ...], seed: int) -> None:
        self._lines = list(lines)
        self._draws = generator(seed, "agent")
        self.views: list[AgentView] = []
        self.closed = 0

    async def act(self, view: AgentView) -> AgentMove:
        """Say, or raise, the next line."""
        self.views.append(view)
        await asyncio.sleep(self._draws.random() / 500)
        line = self._lines.pop(0) if self._lines else f"tell me more {self._draws.random():.6f}"
        if isinstance(line, Exception):
            raise line
        if isinstance(line, AgentMove):
            return line
        return AgentMove(line, usage=Usage(10, 5, calls=1))

    async def aclose(self) -> None:
        """Count."""
        self.closed += 1


class ToyAgents:
    """Makes toy agents; `lines` by task id, or for all."""

    def __init__(
        self, lines: tuple[Any, ...] = (), by_task: Mapping[str, tuple[Any, ...]] | None = None
    ) -> None:
        self.identity = Identity("scripted", "toy-agent")
        self._lines = lines
        self._by_task = by_task or {}
        self.made: list[ToyAgent] = []

    def start(self, *, task: Task, seed: int, key: str) -> ToyAgent:
        """Make one."""
        agent = ToyAgent(self._by_task.get(task.id, self._lines), seed)
        self.made.append(agent)
        return agent

    async def aclose(self) -> None:
        """Release nothing."""


def cast(agents: ToyAgents | None = None, users: ToyUsers | None = None) -> Cast:
    """Return a cast of toys."""
    return Cast(
        agent=agents or ToyAgents(),
        make_gym=lambda task, user: ToyGym(user),
        action_format=get_format("line"),
        user=users or ToyUsers(),
    )


def setup(**more: Any) -> Setup:
    """Return the setup of one episode."""
    limits = more.pop("limits", Limits())
    header = Header("id", "run", 0, 1, Identity("scripted", "toy-agent"))
    return Setup(header, get_format("line"), limits, **more)


class Gym:
    """The toy gym at the door, for whole command lines: `tests.rollout.toy:GYM`."""

    name = "toy"
    profiles = ("line",)

    def spec(self, profile: str) -> GymSpec:
        """Return the facts."""
        return SPEC

    def make(self, profile: str, *, user: User, judge: Any, options: Any) -> ToyGym:
        """Make one."""
        return SlowGym(user, float((options or {}).get("delay", 0.0)))

    def tasks(self, profile: str, split: str, seed: int, count: int) -> list[Task]:
        """Make tasks."""
        return [make_task(number) for number in range(count)]


class SlowGym(ToyGym):
    """Takes its time for each step, so that a test can interrupt it."""

    def __init__(self, user: User, delay: float) -> None:
        super().__init__(user)
        self._delay = delay

    async def step(self, action: AgentAction) -> StepResult:
        """Wait, then answer."""
        await asyncio.sleep(self._delay)
        return await super().step(action)


GYM = Gym()


def make_agent(rest: str, action_format: Any, options: Any) -> ToyAgents:
    """Make the agents of a command line."""
    return ToyAgents()


def make_failing(rest: str, action_format: Any, options: Any) -> ToyAgents:
    """Make agents of which one meets a lost connection."""
    return ToyAgents(by_task={"toy-001": (InfraError("lost"),) * 9})


def make_user(rest: str, options: Any = None) -> ToyUsers:
    """Make the users of a command line."""
    return ToyUsers()
