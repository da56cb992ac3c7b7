"""Rollouts for training: the one driver, the policy as agent, notes afterwards.

A `GymCollector` runs the episodes of one generation batch at once, so that the policy's replies
are sampled in lock-step batches, then asks the coach for the notes of every turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import StopReason
from mimesim.dialogue.types import PublicMessage, Reply, Role, Usage
from mimesim.envs.actions import get_format
from mimesim.envs.base import Observation, StepPrivate, Task
from mimesim.envs.load import make_gym
from mimesim.errors import CallerError
from mimesim.judges.base import Judge
from mimesim.models.base import ChatCodec, ServedTokens
from mimesim.models.load import preflight
from mimesim.models.tiny import token_model
from mimesim.rollout.driver import StepRecord, TurnHook
from mimesim.rollout.engine import Cast, EngineConfig, Job, RunSummary, run_episodes
from mimesim.rollout.events import used_tokens
from mimesim.rollout.limits import Limits
from mimesim.rollout.policy import PolicyConfig, PolicySource
from mimesim.rollout.tokens import TokenRollout
from mimesim.seeds import derive
from mimesim.train.coach import Coach, CoachConfig, CoachTurn, take_usage
from mimesim.train.credit import CreditConfig
from mimesim.train.grpo import Sample
from mimesim.train.notes import NoteConfig, NoteCounts, NoteTaker, PlaceboRing, Talk
from mimesim.users.base import User, UserSource
from mimesim.users.mixture import Mixture


@dataclass(frozen=True, slots=True)
class World:
    """What an agent practises in: a gym profile, frozen users, a judge where the gym needs one.

    Attributes:
        action_format: how a reply becomes an action.
        limits: loop detection is off, since scripted customers repeat themselves by design.
        options: settings of the gym.
        credit: how credit is assigned in this gym; None = as in the whole run.
        own_judges: user name -> who grades the conversations of that user, in place of `judge`.
    """

    gym: str
    profile: str
    user: UserSource | Mixture
    action_format: str = "line"
    limits: Limits = Limits(detect_loops=False, empty_retries=0)
    judge: Judge | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    credit: CreditConfig | None = None
    own_judges: Mapping[str, Judge] = field(default_factory=dict)

    @property
    def judges(self) -> tuple[Judge, ...]:
        """All who grade here."""
        return tuple(self.own_judges.values()) or (() if self.judge is None else (self.judge,))


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


class _Party(NamedTuple):
    """Who plays together: the places of their jobs, who takes part, and how."""

    places: tuple[int, ...]
    cast: Cast
    config: EngineConfig


class _Talking(NamedTuple):
    """The policy of one batch: its template, and the agents it makes."""

    codec: ChatCodec
    source: PolicySource


@dataclass(slots=True)
class Spent:
    """What one batch cost on each side, and how its failed episodes failed.

    Attributes:
        usage: side -> usage of all attempts; the coach is one of them.
        failed: status -> episodes that are not counted.
    """

    usage: dict[str, Usage] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)

    def take(self, side: str, usage: Usage) -> None:
        """Add what a side used."""
        self.usage[side] = self.usage.get(side, Usage()) + usage

    def count(self, summary: RunSummary) -> None:
        """Add what episodes used, and count the failed ones."""
        for side, usage in summary.usage.items():
            self.take(side, usage)
        for status, number in summary.counts.not_counted.items():
            self.failed[status] = self.failed.get(status, 0) + number

    def numbers(self) -> dict[str, float]:
        """Return calls, tokens and dollars of every side but the policy, and the failures."""
        found: dict[str, float] = {f"failed/{k}": n for k, n in self.failed.items()}
        for side, usage in self.usage.items():
            if side == "agent" or not usage.calls:
                continue
            found[f"usage/{side}_calls"] = usage.calls
            found[f"usage/{side}_tokens"] = used_tokens(usage) or 0
            if usage.cost is not None:
                found[f"usage/{side}_cost"] = usage.cost
        return found


@dataclass(slots=True)
class GymCollector:
    """Runs generation batches in a world (see `train.grpo.Collector`); `close` it afterwards.

    All batches share one event loop, to which the connections of user and coach belong.

    Attributes:
        world: where all tasks are played, or the world of each gym.
        tasks: training tasks; a row names one by its index.
        tokenizer: of the policy.
        seed: run seed of the rollouts.
        coach: writes notes; None = none are asked for.
        notes: which turns get one.
        counts: what became of the notes of the last batch.
        spent: what the last batch cost, and which of its episodes failed.
        asking: what a coach may see and how long it may take; None = everything, and no limit.
        sampler: samples the replies instead of the model itself, e.g. a vLLM server; whoever hands
            it in brings the model's weights there before every batch.
        first_trials: number of each task's first trial (`train.gyms.first_trials`); empty = 0.
    """

    world: World | Mapping[str, World]
    tasks: Sequence[Task]
    tokenizer: Any
    policy: PolicyConfig
    seed: int
    coach: Coach | None = None
    notes: NoteConfig = field(default_factory=NoteConfig)
    counts: NoteCounts = field(default_factory=NoteCounts)
    asking: CoachConfig | None = None
    sampler: ServedTokens | None = None
    first_trials: Sequence[int] = ()
    ring: PlaceboRing = field(init=False)
    spent: Spent = field(init=False, default_factory=lambda: Spent())
    _loop: asyncio.Runner = field(init=False, repr=False, default_factory=asyncio.Runner)

    def __post_init__(self) -> None:
        """Make the ring of placebo notes."""
        self.ring = PlaceboRing(derive(self.seed, "ring"))

    @property
    def worlds(self) -> tuple[World, ...]:
        """The one world, or those of all gyms."""
        return (self.world,) if isinstance(self.world, World) else tuple(self.world.values())

    @property
    def users(self) -> tuple[UserSource | Mixture, ...]:
        """The users of all worlds, each once."""
        return tuple({id(world.user): world.user for world in self.worlds}.values())

    @property
    def judges(self) -> tuple[Judge, ...]:
        """The judges of all worlds, each once."""
        return tuple({id(judge): judge for w in self.worlds for judge in w.judges}.values())

    def _world(self, task: Task) -> World:
        return self.world if isinstance(self.world, World) else self.world[task.gym]

    def collect(self, rows: Sequence[Mapping[str, Any]], model: Any, batch: int) -> list[Sample]:
        """Run one episode per row with the current weights; failures become invalid samples."""
        self.counts, self.spent = NoteCounts(), Spent()
        was_training = model.training
        model.eval()
        try:
            return self._loop.run(self._collect(rows, model, batch))
        finally:
            model.train(was_training)

    def measure(self, jobs: Sequence[Job], model: Any, seed: int) -> list[Sample]:
        """Play jobs greedily, without notes; `seed` makes users and worlds."""
        greedy = replace(self.policy, temperature=0.0)
        was_training = model.training
        model.eval()
        try:
            return self._loop.run(self._measure(jobs, self._talking(model, greedy), seed))
        finally:
            model.train(was_training)

    async def _measure(self, jobs: Sequence[Job], talking: _Talking, seed: int) -> list[Sample]:
        episodes = await self._play(talking, jobs, self._users(jobs, self._last()), seed)
        end = talking.codec.end_id
        samples = [
            as_sample(episode, talking.source.take(episode.id), job.task.id, end)
            for episode, job in zip(episodes, jobs, strict=True)
        ]
        return self._by_gym(samples, jobs)

    def check(self) -> None:
        """Check the endpoints of user, judge and coach before the first batch.

        Raises:
            EnvironmentFault: one of them is not fit; one line.
        """
        self._loop.run(self._check())

    async def _check(self) -> None:
        for party in (*self.users, *self.judges, self.coach, self.sampler):
            await preflight(party)

    def close(self) -> None:
        """Release user, judge and coach."""
        with self._loop:
            self._loop.run(self._release())

    async def _release(self) -> None:
        for party in (*self.users, *self.judges):
            await party.aclose()
        if self.coach is not None:
            await self.coach.aclose()
        if self.sampler is not None:
            await self.sampler.aclose()

    async def _collect(
        self, rows: Sequence[Mapping[str, Any]], model: Any, batch: int
    ) -> list[Sample]:
        listener = Listener()
        hooks = (listener,) if self.coach is not None else ()
        jobs = self._jobs(rows)
        talking = self._talking(model, self.policy)
        users = self._users(jobs, batch)
        seed = derive(self.seed, "rollout", batch)
        episodes = await self._play(talking, jobs, users, seed, hooks)
        names = [self._group(row, batch) for row in rows]
        codec = talking.codec
        samples = [
            as_sample(episode, talking.source.take(episode.id), name, codec.end_id)
            for episode, name in zip(episodes, names, strict=True)
        ]
        samples = [
            _met(sample, user) if isinstance(self._world(job.task).user, Mixture) else sample
            for sample, user, job in zip(samples, users, jobs, strict=True)
        ]
        samples = self._by_gym(samples, jobs)
        if self.coach is None:
            return samples
        talks = {
            place: Talk(f"{batch}/{episode.id}", sample.tokens, listener.turns[episode.id])
            for place, (sample, episode) in enumerate(zip(samples, episodes, strict=True))
            if sample.tokens is not None and sample.valid
        }
        context = int(model.config.max_position_embeddings)
        notes = await self._taker(self.coach, context).take(list(talks.values()), codec)
        self.spent.take("coach", take_usage(self.coach))
        for place, noted in zip(talks, notes, strict=True):
            samples[place] = replace(samples[place], noted=noted)
        return samples

    def _talking(self, model: Any, policy: PolicyConfig) -> _Talking:
        tokens = self.sampler or token_model(model, self.tokenizer, name="policy:training")
        return _Talking(tokens.codec, PolicySource(tokens, policy))

    async def _play(
        self,
        talking: _Talking,
        jobs: Sequence[Job],
        users: Sequence[UserSource],
        seed: int,
        hooks: tuple[TurnHook, ...] = (),
    ) -> list[Episode]:
        """Run one episode a job, all at once; those of one gym and one user are played together."""
        config = EngineConfig(
            seed=seed, run_id="training", concurrency=max(1, len(jobs)), hooks=hooks
        )
        places: dict[tuple[str, int], list[int]] = {}
        for place, (job, user) in enumerate(zip(jobs, users, strict=True)):
            places.setdefault((job.task.gym, id(user)), []).append(place)
        parties = []
        for together in places.values():
            world, user = self._world(jobs[together[0]].task), users[together[0]]
            cast = _cast(world, talking, user)
            run_id = config.run_id if world is self.world else f"{config.run_id} {world.gym}"
            how = replace(config, limits=world.limits, run_id=run_id)
            parties.append(_Party(tuple(together), cast, how))
        summaries = await _at_once(jobs, parties)
        for summary in summaries.values():
            self.spent.count(summary)
        return _in_order(summaries)

    def _taker(self, coach: Coach, context: int) -> NoteTaker:
        return NoteTaker(coach, self.asking, self.notes, self.seed, self.counts, self.ring, context)

    def _users(self, jobs: Sequence[Job], batch: int) -> list[UserSource]:
        """Return whom each job meets; the members of a group meet the same user."""
        met = [self._world(job.task).user for job in jobs]
        return [
            user.draw(job.task.id, batch) if isinstance(user, Mixture) else user
            for job, user in zip(jobs, met, strict=True)
        ]

    def _last(self) -> int:
        """Return the batch from which on every user is met."""
        mixtures = [user for user in self.users if isinstance(user, Mixture)]
        return max((share.from_batch for user in mixtures for share in user.shares), default=0)

    def _jobs(self, rows: Sequence[Mapping[str, Any]]) -> list[Job]:
        """Return one job a row; the members of a group are trials of one task."""
        jobs, members = [], dict[int, int]()
        for row in rows:
            index = int(row["task_index"])
            members[index] = members.get(index, -1) + 1
            first = self.first_trials[index] if self.first_trials else 0
            jobs.append(Job(self.tasks[index], trial=first + members[index]))
        return jobs

    def _group(self, row: Mapping[str, Any], batch: int) -> str:
        """Return the identity of a row's group: rollouts of the same task in another row differ."""
        index = int(row["task_index"])
        task, again = self.tasks[index], self.first_trials[index] if self.first_trials else 0
        gym = "" if isinstance(self.world, World) else f"{task.gym}/"
        return f"{batch}/{gym}{task.id}" + (f"/{again}" if again else "")

    def _by_gym(self, samples: Sequence[Sample], jobs: Sequence[Job]) -> list[Sample]:
        """Return the samples with what their gym decides, where there are several gyms."""
        if isinstance(self.world, World):
            return list(samples)
        pairs = zip(samples, jobs, strict=True)
        return [_played_in(self._world(job.task), sample) for sample, job in pairs]


