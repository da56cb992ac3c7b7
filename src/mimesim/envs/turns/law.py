"""What all turn-taking gyms share: one law of steps, failures and ends.

A gym says how a task begins and what an action does to its state; everything else is here. The
state is one frozen value that is replaced at the end of a step, so a step that fails commits
nothing: the turn is not consumed, and the user is set back to where it was. Malformed actions cost
the turn; three in a row end the episode.
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter

from mimesim.dialogue.stop import Party, StopReason, UserAction
from mimesim.dialogue.thinking import is_blank, split
from mimesim.dialogue.types import PublicMessage, Reply, Role, Usage
from mimesim.envs.actions import problem_of
from mimesim.envs.base import (
    AgentAction,
    Choice,
    GymSpec,
    Observation,
    StepPrivate,
    StepResult,
    Task,
)
from mimesim.envs.turns.compat import read_options
from mimesim.envs.turns.parts import (
    PARTY_FAILURES,
    BadAction,
    Notes,
    Opening,
    Question,
    Turn,
    by_tag,
    invalid_text,
    leaks,
    tagged,
)
from mimesim.errors import CallerError, EnvError, UserError
from mimesim.judges.base import Judge, JudgeRequest, Rule, required
from mimesim.judges.literal import LiteralJudge
from mimesim.seeds import derive, generator
from mimesim.users.base import User, UserRequest

__all__ = [
    "MAX_INVALID",
    "MAX_STEPS",
    "SCHEMA",
    "BadAction",
    "Opening",
    "Question",
    "Turn",
    "TurnGym",
    "invalid_text",
    "leaks",
    "tagged",
]

S = TypeVar("S")
V = TypeVar("V", bound=BaseModel)
T = TypeVar("T")

MAX_STEPS = 16
"""Executed actions of an episode, in training and evaluation."""
MAX_INVALID = 3
"""Invalid actions in a row that end an episode."""
SCHEMA = 1
UNTAGGED = "This has none of the forms that are understood."
"""What compat says to a text without a choice, where the gym does not take any text."""
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class _Frame(Generic[S]):
    """Everything that a step changes."""

    state: S
    history: tuple[PublicMessage, ...] = ()
    turns: int = 0
    invalid: int = 0
    done: bool = False


class TurnGym(ABC, Generic[S]):
    """One episode (single use). Subclasses are the gyms; see `envs.turns.kind` for the door.

    Class attributes of a gym:
        SPEC: its static facts. COMPAT_BOUNDS: highest reward of a step under compat.
        STATE: the frozen dataclass of its state, JSON values throughout.
        OPTIONS: its own settings with their defaults; every gym has `expose_finish` too, with which
            the agent may end the episode by itself.
        CANNED: what the agent reads where compat turns a failure into a turn.
        FREE_TEXT: whether the original takes a text without a choice for words to the person.
        BOTH_FLAGS: with which ends at the last step the original says both terminated and
            truncated. A step here is one of them; under compat its grading notes the other.
    """

    SPEC: ClassVar[GymSpec]
    COMPAT_BOUNDS: ClassVar[tuple[float, float]] = (0.0, 1.0)
    STATE: ClassVar[type]
    OPTIONS: ClassVar[Mapping[str, Any]] = {}
    CANNED: ClassVar[str] = "No answer could be given to that."
    FREE_TEXT: ClassVar[bool] = False
    BOTH_FLAGS: ClassVar[frozenset[StopReason]] = frozenset(StopReason) - {
        StopReason.MAX_STEPS,
        StopReason.AGENT_INVALID,
    }

    def __init__(
        self, *, user: User, judge: Judge | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self.compat, self.options = read_options(options, self.own_options(), self.SPEC.name)
        self.spec = self._spec()
        self.opening_private = StepPrivate()
        self.user_usage = Usage()
        self.judge_usage = Usage()
        self._user = user
        self._judge = judge
        self._as_is = self.compat.json_parser == "python_literal"
        if judge is not None and self._as_is:
            self._judge = LiteralJudge(judge)
        self._task: Task | None = None
        self._seed = 0
        self._failures = 0
        self._busy = False
        self._verdicts: list[Mapping[str, Any]] = []
        self._notes = Notes()
        self._frame: _Frame[S] | None = None

    @classmethod
    def own_options(cls) -> dict[str, Any]:
        """Return the options beside the compat flags, with their defaults."""
        return {"expose_finish": False, **cls.OPTIONS}

    # What a gym says ------------------------------------------------------------------------

    @abstractmethod
    def system(self, task: Task) -> str:
        """Return what the agent is told of the environment; from `task.public` only."""

    @abstractmethod
    async def begin(self, task: Task) -> Opening[S]:
        """Read the task and start.

        Raises:
            DataError: it lacks something.
            UserError, InfraError: the user did not open.
        """

    @abstractmethod
    async def act(self, state: S, action: AgentAction) -> Turn[S]:
        """Carry out an action of an allowed choice; `state` is not changed.

        Raises:
            BadAction: its content cannot be used.
            UserError, JudgeError, InfraError, EnvError: a party failed.
        """

    @abstractmethod
    def succeeded(self, state: S) -> bool:
        """Tell whether an episode that ends in `state` is a success."""

    @abstractmethod
    def forbidden(self) -> list[str]:
        """Return strings that no feedback may hold now."""

    def answer(self) -> str:
        """Return what compat tells an agent that gives up."""
        return ""

    # What a gym may use ---------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """The task of this episode.

        Raises:
            CallerError: it was not started.
        """
        if self._task is None:
            raise CallerError("the episode was not started: call reset first")
        return self._task

    @property
    def state(self) -> S:
        """The committed state."""
        return self._running().state

    def rng(self, *names: str | int) -> random.Random:
        """Return a generator of this task and episode; equal names give equal draws."""
        return generator(self._seed, self.spec.name, self.task.id, *names)

    def heard(self) -> tuple[PublicMessage, ...]:
        """Return the words of user and agent so far."""
        frame = self._frame
        return frame.history if frame is not None else ()

    async def ask(self, question: Question) -> Reply:
        """Ask the user; on failure it is set back, so that the step can be tried again.

        Raises:
            UserError: it said nothing, or did what it cannot do here.
            InfraError, ContextExceeded: of its model.
        """
        kind, heard = question.kind, question.history
        request = UserRequest(
            kind=kind,
            history=self.heard() if heard is None else heard,
            agent_text=question.text,
            seed=derive(self._seed, "user", kind, self._turns(), self._failures),
            public=question.public,
            private=question.private,
            script=question.script,
            may_end=question.may_end,
            as_is=self._as_is,
        )
        with self._notes.failing("user failed"):
            reply = await self._user.respond(request)
            self.user_usage = self.user_usage + reply.usage  # spent, whatever it is worth
            leaves = reply.action is not UserAction.SAY
            if reply.action is UserAction.TOOL or (leaves and not question.may_end):
                raise UserError(f"the user cannot {reply.action.value!r} here", retryable=True)
            if not leaves and is_blank(reply.utterance):
                raise UserError("the user said nothing", retryable=True)
        return reply

    async def decide(self, kind: str, inputs: Mapping[str, Any], schema: type[V], rule: Rule) -> V:
        """Ask the judge.

        Args:
            kind: names the prompt template `judge/<kind>`.
            inputs: what the judge may read, JSON values.
            schema: of the verdict; what it forbids is asked again.
            rule: what a rule judge answers from `inputs`.

        Raises:
            JudgeError: no verdict could be had. InfraError: of its model.
        """
        if self._judge is None:
            raise CallerError(f"gym {self.spec.name!r} was made without a judge")
        request = JudgeRequest(
            kind=kind,
            inputs=inputs,
            schema=schema,
            seed=derive(self._seed, "judge", kind, self._turns(), self._failures),
            trial=self._failures,
            rule=rule,
        )
        with self._notes.failing("judge failed"):
            result = await self._judge.judge(request)
            self.judge_usage = self.judge_usage + result.usage
            value = required(result)
        self._verdicts.append({"kind": kind, **value.model_dump(mode="json")})
        return value

    # The law --------------------------------------------------------------------------------

    async def reset(self, task: Task, *, seed: int) -> Observation:
        """Start the episode.

        Raises:
            CallerError: it was used before.
            DataError: a damaged task.
            UserError, InfraError: the user did not open; nothing was committed.
        """
        if self._frame is not None:
            raise CallerError("a gym is single-use: make a new one for each episode")
        self._task, self._seed = task, seed
        self._notes.clear()
        opening = await self._safely(self.begin(task))
        self._failures = 0
        role = Role.USER if opening.reply is not None else Role.NOTE
        said = (PublicMessage(role, opening.first),) if role is Role.USER else ()
        self._frame = _Frame(opening.state, said)
        reply = opening.reply
        guards = reply.guards if reply else ()
        self.opening_private = StepPrivate(reply=reply, grading=self._notes.on({}), guards=guards)
        return Observation(system=self.system(task), first_user=opening.first)

    async def step(self, action: AgentAction) -> StepResult:
        """Execute one action.

        Raises:
            CallerError: not started, over, or two steps at once.
            UserError, JudgeError, InfraError, EnvError: nothing was committed; may be retried. With
                `error_policy=zero_reward` only the last one is raised.
        """
        frame = self._running()
        if frame.done:
            raise CallerError("the episode is over")
        if self._busy:
            raise CallerError("two steps at once on one episode")
        action = self._received(action)
        self._busy = True
        try:
            turn, valid = await self._turn(frame, action)
        finally:
            self._busy = False
        return self._commit(frame, action, turn, valid=valid)

    async def _turn(self, frame: _Frame[S], action: AgentAction) -> tuple[Turn[S], bool]:
        self._verdicts.clear()
        self._notes.clear()
        try:
            problem = self._problem(action)
            if problem:
                raise BadAction(problem)
            if action.raw and not self.FREE_TEXT:
                return Turn(frame.state, UNTAGGED), True
            if action.choice is Choice.FINISH:
                return self._finish(frame.state), True
            return await self._safely(self._acted(frame.state, action)), True
        except BadAction as error:
            ends = bool(action.problem) and self.compat.no_tool_call == "end"
            told = invalid_text(str(error), self.spec)
            over = StopReason.AGENT_INVALID if ends else None
            return await self.wasted(Turn(frame.state, told, over=over)), False
        except PARTY_FAILURES:
            if self.compat.error_policy != "zero_reward":
                raise
            self._notes.append("failure scored 0")
            return Turn(frame.state, self.CANNED), True

    async def wasted(self, turn: Turn[S]) -> Turn[S]:
        """Return what an invalid action comes to; a gym whose last turn it was ends here."""
        return turn

    def _received(self, action: AgentAction) -> AgentAction:
        """Drop what an agent thought aloud, so that neither user nor judge reads it.

        Compat passes it on, as all else, and reads the action by the tag in front.
        """
        if self.compat.plain_choices:
            return action if action.problem else by_tag(action)
        return replace(action, content=split(action.content).text)

    def _finish(self, state: S) -> Turn[S]:
        answer = self.answer()
        told = answer if self.compat.finish_reveals_answer else ""
        kept = {"answer": answer} if answer else {}
        return Turn(state, told, over=StopReason.AGENT_STOP, grading=kept)

    async def _acted(self, state: S, action: AgentAction) -> Turn[S]:
        turn = await self.act(state, action)
        low, high = self.spec.step_bounds
        if not math.isfinite(turn.reward) or not low - _SLACK <= turn.reward <= high + _SLACK:
            raise EnvError(f"a reward of {turn.reward!r} is outside {low} to {high}")
        return turn

    async def _safely(self, work: Coroutine[Any, Any, T]) -> T:
        """Await; on any failure set the user back and let the next try draw other seeds."""
        before = self._user.snapshot() if self._user is not None else {}
        try:
            return await work
        except BaseException as error:
            if self._user is not None:
                self._user.restore(before)
            if not isinstance(error, BadAction):
                self._failures += 1
            raise

    def _commit(
        self, frame: _Frame[S], action: AgentAction, turn: Turn[S], *, valid: bool
    ) -> StepResult:
        invalid = 0 if valid else frame.invalid + 1
        turns = frame.turns + 1
        reason, by = turn.over, turn.by
        if reason is None and invalid >= MAX_INVALID and not self.compat.plain_choices:
            reason, by = StopReason.AGENT_INVALID, Party.AGENT
        truncated = reason is None and turns >= self.spec.max_steps
        if truncated:
            reason, by = StopReason.MAX_STEPS, Party.RUNNER
        if self.compat.profile and turns >= self.spec.max_steps and reason in self.BOTH_FLAGS:
            self._notes.append("both flags")
        reply = turn.reply
        feedback = self._feedback(turn)
        spoken = valid and action.choice is not Choice.SEARCH  # a look-up is said to nobody
        said = [PublicMessage(Role.AGENT, action.content)] if spoken else []
        heard = [m for m in feedback if m.role is Role.USER]
        self._frame = _Frame(
            turn.state, (*frame.history, *said, *heard), turns, invalid, reason is not None
        )
        self._failures = 0
        return StepResult(
            feedback=feedback,
            reward=turn.reward,
            terminated=reason is not None and not truncated,
            truncated=truncated,
            reason=reason,
            by=by if reason is not None else None,
            success=self.succeeded(turn.state) if reason is not None else None,
            valid=valid,
            private=StepPrivate(
                reply=reply,
                grading=self._notes.on(turn.grading),
                guards=reply.guards if reply else (),
                judge=tuple(self._verdicts),
            ),
        )

    def _feedback(self, turn: Turn[S]) -> tuple[PublicMessage, ...]:
        found = []
        if turn.reply is not None and turn.reply.utterance:
            found.append(PublicMessage(Role.USER, turn.reply.utterance))
        told = turn.feedback
        if self.compat.rewards_shown:
            told = f"{told}\nReward: {turn.reward}".strip()
        if told:
            found.append(PublicMessage(Role.TOOL, told))
        return tuple(found)

    def _problem(self, action: AgentAction) -> str:
        if self.compat.plain_choices and not action.problem:
            return "" if action.choice in self.spec.choices else "unknown choice"
        return problem_of(action, self.spec)

    def _spec(self) -> GymSpec:
        most = min(self.SPEC.max_steps, self.compat.steps)
        spec = replace(self.SPEC, max_steps=most, multi_call=self.compat.kept_call)
        if not self.compat.plain_choices:
            more = (Choice.FINISH,) if self.options["expose_finish"] else ()
            return replace(spec, choices=(*spec.choices, *more))
        choices = (Choice.ACTION, Choice.ANSWER, Choice.SEARCH, Choice.FINISH)
        return replace(
            spec,
            choices=choices,
            step_bounds=self.COMPAT_BOUNDS,
            lenient=True,
            phase=self.compat.phase,
        )

    def _turns(self) -> int:
        return self._frame.turns if self._frame is not None else 0

    def _running(self) -> _Frame[S]:
        if self._frame is None:
            raise CallerError("the episode was not started: call reset first")
        return self._frame

    # Snapshots ------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as JSON values; draws depend on names, so there is no generator."""
        frame = self._running()
        return {
            "schema_version": SCHEMA,
            "gym": self.spec.name,
            "task_id": self.task.id,
            "seed": self._seed,
            "turns": frame.turns,
            "state": _adapter(self.STATE).dump_python(frame.state, mode="json"),
            "history": [{"role": m.role.value, "content": m.content} for m in frame.history],
            "rng_state": None,
            "user_state": self._user.snapshot() if self._user is not None else None,
            "judge_state": None,
            "transcript_len": len(frame.history),
            "invalid_streak": frame.invalid,
            "done": frame.done,
            "failures": self._failures,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state of the same task.

        Raises:
            CallerError: not started, or the state belongs to another task or gym.
        """
        self._running()
        origin = (state["gym"], state["task_id"], state["schema_version"])
        if origin != (self.spec.name, self.task.id, SCHEMA):
            raise CallerError(f"a state of {origin} does not fit task {self.task.id!r}")
        self._seed = state["seed"]
        self._failures = state["failures"]
        self._frame = _Frame(
            _adapter(self.STATE).validate_python(state["state"]),
            tuple(PublicMessage(Role(m["role"]), m["content"]) for m in state["history"]),
            state["turns"],
            state["invalid_streak"],
            state["done"],
        )
        if self._user is not None:
            self._user.restore(state["user_state"])

    async def aclose(self) -> None:
        """Release nothing; user and judge belong to their sources."""


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
