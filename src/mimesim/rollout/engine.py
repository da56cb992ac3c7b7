"""Many episodes: bounded concurrency, seeds, whole-episode retry, the failure record.

The same engine serves evaluation, data collection and training (there without a store). Episodes
are independent: one that fails is recorded and never cancels another. Results depend on the run
seed and on who takes part, not on concurrency or order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mimesim.config.ranges import COUNT, NATURAL, check_ranges
from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import Status, StopReason
from mimesim.dialogue.types import Identity, Usage
from mimesim.envs.actions import ActionFormat
from mimesim.envs.base import AgentSource, GymEnv, Task
from mimesim.errors import UsageError
from mimesim.rollout.driver import Setup, TurnHook, failed_before_start, run_episode
from mimesim.rollout.events import (
    Counts,
    EpisodeFinished,
    EpisodeRetried,
    EpisodeStarted,
    Event,
    OnEvent,
    RunStarted,
    count,
)
from mimesim.rollout.limits import Limits
from mimesim.rollout.record import Header
from mimesim.rollout.store import Store, episode_id
from mimesim.seeds import derive
from mimesim.users.base import Prompted, User, UserSource

T = TypeVar("T")

_RETRIED = (Status.USER_FAILURE, Status.JUDGE_FAILURE, Status.INFRA_FAILURE)
_FINAL = (StopReason.CONTEXT_EXCEEDED, StopReason.BUDGET_EXCEEDED)
_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Job:
    """One (task, trial) pair.

    Attributes:
        world_seed: seed of the user and environment streams; None = the episode's own. Members
            of a GRPO group share one, so that they meet the same user.
    """

    task: Task
    trial: int = 0
    world_seed: int | None = None


@dataclass(frozen=True, slots=True)
class Cast:
    """Who takes part. The sources stay open: whoever made them closes them.

    Attributes:
        make_gym: makes the gym of one episode around its user (None where no user is named).
        judge: who judges, for the records; the judge itself is inside the gym.
        grade: decides on an episode that its gym leaves open; None = nothing is left open.
    """

    agent: AgentSource
    make_gym: Callable[[Task, User | None], GymEnv]
    action_format: ActionFormat
    user: UserSource | None = None
    judge: Identity | None = None
    grade: Callable[[Episode], Awaitable[Episode]] | None = None


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How a set of episodes is run.

    Attributes:
        seed: run seed. run_id: part of every episode id; a store's own id wins.
        concurrency: episodes at once.
        retries: new attempts at an episode that the user, the judge or the infrastructure failed.
    """

    seed: int = 0
    run_id: str = ""
    concurrency: int = 8
    retries: int = 2
    limits: Limits = _LIMITS
    hooks: tuple[TurnHook, ...] = ()

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "concurrency")
        check_ranges(self, NATURAL, "retries")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What came of a run.

    Attributes:
        episodes: final episodes in the order of the jobs, resumed ones included.
        failures: attempts that a retry replaced, those of resumed runs included.
        resumed: how many episodes were on disk before.
    """

    episodes: tuple[Episode, ...]
    failures: tuple[Episode, ...] = ()
    resumed: int = 0
    wall_s: float = 0.0
    warnings: tuple[str, ...] = ()

    @property
    def counts(self) -> Counts:
        """Outcome counts of the episodes."""
        return count(self.episodes)

    @property
    def usage(self) -> Mapping[str, Usage]:
        """Usage per side over all attempts: what the run has cost."""
        return count([*self.episodes, *self.failures]).usage


def episode_seed(run_seed: int, job: Job, attempt: int = 0) -> int:
    """Return the seed of one attempt; it depends on the identity of the episode, not its place."""
    seed = derive(run_seed, "episode", job.task.id, job.trial)
    return derive(seed, "attempt", attempt) if attempt else seed


async def run_episodes(
    jobs: Sequence[Job],
    cast: Cast,
    config: EngineConfig,
    *,
    store: Store | None = None,
    on_event: OnEvent | None = None,
) -> RunSummary:
    """Run `jobs` and return their episodes.

    Args:
        jobs: what to run; ids must differ, so a task and trial stand here once.
        cast: who takes part.
        config: seeds, concurrency, limits.
        store: where finished episodes go; those it already holds are not run again.
        on_event: told what happens, in the order in which it happens.

    Raises:
        UsageError: the surroundings are wrong; everything finished is in the store.
    """
    engine = _Engine(cast, config, store, on_event)
    started = time.monotonic()
    interrupted = True
    try:
        await engine.run(jobs)
        interrupted = False
    finally:
        wall = time.monotonic() - started
        done = engine.summary(jobs, wall)
        if store is not None:
            with suppress(UsageError):  # a full disk was told by the episode that hit it
                store.finish(done.counts, wall_s=wall, interrupted=interrupted)
    return done


def run(
    jobs: Sequence[Job],
    cast: Cast,
    config: EngineConfig,
    *,
    store: Store | None = None,
    on_event: OnEvent | None = None,
) -> RunSummary:
    """Run `run_episodes` from ordinary code; inside a running loop it takes a thread of its own.

    Args:
        jobs: as `run_episodes`.
        cast: as `run_episodes`.
        config: as `run_episodes`.
        store: as `run_episodes`.
        on_event: as `run_episodes`.
    """
    return wait(run_episodes(jobs, cast, config, store=store, on_event=on_event))


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from ordinary code; inside a running loop it takes a thread."""
    if not _inside_a_loop():
        return asyncio.run(work)  # in no handler: what goes wrong in it has one cause only
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, work).result()