def _cast(world: World, talking: _Talking, met: UserSource) -> Cast:
    """Return who takes part in a world where the agent meets `met`."""
    judge = world.own_judges.get(met.identity.name, world.judge)
    return Cast(
        agent=talking.source,
        user=met,
        make_gym=lambda task, user: make_gym(
            world.gym,
            profile=world.profile,
            user=_present(user),
            judge=judge,
            options=world.options or None,
        ),
        action_format=get_format(world.action_format),
    )


async def _at_once(
    jobs: Sequence[Job], parties: Sequence[_Party]
) -> dict[tuple[int, ...], RunSummary]:
    """Run the jobs of all parties side by side, so that all replies are sampled in one batch.

    Returns:
        places of the jobs of one party -> what came of them.
    """
    runs = [
        asyncio.create_task(run_episodes([jobs[i] for i in p.places], p.cast, p.config))
        for p in parties
    ]
    try:
        summaries = await asyncio.gather(*runs)
    finally:
        for run in runs:
            run.cancel()  # without effect unless another one failed
        await asyncio.gather(*runs, return_exceptions=True)
    return dict(zip((party.places for party in parties), summaries, strict=True))


def _in_order(summaries: Mapping[tuple[int, ...], RunSummary]) -> list[Episode]:
    """Return all episodes by the place of their job."""
    found: dict[int, Episode] = {}
    for places, summary in summaries.items():
        found |= zip(places, summary.episodes, strict=True)
    return [found[place] for place in sorted(found)]


