"""A gym played from outside, text in and text out, for harnesses that bring their own agent.

Every episode runs through the one driver; the agent in it only passes on what the other side
writes. So action formats, retries of a step, failures and the record are the same as everywhere:
what a user, a judge or the network failed is raised, never scored.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mimesim import config as configs
from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import Status
from mimesim.dialogue.types import Identity
from mimesim.envs.agents.prompting import feedback_text, opening_text, system_text
from mimesim.envs.base import (
    AgentMove,
    AgentView,
    GymEnv,
    GymSpec,
    Observation,
    StepPrivate,
    StepResult,
    Task,
)
from mimesim.envs.load import gym_spec
from mimesim.errors import (
    CallerError,
    EnvError,
    EpisodeError,
    InfraError,
    JudgeError,
    UsageError,
    UserError,
)
from mimesim.rollout.driver import StepRecord
from mimesim.rollout.engine import Cast, EngineConfig, Job, RunSummary, run_episodes
from mimesim.rollout.limits import Limits
from mimesim.rollout.prepare import Prepared, RunConfig, prepare
from mimesim.users.base import User

T = TypeVar("T")

_LIMITS = Limits(
    calls_per_turn=1_000_000, seconds=None, step_seconds=None, empty_retries=0, detect_loops=False
)
"""The other harness has its own clock and may take any time between two steps."""
_ERRORS: Mapping[Status, type[EpisodeError]] = {
    Status.USER_FAILURE: UserError,
    Status.JUDGE_FAILURE: JudgeError,
    Status.ENV_FAILURE: EnvError,
    Status.INFRA_FAILURE: InfraError,
}


@dataclass(frozen=True, slots=True)
class Opened:
    """How an episode starts.

    Attributes:
        system: what the agent is told of the environment and of how to write an action.
        text: the first thing that is said to it.
    """

    task_id: str
    system: str
    text: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of one text of the agent; never terminated and truncated at once.

    Attributes:
        valid: whether the text could be read and carried out as an action.
        success: at the end, whether the task was done; None before, and where nobody can tell.
        reason: at the end, why.
    """

    text: str
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    valid: bool = True
    success: bool | None = None
    reason: str = ""

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


class TextGym:
    """The tasks of one gym with its user and judge, ready to be played from outside."""

    def __init__(self, prepared: Prepared, name: str) -> None:
        self._prepared = prepared
        self._checked = False
        self._name = name
        self.tasks: tuple[Task, ...] = tuple(job.task for job in prepared.jobs if job.trial == 0)
        self.spec: GymSpec = gym_spec(prepared.config.gym, prepared.config.profile)

    @property
    def seed(self) -> int:
        """The run seed."""
        return self._prepared.config.seed

    async def open(self, number: int, trial: int = 0) -> TextSession:
        """Start an episode of task `number`; equal numbers and trials give equal episodes.

        Raises:
            UsageError: no such task, or the surroundings are wrong.
            EpisodeError: the user did not open.
        """
        if not 0 <= number < len(self.tasks):
            raise UsageError(f"no task {number!r}", expected=f"0 to {len(self.tasks) - 1}")
        if not self._checked:
            await self._prepared.preflight()
            self._checked = True
        session = TextSession(self._prepared.cast, self._name)
        await session.start(Job(self.tasks[number], trial), self.seed)
        return session

    async def aclose(self) -> None:
        """Close user and judge."""
        await self._prepared.aclose()


def open_gym(gym: str, harness: str, settings: Mapping[str, Any]) -> TextGym:
    """Make a gym ready to be played from outside; no model is called.

    Args:
        gym: door name.
        harness: who plays, for the records.
        settings: fields of `rollout.prepare.RunConfig`: profile, split, seed, tasks, user, judge,
            options, action_format; `episodes` is how many tasks are made. Without a user it is
            `scripted:neutral`, without a judge `rule`.

    Raises:
        UsageError: an unknown name or setting, a bad file, a party that cannot be made.
    """
    for name in ("agent", "gym"):
        if name in settings:
            raise UsageError(f"{name!r} is no setting here", where=f"gym {gym!r}")
    usual: dict[str, Any] = {"user": "scripted:neutral", "episodes": 64}
    if gym_spec(gym, settings.get("profile")).needs_judge:
        usual["judge"] = "rule"
    given = {**usual, **settings, "gym": gym, "agent": "null"}
    return TextGym(prepare(configs.from_options(RunConfig, given, where=f"gym {gym!r}")), harness)