def _inside_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Engine:
    def __init__(
        self, cast: Cast, config: EngineConfig, store: Store | None, on_event: OnEvent | None
    ) -> None:
        self._cast = cast
        self._config = config
        self._store = store
        self._on_event = on_event
        self._run_id = store.run_id if store is not None else config.run_id
        self._kept = dict(store.kept) if store is not None else {}
        self._done: dict[str, Episode] = {}
        self._failures: list[Episode] = []

    async def run(self, jobs: Sequence[Job]) -> None:
        """Run what is not done yet."""
        pending = [job for job in jobs if self._id(job) not in self._kept]
        self._tell(RunStarted(len(jobs), len(jobs) - len(pending)))
        queue = iter(pending)
        width = min(self._config.concurrency, len(pending))
        workers = [asyncio.create_task(self._work(queue)) for _ in range(width)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    def summary(self, jobs: Sequence[Job], wall_s: float) -> RunSummary:
        """Return what is finished so far."""
        final = {**self._kept, **self._done}
        ids = [self._id(job) for job in jobs]
        warnings = tuple(self._store.warnings) if self._store is not None else ()
        return RunSummary(
            episodes=tuple(final[key] for key in ids if key in final),
            failures=tuple(self._store.failures if self._store is not None else self._failures),
            resumed=sum(key in self._kept for key in ids),
            wall_s=wall_s,
            warnings=warnings,
        )

    async def _work(self, queue: Iterator[Job]) -> None:
        for job in queue:
            await self._run_job(job)

    async def _run_job(self, job: Job) -> None:
        for attempt in range(self._config.retries + 1):
            self._tell(EpisodeStarted(self._id(job), attempt))
            episode = await self._attempt(job, attempt)
            if attempt == self._config.retries or not _worth_another(episode):
                break
            if self._store is not None:
                self._store.add_failure(episode)
            else:
                self._failures.append(episode)
            self._tell(EpisodeRetried(episode))
        if self._cast.grade is not None:
            episode = await self._cast.grade(episode)
        if self._store is not None:
            self._store.add(episode)
        self._done[episode.id] = episode
        self._tell(EpisodeFinished(episode))

    async def _attempt(self, job: Job, attempt: int) -> Episode:
        cast, task = self._cast, job.task
        seed = episode_seed(self._config.seed, job, attempt)
        world = seed if job.world_seed is None else job.world_seed
        if attempt and job.world_seed is not None:
            world = derive(world, "attempt", attempt)
        header = Header(
            id=self._id(job),
            run_id=self._run_id,
            trial=job.trial,
            seed=seed,
            agent=cast.agent.identity,
            user=cast.user.identity if cast.user is not None else None,
            judge=cast.judge,
            attempt=attempt,
            world_seed=world,
        )
        config = self._config
        setup = Setup(header, cast.action_format, config.limits, config.hooks, self._on_event)
        try:
            user = None
            if cast.user is not None:
                user = cast.user.start(task.scenario, seed=derive(world, "user"))
                setup = replace(setup, header=replace(header, user=_told(cast.user.identity, user)))
            gym = cast.make_gym(task, user)
            agent = cast.agent.start(task=task, seed=derive(seed, "agent"), key=header.id)
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - a party that cannot be made fails one episode
            return failed_before_start(task, setup, error)
        return await run_episode(task, gym, agent, setup)

    def _id(self, job: Job) -> str:
        return episode_id(self._run_id, job.task.id, job.trial)

    def _tell(self, event: Event) -> None:
        if self._on_event is not None:
            self._on_event(event)


def _told(kind: Identity, user: User) -> Identity:
    """Return who a user is, with the prompt that this one was given."""
    return replace(kind, prompt_hash=user.prompt_hash) if isinstance(user, Prompted) else kind


def _worth_another(episode: Episode) -> bool:
    """Tell whether a new attempt can help: not for deterministic ends such as a full context."""
    return episode.outcome.status in _RETRIED and episode.stop.reason not in _FINAL
