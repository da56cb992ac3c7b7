"""A conversation without a gym: a person of a scenario talks to an agent until one is done.

There is nothing to act on; what counts is the transcript, which checks, judges and metrics read.
Whatever the agent writes is said. The user opens and ends it (`end.grace`), or the agent does by an
`AgentEnd`; the number of user messages is limited by the scenario, by the run, or by `MAX_TURNS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.stop import LEAVING, Party, StopReason, UserAction
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import PublicMessage, Reply, Role, Usage
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
from mimesim.envs.load import NO_GYM
from mimesim.errors import CallerError, ConfigError, DataError, UsageError, UserError
from mimesim.scenarios.rows import refuse_row
from mimesim.scenarios.types import Scenario
from mimesim.seeds import derive
from mimesim.users import briefing
from mimesim.users.base import User, UserRequest
from mimesim.users.leaving import Presence, check_reply, presence

MAX_TURNS = 20
"""User messages of a conversation whose scenario names no number."""
SCHEMA = 1
SPEC = GymSpec(
    name=NO_GYM,
    choices=(Choice.ACTION,),
    max_steps=1000,
    step_bounds=(0.0, 0.0),
    return_bound=0.0,
    needs_user=True,
    needs_judge=False,
    summary="a person of a scenario file and an agent, nothing else",
    scored=False,
)


def read_scenarios(path: Path | str) -> list[Task]:
    """Return one task per scenario of a file, in order.

    Raises:
        DataError: a missing file, a damaged line, an id twice, or something nobody can play.
    """
    tasks = tasks_of((f"{path}:{line.number}", line.value) for line in jsonio.read_jsonl(path))
    if not tasks:
        raise DataError("no scenario in the file", where=str(path))
    return tasks


def tasks_of(scenarios: Iterable[tuple[str, Any]]) -> list[Task]:
    """Return one task per scenario, in order.

    Args:
        scenarios: where each stands, and its JSON values.

    Raises:
        DataError: as `read_scenarios`.
    """
    tasks: list[Task] = []
    seen: dict[str, str] = {}
    for where, value in scenarios:
        refuse_row(value, where)
        scenario = Scenario.from_json(value, where)
        for name in ("history", "tools"):
            if value.get(name):
                raise DataError(
                    f"a conversation cannot be played with {name!r}",
                    where=where,
                    expected="a scenario that begins with the user and has no tools",
                )
        first = seen.setdefault(scenario.id, where)
        if first != where:
            raise DataError(f"id {scenario.id!r} stands at {first} too", where=where)
        tasks.append(
            Task(
                gym=NO_GYM,
                id=scenario.id,
                split="test",
                groups=(scenario.id,),
                public=dict(scenario.agent_context),
                hidden={"scenario": scenario.to_json()},
            )
        )
    return tasks


@dataclass(frozen=True, slots=True)
class _State:
    """Everything that a step changes.

    Attributes:
        turns: user messages so far.
        left: how the user left, while the agent has one more turn.
    """

    history: tuple[PublicMessage, ...] = ()
    turns: int = 0
    left: UserAction | None = None
    done: bool = False


class Talk:
    """One conversation (single use)."""

    spec = SPEC

    def __init__(self, *, user: User) -> None:
        self.opening_private = StepPrivate()
        self.user_usage = Usage()
        self.judge_usage = Usage()
        self._user = user
        self._task: Task | None = None
        self._scenario: Scenario | None = None
        self._seed = 0
        self._failures = 0
        self._state = _State()

    async def reset(self, task: Task, *, seed: int) -> Observation:
        """Let the user open.

        Raises:
            CallerError: it was used before.
            DataError: the scenario is damaged.
            UserError, InfraError: the user did not speak; nothing was committed.
        """
        if self._task is not None:
            raise CallerError("a conversation is single-use: make a new one for each episode")
        scenario = Scenario.from_json(task.scenario, f"task {task.id!r}")
        self._seed = seed
        reply = await self._ask(_State(), "", scenario)
        if is_blank(reply.utterance):
            raise UserError("the user said nothing at the start")
        self._task, self._scenario = task, scenario
        self._state = _heard(_State(), reply, scenario)
        self._failures = 0
        self.opening_private = StepPrivate(reply=reply, guards=reply.guards)
        return Observation(system=str(task.public.get("system", "")), first_user=reply.utterance)

    async def step(self, action: AgentAction) -> StepResult:
        """Say the agent's words to the user and bring the answer.

        Raises:
            CallerError: not started, or over.
            UserError, InfraError: the user failed; nothing was committed.
        """
        if self._scenario is None:
            raise CallerError("the conversation was not started: call reset first")
        if self._state.done:
            raise CallerError("the conversation is over")
        problem = problem_of(action, self.spec)
        if problem:
            self._state = replace(self._state, done=True)
            return _result((), None, StopReason.AGENT_INVALID, Party.AGENT, valid=False)
        said = PublicMessage(Role.AGENT, action.content)
        state = replace(self._state, history=(*self._state.history, said))
        if action.ends:
            self._state = replace(state, done=True)
            return _result((), None, StopReason.AGENT_STOP, Party.AGENT)
        if state.left is not None:
            self._state = replace(state, done=True)
            return _result((), None, LEAVING[state.left], Party.USER)
        if state.turns >= (self._scenario.max_turns or MAX_TURNS):
            self._state = replace(state, done=True)
            return _result((), None, StopReason.MAX_TURNS, Party.RUNNER)
        reply = await self._ask(state, action.content, self._scenario)
        after = _heard(state, reply, self._scenario)
        self._state, self._failures = after, 0
        feedback = (PublicMessage(Role.USER, reply.utterance),) if reply.utterance else ()
        reason = LEAVING[reply.action] if after.done else None
        return _result(feedback, reply, reason, Party.USER if reason else None)

    async def _ask(self, state: _State, text: str, scenario: Scenario) -> Reply:
        """Ask the user; on failure set it back, so that the step can be tried again."""
        request = UserRequest(
            kind="chat",
            history=state.history,
            agent_text=text,
            seed=derive(self._seed, "user", state.turns, self._failures),
            asked_fields=briefing.asked_for(text, list(scenario.facts)),
        )
        before = self._user.snapshot()
        try:
            reply = await self._user.respond(request)
            self.user_usage = self.user_usage + reply.usage  # spent, whatever it is worth
            check_reply(reply, reply.utterance)
        except BaseException:
            self._user.restore(before)
            self._failures += 1
            raise
        return reply

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON values; a conversation draws no random numbers."""
        if self._task is None:
            raise CallerError("the conversation was not started: call reset first")
        state = self._state
        return {
            "schema_version": SCHEMA,
            "gym": NO_GYM,
            "task_id": self._task.id,
            "seed": self._seed,
            "history": [{"role": m.role.value, "content": m.content} for m in state.history],
            "turns": state.turns,
            "left": None if state.left is None else state.left.value,
            "done": state.done,
            "user_state": self._user.snapshot(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state of the same task.

        Raises:
            CallerError: not started, or the state belongs to another task or gym.
        """
        task_id = self._task.id if self._task is not None else None
        origin = (state["gym"], state["task_id"], state["schema_version"])
        if origin != (NO_GYM, task_id, SCHEMA):
            raise CallerError(f"a state of {origin} does not fit task {task_id!r}")
        self._seed = state["seed"]
        self._failures = 0
        self._state = _State(
            tuple(PublicMessage(Role(m["role"]), m["content"]) for m in state["history"]),
            state["turns"],
            None if state["left"] is None else UserAction(state["left"]),
            state["done"],
        )
        self._user.restore(state["user_state"])

    async def aclose(self) -> None:
        """Release nothing; the user belongs to its source."""


def _heard(state: _State, reply: Reply, scenario: Scenario) -> _State:
    """Take in what the user said, and whether that was the end."""
    history, turns = state.history, state.turns
    if reply.utterance:
        history = (*history, PublicMessage(Role.USER, reply.utterance))
        turns += 1
    after = presence(reply.action, reply.utterance, scenario.end.grace)
    left = reply.action if after is Presence.ONE_TURN else None
    return _State(history, turns, left=left, done=after is Presence.GONE)


def _result(
    feedback: tuple[PublicMessage, ...],
    reply: Reply | None,
    reason: StopReason | None,
    by: Party | None,
    *,
    valid: bool = True,
) -> StepResult:
    over = reason is StopReason.MAX_TURNS
    return StepResult(
        feedback=feedback,
        reward=0.0,
        terminated=reason is not None and not over,
        truncated=over,
        reason=reason,
        by=by,
        valid=valid,
        private=StepPrivate(reply=reply, guards=reply.guards if reply else ()),
    )


@dataclass(frozen=True, slots=True)
class Conversation:
    """What stands where a gym would (`envs.load.Gym`): it makes no tasks and grades nothing."""

    name: str = NO_GYM
    profiles: tuple[str, ...] = ("default",)

    def spec(self, profile: str) -> GymSpec:
        """Return the static facts."""
        return SPEC

    def make(
        self, profile: str, *, user: Any, judge: Any, options: Mapping[str, Any] | None
    ) -> GymEnv:
        """Make one conversation."""
        if options:
            raise ConfigError(
                f"a conversation has no option {next(iter(options))!r}", expected="no options"
            )
        return Talk(user=user)

    def tasks(self, profile: str, split: str, seed: int, count: int) -> list[Task]:
        """Refuse: the people come from a file.

        Raises:
            UsageError: always.
        """
        raise UsageError("a conversation needs people", expected="--scenarios FILE")

    def agent(self, kind: str, task: Task, seed: int) -> Agent:
        """Refuse: there are no agents that know every conversation.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"a conversation has no agent {kind!r} of its own",
            expected="--agent python:<module:callable>, model:<model> or http:<url>",
        )

    def secrets(self, task: Task) -> list[str]:
        """Return the values that the user keeps back."""
        scenario = Scenario.from_json(task.scenario, f"task {task.id!r}")
        return [str(scenario.facts[entry.fact]) for entry in scenario.withhold]

    def attainable(self, task: Task) -> float:
        """Return 0: nothing can be won."""
        return 0.0


TALKS = Conversation()
"""The one object that `envs.load` knows."""