class TextSession:
    """One episode; `episode` is its whole record once it is over, both sides included."""

    def __init__(self, cast: Cast, harness: str) -> None:
        self.identity = Identity("callable", harness)
        self.episode: Episode | None = None
        self.opened: Opened | None = None
        self._cast = cast
        self._said: asyncio.Queue[str] = asyncio.Queue()
        self._heard: asyncio.Queue[StepResult | Observation] = asyncio.Queue()
        self._run: asyncio.Task[RunSummary] | None = None
        self._spec: GymSpec | None = None

    async def start(self, job: Job, seed: int) -> Opened:
        """Start; see `TextGym.open`."""
        relay = _Relay(self._said, self._heard, self.identity)
        cast = replace(self._cast, agent=relay, make_gym=self._made)
        settings = EngineConfig(seed=seed, retries=0, limits=_LIMITS, hooks=(relay,))
        self._run = asyncio.create_task(run_episodes([job], cast, settings))
        seen = await self._next()
        if not isinstance(seen, Observation) or self._spec is None:
            await self._finished()
            raise EnvError("the episode ended before it began")
        view = AgentView(seen, (), 0, self._spec.max_steps)
        system = system_text(view, self._cast.action_format, self._spec)
        first = opening_text(seen.first_user, self._spec)
        self.opened = Opened(job.task.id, system, first)
        return self.opened

    async def step(self, text: str) -> Heard:
        """Pass on what the agent wrote and return what came of it.

        Raises:
            CallerError: the episode is over.
            EpisodeError: user, judge, environment or network failed; the episode is no data.
            UsageError: the surroundings are wrong.
        """
        if self._run is None or self._spec is None or self.episode or self._run.done():
            raise CallerError("the episode is over or was not started")
        self._said.put_nowait(text)
        result = await self._next()
        if not isinstance(result, StepResult):  # the agent's own failure, e.g. an empty text
            episode = await self._finished()
            cut = episode.outcome.status is Status.TRUNCATED
            reason = str(episode.stop.reason)
            return Heard(
                "", terminated=not cut, truncated=cut, valid=False, success=False, reason=reason
            )
        if result.done:
            await self._finished()
        return Heard(
            feedback_text(result.feedback, self._spec) if result.feedback else "",
            result.reward,
            terminated=result.terminated,
            truncated=result.truncated,
            valid=result.valid,
            success=result.success,
            reason=str(result.reason) if result.reason is not None else "",
        )

    async def aclose(self) -> None:
        """Give up an episode that is not over; twice is harmless."""
        run, self._run = self._run, None
        if run is not None:
            run.cancel()
            with suppress(asyncio.CancelledError, UsageError):
                await run

    def _made(self, task: Task, user: User | None) -> GymEnv:
        gym = self._cast.make_gym(task, user)
        self._spec = gym.spec
        return gym

    async def _next(self) -> StepResult | Observation | None:
        """Wait for what the driver shows next; None = it ended."""
        assert self._run is not None
        heard = asyncio.create_task(self._heard.get())
        await asyncio.wait({heard, self._run}, return_when=asyncio.FIRST_COMPLETED)
        if heard.done():
            return heard.result()
        heard.cancel()
        return None if self._heard.empty() else self._heard.get_nowait()

    async def _finished(self) -> Episode:
        assert self._run is not None
        summary = await self._run
        episode = self.episode = summary.episodes[0]
        status, stop = episode.outcome.status, episode.stop
        if not status.counted:
            told = f"{stop.reason}: {stop.detail}" if stop.detail else str(stop.reason)
            raise _ERRORS[status](told)
        return episode


@dataclass(frozen=True)
class _Relay:
    """Agent, source of it and hook in one: what the other side writes goes in, results go out."""

    said: asyncio.Queue[str]
    heard: asyncio.Queue[StepResult | Observation]
    identity: Identity

    def start(self, *, task: Task, seed: int, key: str) -> _Relay:
        return self

    async def act(self, view: AgentView) -> AgentMove:
        return AgentMove(await self.said.get())

    async def opened(
        self, episode_id: str, task: Task, observation: Observation, private: StepPrivate
    ) -> None:
        self.heard.put_nowait(observation)

    async def stepped(self, step: StepRecord) -> None:
        self.heard.put_nowait(step.result)

    async def aclose(self) -> None:
        return None


class Loop:
    """An event loop in a thread of its own, for harnesses that are not asynchronous."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        # many never close an environment: then it ends with the last reference or the program
        self._end = weakref.finalize(self, _stop, self._loop, self._thread)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, without blocking the caller's own loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """Stop; twice is harmless."""
        self._end()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class SyncGym:
    """A `TextGym` without `await`: one episode at a time."""

    def __init__(self, gym: TextGym) -> None:
        self.gym = gym
        self.session: TextSession | None = None
        self._loop = Loop()
        self._closed = False

    def reset(self, number: int, trial: int = 0) -> Opened:
        """Give up the running episode and start one; see `TextGym.open`."""
        self._leave()
        self.session = self._loop.run(self.gym.open(number, trial))
        assert self.session.opened is not None
        return self.session.opened

    def step(self, text: str) -> Heard:
        """Pass on what the agent wrote; see `TextSession.step`."""
        if self.session is None:
            raise CallerError("no episode was started: call reset first")
        return self._loop.run(self.session.step(text))

    def close(self) -> None:
        """Close the episode and everything behind it; twice is harmless."""
        if self._closed:
            return
        self._closed = True
        self._leave()
        self._loop.run(self.gym.aclose())
        self._loop.close()

    def _leave(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            self._loop.run(session.aclose())