def _met(sample: Sample, user: UserSource) -> Sample:
    """Return the sample with its success once more under the name of its user."""
    if "success" not in sample.metrics:
        return sample
    named = {f"success/{user.identity.name}": sample.metrics["success"]}
    return replace(sample, metrics={**sample.metrics, **named})


def _played_in(world: World, sample: Sample) -> Sample:
    """Return the sample with its gym's credit, and its success and reward under the gym's name."""
    metrics = dict(sample.metrics)
    if metrics:
        metrics[f"success/{world.gym}"] = metrics["success"]
        metrics[f"reward/{world.gym}"] = sum(sample.rewards)
    return replace(sample, metrics=metrics, credit=world.credit)


def _present(user: User | None) -> User:
    if user is None:
        raise CallerError("this gym needs a user")
    return user


def as_sample(
    episode: Episode, record: TokenRollout | None, group: str, end_id: int | None = None
) -> Sample:
    """Turn an episode and its token record into a training sample.

    A reply that executed no step (an empty or failed last one) counts as a step of reward 0.

    Args:
        episode: as it was played.
        record: what the policy read and wrote.
        group: the prompt's identity.
        end_id: what ends a whole reply; None = do not look.
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
        # It ends nothing; a policy that prints it more and more looks for a way round the user.
        "agent_marker": float(sum(e["guard"] == "agent_marker" for e in episode.guards)),
    }
    if record is not None and end_id is not None:
        cut = [record.completion_ids[span.end - 1] != end_id for span in record.spans]
        metrics["cut"] = sum(cut) / len(cut)
    counted = episode.outcome.status.counted
    return Sample(group, record, tuple(rewards), counted, metrics=metrics if counted else {})
