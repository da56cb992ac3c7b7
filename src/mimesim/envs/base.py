"""The gym contract: tasks, observations, typed actions, steps.

A gym is single-use: `reset` once, then `step` until it ends. User and judge are injected objects.
Everything the agent may see is `Observation` and `StepResult.feedback`; everything else lies in
`StepPrivate`, which refuses to become text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

from mimesim.dialogue.stop import Party, StopReason
from mimesim.dialogue.types import GuardEvent, PublicMessage, Reply, ToolCall, Usage


class Choice(StrEnum):
    """What an agent's action is."""

    ACTION = "action"
    ANSWER = "answer"
    SEARCH = "search"
    FINISH = "finish"


@dataclass(frozen=True, slots=True)
class AgentAction:
    """A typed action. `problem` is set when the agent's text could not be read as one.

    Attributes:
        content: canonical text of the action.
        problem: why the action is invalid; the gym answers it with `INVALID_ACTION` feedback.
        ignored_keys: how many keys of the call had no meaning.
        raw: `content` is all there is, its choice being none that is known (compat mode of a gym).
        calls: the native calls it was read from; an agent does not know how its gym reads them, so
            the action format reads them again.
        reply: in a task, the user model's whole reply with its private thought: for the judge of
            the few behaviors that may read it, never for the other side.
        ends: these are the agent's last words in a conversation (`AgentEnd`); never read from text.
    """

    choice: Choice
    content: str
    call_id: str | None = None
    problem: str = ""
    ignored_keys: int = 0
    raw: bool = False
    calls: tuple[ToolCall, ...] = field(default=(), compare=False, repr=False)
    reply: Reply | None = field(default=None, compare=False, repr=False)
    ends: bool = False


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """What a callable agent returns to end a conversation with these last words."""

    text: str


@dataclass(frozen=True, slots=True)
class Task:
    """One line of a task file. `public` is all the agent may see at reset."""

    gym: str
    id: str
    split: str
    groups: tuple[str, ...]
    public: Mapping[str, Any]
    hidden: Mapping[str, Any]
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scenario(self) -> Mapping[str, Any]:
        """The private scenario of the user (`hidden.scenario`)."""
        scenario: Mapping[str, Any] = self.hidden.get("scenario", {})
        return scenario


def profile_of(task: Task) -> str:
    """Return the task profile, which stands in `public`; "default" where a gym has only one."""
    return str(task.public.get("profile", "default"))


@dataclass(frozen=True, slots=True)
class Observation:
    """What the agent sees at the start.

    Attributes:
        system: environment description, policy, action format.
        first_user: the user's opening line, "" if the agent opens.
        tools: JSON schemas of tools for tool-calling models.
    """

    system: str
    first_user: str
    tools: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class StepPrivate:
    """What coach, logs and tests may see of a step, and the agent never.

    Attributes:
        reply: the user's full reply of this step, if the user spoke.
        grading: the gym's own bookkeeping for logs, e.g. {"E": .5, "P": .25, "V": 0}.
        guards: guard events of this step.
    """

    reply: Reply | None = None
    grading: Mapping[str, Any] = field(default_factory=dict)
    guards: tuple[GuardEvent, ...] = ()
    judge: tuple[Mapping[str, Any], ...] = ()

    def __repr__(self) -> str:
        """Hide everything."""
        return "StepPrivate(...)"

    def __str__(self) -> str:
        """Refuse to become text.

        Raises:
            TypeError: always.
        """
        raise TypeError("the private side of a step is not text")


@dataclass(frozen=True, slots=True)
class StepResult:
    """Outcome of one executed step.

    Attributes:
        feedback: messages the agent sees next (a user message, a tool result); public.
        reward: finite, within the gym's per-step bounds.
        terminated: the gym ended by its own rule. truncated: a limit was hit. Never both.
        stop: (reason, by) when the episode is over.
        delivered_user_message: whether `feedback` holds a message of the user.
    """

    feedback: tuple[PublicMessage, ...]
    reward: float
    terminated: bool
    truncated: bool
    reason: StopReason | None = None
    by: Party | None = None
    success: bool | None = None
    valid: bool = True
    private: StepPrivate = StepPrivate()

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


