"""THE conversation loop: one episode of one gym, whoever speaks.

Evaluation, data collection, play and reinforcement learning run this loop; they differ only in the
`Agent`. It opens the gym, asks the agent, reads its action, steps the gym and writes everything
down. Whatever goes wrong ends this conversation with a stop reason and the party at fault; only a
`UsageError` (wrong key, full disk) leaves it, since it would spoil every other episode too.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from mimesim.dialogue.episode import Episode
from mimesim.dialogue.loops import loop_detected
from mimesim.dialogue.stop import Party, Stop, StopReason, mentions_marker
from mimesim.dialogue.thinking import is_blank, split_agent
from mimesim.dialogue.types import GuardEvent, Role, Usage
from mimesim.envs.actions import ActionFormat
from mimesim.envs.base import (
    Agent,
    AgentAction,
    AgentMove,
    AgentView,
    GymEnv,
    Observation,
    StepPrivate,
    StepResult,
    Task,
)
from mimesim.errors import (
    AgentError,
    CallerError,
    ContextExceeded,
    EnvError,
    EpisodeError,
    JudgeError,
    UsageError,
    UserError,
)
from mimesim.rollout.events import Event, StepTaken, total_usage, used_tokens
from mimesim.rollout.limits import Limits
from mimesim.rollout.record import Header, Recorder, replace_surrogates
from mimesim.seeds import derive

_DEFAULTS = Limits()
_WAITED = {"gym": "the user or the gym", "agent": "the agent"}
"""`_Conversation.place` -> who had to answer then, for people."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One executed step with its private side, for hooks; it never reaches the agent.

    Attributes:
        index: of the step, from 0.
        view: what the agent saw before it moved.
        result: what the gym answered, private side included.
    """

    episode_id: str
    task: Task
    index: int
    view: AgentView
    move: AgentMove
    action: AgentAction
    result: StepResult


class TurnHook(Protocol):
    """Looks on while a conversation runs; coach notes are one."""

    async def opened(
        self, episode_id: str, task: Task, observation: Observation, private: StepPrivate
    ) -> None:
        """Take note of the opening."""
        ...

    async def stepped(self, step: StepRecord) -> None:
        """Take note of an executed step, before the agent sees its feedback."""
        ...


@dataclass(frozen=True, slots=True)
class Setup:
    """How one episode is run.

    Attributes:
        header: identity, seeds and parties, written into the record.
        action_format: how the agent's text becomes an action.
    """

    header: Header
    action_format: ActionFormat
    limits: Limits = _DEFAULTS
    hooks: tuple[TurnHook, ...] = ()
    on_event: Callable[[Event], None] | None = None


async def run_episode(task: Task, gym: GymEnv, agent: Agent, setup: Setup) -> Episode:
    """Run one conversation to its end and return its record; gym and agent are closed.

    Raises:
        UsageError: the surroundings are wrong (key, disk, input); other episodes would fail too.
    """
    recorder = Recorder(task, setup.header, setup.limits)
    conversation = _Conversation(recorder, gym, agent, setup)
    seconds = setup.limits.seconds
    try:
        try:
            async with asyncio.timeout(seconds):
                stop = await conversation.run()
        finally:
            await _close(agent, gym, recorder)
    except UsageError:
        raise
    except TimeoutError:
        detail = f"wall clock of the conversation; it waited for {_WAITED[conversation.place]}"
        stop = recorder_stop(recorder, StopReason.TIMEOUT, Party.RUNNER, seconds, detail)
    except EpisodeError as error:
        recorder.lost(error)
        recorder.error(conversation.place, error, attempt=setup.header.attempt)
        stop = failure_stop(recorder, error)
    except Exception as error:  # noqa: BLE001 - a bug ends one conversation, never a run
        recorder.error(conversation.place, error, attempt=setup.header.attempt)
        detail = type(error).__name__
        stop = recorder_stop(recorder, StopReason.INTERNAL_ERROR, Party.ENV, None, detail)
    return recorder.finish(stop, _spent(gym, recorder))


def failed_before_start(task: Task, setup: Setup, error: Exception) -> Episode:
    """Return the record of an episode whose parties could not even be made."""
    recorder = Recorder(task, setup.header, setup.limits)
    recorder.error("start", error, attempt=setup.header.attempt)
    if isinstance(error, EpisodeError):
        return recorder.finish(failure_stop(recorder, error), {})
    detail = type(error).__name__
    stop = recorder_stop(recorder, StopReason.INTERNAL_ERROR, Party.ENV, None, detail)
    return recorder.finish(stop, {})


def recorder_stop(
    recorder: Recorder, reason: StopReason, by: Party, limit: float | None, detail: str = ""
) -> Stop:
    """Return the stop at the current user message."""
    return Stop(reason, by, recorder.turns_used - 1, limit, detail)


def failure_stop(recorder: Recorder, error: EpisodeError) -> Stop:
    """Map a failure to its stop: reason, and the party whose doing it was."""
    by = Party.RUNNER
    if isinstance(error, ContextExceeded):
        by = Party(error.party)
    for kind, party in (
        (AgentError, Party.AGENT),
        (UserError, Party.USER),
        (JudgeError, Party.JUDGE),
        (EnvError, Party.ENV),
    ):
        if isinstance(error, kind):
            by = party
    return recorder_stop(recorder, StopReason(error.reason), by, None, error.detail)


async def _close(agent: Agent, gym: GymEnv, recorder: Recorder) -> None:
    for party, name in ((agent, "agent"), (gym, "gym")):
        try:
            await party.aclose()
        except Exception as error:  # noqa: BLE001 - the conversation is over; keep its record
            recorder.error(f"close {name}", error)


class _Conversation:
    """The loop with its state; `place` says what was running when something went wrong."""

    def __init__(self, recorder: Recorder, gym: GymEnv, agent: Agent, setup: Setup) -> None:
        self.place = "gym"
        self._recorder = recorder
        recorder.scored = gym.spec.scored
        self._gym = gym
        self._agent = agent
        self._setup = setup
        self._limits = setup.limits
        self._calls_in_turn = 0
        own = gym.spec.max_steps
        self._max_steps = min(own, setup.limits.max_steps or own)

    async def run(self) -> Stop:
        """Run to the end.

        Raises:
            EpisodeError: a party failed.
        """
        observation = await self._open()
        while True:
            stop = self._before_move() or await self._step(observation)
            if stop is not None:
                return stop

    async def _open(self) -> Observation:
        header, task = self._setup.header, self._recorder.task
        root = header.seed if header.world_seed is None else header.world_seed
        async with self._limited("the opening"):
            with _gym_boundary():
                observation = await self._gym.reset(task, seed=derive(root, "env"))
        private = self._gym.opening_private
        self._recorder.opening(observation, private)
        if private.reply is not None and is_blank(observation.first_user):
            raise UserError("the user said nothing at the start")
        for hook in self._setup.hooks:
            await hook.opened(header.id, task, observation, private)
        return observation

    def _before_move(self) -> Stop | None:
        """Return the stop of a limit that forbids another move."""
        recorder, limits = self._recorder, self._limits
        usage = self._usage()
        if limits.tokens is not None and (used_tokens(usage) or 0) >= limits.tokens:
            return self._stop(StopReason.BUDGET_EXCEEDED, limits.tokens, "tokens")
        if limits.cost is not None and (usage.cost or 0.0) >= limits.cost:
            return self._stop(StopReason.BUDGET_EXCEEDED, limits.cost, "cost")
        if self._calls_in_turn >= limits.calls_per_turn:
            detail = "actions without a word to the user"
            limit = float(limits.calls_per_turn)
            return recorder_stop(recorder, StopReason.AGENT_ERROR, Party.AGENT, limit, detail)
        return None

    async def _step(self, observation: Observation) -> Stop | None:
        recorder = self._recorder
        index = len(recorder.steps)
        left = max(1, self._max_steps - index)
        view = AgentView(observation, tuple(recorder.history), index, left)
        started = time.monotonic()
        self.place = "agent"
        move = await self._move(view)
        action = self._setup.action_format.parse(move, self._gym.spec)
        acted = time.monotonic()
        recorder.agent_move(move, action, round(acted - started, 4))
        self.place = "gym"
        try:
            result = await self._execute(action)
        except BaseException:
            recorder.agent_move_failed()
            raise
        recorder.step(move, action, result)
        for hook in self._setup.hooks:
            record = StepRecord(
                self._setup.header.id, recorder.task, index, view, move, action, result
            )
            await hook.stepped(record)
        if self._setup.on_event is not None:
            self._setup.on_event(StepTaken(self._setup.header.id, index, result.reward))
        return self._after(result, round(time.monotonic() - acted, 4))

    def _after(self, result: StepResult, latency: float) -> Stop | None:
        """Write down the feedback, look at the limits and return the stop, if there is one."""
        recorder = self._recorder
        stop = None if result.done else self._limit_after(result)
        recorder.feedback(result, delivered=stop is None, latency=latency)
        self._calls_in_turn = 0 if _user_spoke(result) else self._calls_in_turn + 1
        if not result.done:
            return stop
        reason = result.reason or (
            StopReason.MAX_STEPS if result.truncated else StopReason.CASE_CLOSED
        )
        limits = {
            StopReason.MAX_STEPS: float(self._gym.spec.max_steps),
            StopReason.MAX_TURNS: float(recorder.turns_used),
        }
        return recorder_stop(recorder, reason, result.by or Party.ENV, limits.get(reason))

    def _limit_after(self, result: StepResult) -> Stop | None:
        recorder, limits = self._recorder, self._limits
        if len(recorder.steps) >= self._max_steps and limits.max_steps is not None:
            return self._stop(StopReason.MAX_STEPS, self._max_steps)
        over = limits.max_turns is not None and recorder.turns_used >= limits.max_turns
        if over and _user_spoke(result):
            return self._stop(StopReason.MAX_TURNS, limits.max_turns)
        heard = recorder.public
        if limits.detect_loops and (
            loop_detected(heard) or loop_detected([*heard, *result.feedback])
        ):
            return self._stop(StopReason.LOOP_DETECTED)
        return None

    def _stop(self, reason: StopReason, limit: float | None = None, detail: str = "") -> Stop:
        limit = None if limit is None else float(limit)
        return recorder_stop(self._recorder, reason, Party.RUNNER, limit, detail)

    def _usage(self) -> Usage:
        spent = _spent(self._gym, self._recorder)
        return total_usage({"agent": self._recorder.agent_usage, **spent})

    async def _move(self, view: AgentView) -> AgentMove:
        """Ask the agent; an empty answer is asked for once more.

        Raises:
            AgentError: it raised, or stayed empty.
        """
        tries = self._limits.empty_retries + 1
        for _ in range(tries):
            move = self._cleaned(await self._ask(view))
            self._recorder.agent_usage = self._recorder.agent_usage + move.usage
            if move.action is not None or not is_blank(move.text):
                return move
        raise AgentError(f"the agent's answer was empty {tries} times")

    async def _ask(self, view: AgentView) -> AgentMove:
        async with self._limited("a move of the agent"):
            try:
                return await self._agent.act(view)
            except (EpisodeError, UsageError):
                raise
            except Exception as error:
                raise AgentError(f"{type(error).__name__}: {error}") from error

    def _cleaned(self, move: AgentMove) -> AgentMove:
        """Take the agent's reasoning out of its text, and what no file can hold."""
        parts = split_agent(move.text, finish_reason=move.finish_reason)
        text, odd = replace_surrogates(parts.text)
        if odd:
            self._recorder.guard(GuardEvent("surrogate", 0, "replaced", "agent's text"))
        if mentions_marker(text):
            self._recorder.guard(GuardEvent("agent_marker", 0, "flagged"))
        action = move.action
        if action is not None:
            action = replace(action, content=replace_surrogates(action.content)[0])
        reasoning = "\n\n".join(part for part in (move.reasoning, parts.reasoning) if part)
        activity = tuple(
            replace(done, content=replace_surrogates(done.content)[0]) for done in move.activity
        )
        last = None if move.last is None else replace_surrogates(move.last)[0]
        return replace(
            move, text=text, action=action, reasoning=reasoning, activity=activity, last=last
        )

    async def _execute(self, action: AgentAction) -> StepResult:
        """Step the gym; a failure that committed nothing is tried again where that can help."""
        for attempt in range(self._limits.step_retries + 1):
            try:
                async with self._limited("a step of the gym"):
                    with _gym_boundary():
                        return _finite(await self._gym.step(action))
            except EpisodeError as error:
                last = attempt == self._limits.step_retries
                if last or not error.retryable or error.reason == StopReason.TIMEOUT:
                    raise
                self._recorder.lost(error)
                self._recorder.error("gym", error, attempt=attempt)
            except (CallerError, UsageError):
                raise
            except Exception as error:
                detail = f"{type(error).__name__}: {error}"
                raise EnvError(detail, reason=StopReason.INTERNAL_ERROR) from error
        raise AssertionError("unreachable: the last attempt returns or raises")

    @asynccontextmanager
    async def _limited(self, what: str) -> AsyncIterator[None]:
        """Bound one call of a party by `limits.step_seconds`."""
        seconds = self._limits.step_seconds
        clock = asyncio.timeout(seconds)
        try:
            async with clock:
                yield
        except TimeoutError as error:
            if not clock.expired():
                raise
            detail = f"{what} took longer than {seconds:g} s"
            raise EpisodeError(detail, reason=StopReason.TIMEOUT) from error


@contextmanager
def _gym_boundary() -> Iterator[None]:
    """Turn whatever a gym raises beside its contract into a failure of the environment."""
    try:
        yield
    except (EpisodeError, CallerError, UsageError):
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        raise EnvError(detail, reason=StopReason.INTERNAL_ERROR) from error


def _spent(gym: GymEnv, recorder: Recorder) -> dict[str, Usage]:
    """Return what user and judge used so far, turns that came to nothing included."""
    return {"user": gym.user_usage + recorder.lost_usage, "judge": gym.judge_usage}


def _finite(result: StepResult) -> StepResult:
    """Refuse a reward that is no number: it could neither be stored nor averaged."""
    if not math.isfinite(result.reward):
        raise EnvError(f"the gym gave the reward {result.reward}")
    return result


def _user_spoke(result: StepResult) -> bool:
    return any(m.role is Role.USER for m in result.feedback)
