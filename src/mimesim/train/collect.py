"""Rollouts for training: the one driver, the policy as agent, notes afterwards.

A `GymCollector` runs the episodes of one generation batch at once, so that the policy's replies
are sampled in lock-step batches, then asks the coach for the notes of every turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import StopReason
from mimesim.dialogue.types import PublicMessage, Reply, Role
from mimesim.envs.actions import get_format
from mimesim.envs.base import Observation, StepPrivate, Task
from mimesim.envs.load import make_gym
from mimesim.errors import CallerError
from mimesim.judges.base import Judge
from mimesim.models.base import ServedTokens
from mimesim.models.load import preflight
from mimesim.models.tiny import token_model
from mimesim.rollout.driver import StepRecord
from mimesim.rollout.engine import Cast, EngineConfig, Job, run_episodes
from mimesim.rollout.limits import Limits
from mimesim.rollout.policy import PolicyConfig, PolicySource
from mimesim.rollout.tokens import TokenRollout
from mimesim.seeds import derive
from mimesim.train.coach import Coach, CoachConfig, CoachTurn
from mimesim.train.grpo import Sample
from mimesim.train.notes import NoteConfig, NoteCounts, NoteTaker, PlaceboRing, Talk
from mimesim.users.base import User, UserSource


@dataclass(frozen=True, slots=True)
class World:
    """What an agent practises in: a gym profile, a frozen user, a judge where the gym needs one.

    Attributes:
        action_format: how a reply becomes an action.
        limits: loop detection is off, since scripted customers repeat themselves by design.
        options: settings of the gym.
    """

    gym: str
    profile: str
    user: UserSource
    action_format: str = "line"
    limits: Limits = Limits(detect_loops=False, empty_retries=0)
    judge: Judge | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


class Listener:
    """A `TurnHook` that keeps what a coach may be shown, by episode."""

    def __init__(self) -> None:
        self.turns: dict[str, list[CoachTurn]] = {}
        self._reply: dict[str, Reply | None] = {}
        self._opening: dict[str, PublicMessage] = {}

    async def opened(
        self, episode_id: str, task: Task, observation: Observation, private: StepPrivate
    ) -> None:
        """Keep the opening; a retried episode starts over."""
        self.turns[episode_id] = []
        self._reply[episode_id] = private.reply
        self._opening[episode_id] = PublicMessage(Role.USER, observation.first_user)

    async def stepped(self, step: StepRecord) -> None:
        """Keep one agent turn with both thoughts around it."""
        key = step.episode_id
        before, after = self._reply[key], step.result.private.reply
        self.turns[key].append(
            CoachTurn(
                history=(self._opening[key], *step.view.messages),
                reply=step.move.text,
                thought_before=before.thought if before else None,
                thought_after=after.thought if after else None,
                next_utterance=after.utterance if after else "",
                wish_before=before.wish if before else {},
            )
        )
        self._reply[key] = after or before


@dataclass(slots=True)
class GymCollector:
    """Runs generation batches in a world (see `train.grpo.Collector`); `close` it afterwards.

    All batches share one event loop, to which the connections of user and coach belong.

    Attributes:
        tasks: training tasks; a row names one by its index.
        tokenizer: of the policy.
        seed: run seed of the rollouts.
        coach: writes notes; None = none are asked for.
        notes: which turns get one.
        counts: what became of the notes of the last batch.
        asking: what a coach may see and how long it may take; None = everything, and no limit.
        sampler: samples the replies instead of the model itself, e.g. a vLLM server; whoever hands
            it in brings the model's weights there before every batch.
    """

    world: World
    tasks: Sequence[Task]
    tokenizer: Any
    policy: PolicyConfig
    seed: int
    coach: Coach | None = None
    notes: NoteConfig = field(default_factory=NoteConfig)
    counts: NoteCounts = field(default_factory=NoteCounts)
    asking: CoachConfig | None = None
    sampler: ServedTokens | None = None
    ring: PlaceboRing = field(init=False)
    _loop: asyncio.Runner = field(init=False, repr=False, default_factory=asyncio.Runner)

    def __post_init__(self) -> None:
        """Make the ring of placebo notes."""
        self.ring = PlaceboRing(derive(self.seed, "ring"))

    def collect(self, rows: Sequence[Mapping[str, Any]], model: Any, batch: int) -> list[Sample]:
        """Run one episode per row with the current weights; failures become invalid samples."""
        self.counts = NoteCounts()
        was_training = model.training
        model.eval()
        try:
            return self._loop.run(self._collect(rows, model, batch))
        finally:
            model.train(was_training)

    def check(self) -> None:
        """Check the endpoints of user, judge and coach before the first batch.

        Raises:
            EnvironmentFault: one of them is not fit; one line.
        """
        self._loop.run(self._check())

    async def _check(self) -> None:
        for party in (self.world.user, self.world.judge, self.coach, self.sampler):
            await preflight(party)

    def close(self) -> None:
        """Release user, judge and coach."""
        with self._loop:
            self._loop.run(self._release())

    async def _release(self) -> None:
        await self.world.user.aclose()
        if self.world.judge is not None:
            await self.world.judge.aclose()
        if self.coach is not None:
            await self.coach.aclose()
        if self.sampler is not None:
            await self.sampler.aclose()

    async def _collect(
        self, rows: Sequence[Mapping[str, Any]], model: Any, batch: int
    ) -> list[Sample]:
        policy = self.sampler or token_model(model, self.tokenizer, name="policy:training")
        source = PolicySource(policy, self.policy)
        listener = Listener()
        cast = Cast(
            agent=source,
            make_gym=lambda task, user: make_gym(
                self.world.gym,
                profile=self.world.profile,
                user=_present(user),
                judge=self.world.judge,
                options=self.world.options or None,
            ),
            action_format=get_format(self.world.action_format),
            user=self.world.user,
        )
        config = EngineConfig(
            seed=derive(self.seed, "rollout", batch),
            run_id="training",
            concurrency=len(rows),
            limits=self.world.limits,
            hooks=(listener,) if self.coach is not None else (),
        )
        jobs = self._jobs(rows)
        summary = await run_episodes(jobs, cast, config)
        samples = [
            as_sample(episode, source.take(episode.id), f"{batch}/{job.task.id}")
            for job, episode in zip(jobs, summary.episodes, strict=True)
        ]
        if self.coach is None:
            return samples
        talks = {
            place: Talk(f"{batch}/{episode.id}", sample.tokens, listener.turns[episode.id])
            for place, (sample, episode) in enumerate(zip(samples, summary.episodes, strict=True))
            if sample.tokens is not None and sample.valid
        }
        context = int(model.config.max_position_embeddings)
        notes = await self._taker(self.coach, context).take(list(talks.values()), policy.codec)
        for place, noted in zip(talks, notes, strict=True):
            samples[place] = replace(samples[place], noted=noted)
        return samples

    def _taker(self, coach: Coach, context: int) -> NoteTaker:
        return NoteTaker(coach, self.asking, self.notes, self.seed, self.counts, self.ring, context)

    def _jobs(self, rows: Sequence[Mapping[str, Any]]) -> list[Job]:
        """Return one job a row; the members of a group are trials of one task."""
        jobs, members = [], dict[int, int]()
        for row in rows:
            index = int(row["task_index"])
            members[index] = members.get(index, -1) + 1
            jobs.append(Job(self.tasks[index], trial=members[index]))
        return jobs


def _present(user: User | None) -> User:
    if user is None:
        raise CallerError("this gym needs a user")
    return user


def as_sample(episode: Episode, record: TokenRollout | None, group: str) -> Sample:
    """Turn an episode and its token record into a training sample.

    A reply that executed no step (an empty or failed last one) counts as a step of reward 0.
    """
    rewards = [step.reward for step in episode.steps]
    replies = len(record.spans) if record is not None else 0
    rewards = [*rewards[:replies], *[0.0] * (replies - len(rewards))]
    reason = episode.stop.reason
    metrics = {
        "success": float(bool(episode.outcome.success)),
        "turns": float(len(episode.steps)),
        "acted": float(reason is StopReason.CASE_CLOSED),
        "left": float(reason is StopReason.USER_STOP),
        "capped": float(reason is StopReason.MAX_STEPS),
    }
    counted = episode.outcome.status.counted
    return Sample(group, record, tuple(rewards), counted, metrics=metrics if counted else {})