@dataclass(frozen=True, slots=True)
class GymSpec:
    """Static facts about a gym.

    Attributes:
        max_steps: executed agent actions (ruling 8).
        step_bounds: lowest and highest reward of one step.
        profiles: names of task profiles; never averaged with one another.
        person: what a model that plays the agent reads in front of the user's words.
        scored: whether rewards mean anything; without, an episode has neither reward nor success.
        lenient: calls are read as the originals of the gyms read them (their compat mode).
        phase: which reader of the originals that is, the trainer's or the evaluator's.
        multi_call: which of several calls in one message is carried out.
    """

    name: str
    choices: tuple[Choice, ...]
    max_steps: int
    step_bounds: tuple[float, float]
    return_bound: float
    needs_user: bool
    needs_judge: bool
    needs_search: bool = False
    profiles: tuple[str, ...] = ("default",)
    summary: str = ""
    person: str = "customer"
    scored: bool = True
    lenient: bool = False
    phase: Literal["eval", "train"] = "eval"
    multi_call: Literal["reject", "first", "last"] = "reject"


class GymEnv(Protocol):
    """One episode of one gym. `reset` includes the user's opening call."""

    spec: GymSpec
    opening_private: StepPrivate
    """The private side of the opening (the user's first reply)."""
    user_usage: Usage
    judge_usage: Usage

    async def reset(self, task: Task, *, seed: int) -> Observation:
        """Start the episode."""
        ...

    async def step(self, action: AgentAction) -> StepResult:
        """Execute one action.

        Raises:
            CallerError: the episode is over, or another step is running.
            UserError, JudgeError, EnvError, InfraError: nothing was committed; may be retried.
        """
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state from `snapshot` of the same task."""
        ...

    async def aclose(self) -> None:
        """Release what the episode holds; twice is harmless."""
        ...


@dataclass(frozen=True, slots=True)
class AgentView:
    """All an agent may see before it acts: it has no field for anything private.

    Attributes:
        observation: the start.
        messages: public messages after the opening, in order (the agent's own included).
        step: index of the step to take, from 0.
        steps_left: how many actions remain, this one included.
    """

    observation: Observation
    messages: tuple[PublicMessage, ...]
    step: int
    steps_left: int


@dataclass(frozen=True, slots=True)
class AgentMove:
    """What an agent produced for one step.

    Attributes:
        text: the public text as written, reasoning removed; goes through the action format.
        action: set when the agent already speaks typed actions (scripted agents).
        reasoning: private to the agent; stored apart, never shown to the user.
        finish_reason: `length` = cut by the token cap.
        activity: what the agent did with tools of its own, and said, before its last message; the
            record and the agent itself keep it, the user hears `text` alone.
        last: the last of several messages, where `text` joins them all; None = there is one.
    """

    text: str
    action: AgentAction | None = None
    reasoning: str = ""
    usage: Usage = Usage()
    finish_reason: str = "stop"
    activity: tuple[PublicMessage, ...] = ()
    last: str | None = None


class Agent(Protocol):
    """One agent in one episode (single use)."""

    async def act(self, view: AgentView) -> AgentMove:
        """Choose the next move.

        Raises:
            AgentError, ContextExceeded, InfraError.
        """
        ...

    async def aclose(self) -> None:
        """Release what the episode holds."""
        ...


class AgentSource(Protocol):
    """A kind of agent, e.g. `scripted:eager`: makes one `Agent` per episode."""

    @property
    def identity(self) -> Any:
        """`dialogue.types.Identity` of this agent, for records."""
        ...

    def start(self, *, task: Task, seed: int, key: str) -> Agent:
        """Make the agent of one episode.

        Args:
            task: the task; an honest agent reads `task.public` only, the oracle also `hidden`.
            seed: the episode's agent seed.
            key: episode id, orders rows in batched models.
        """
        ...

    async def aclose(self) -> None:
        """Release what the agents share."""
        ...
