"""Rollouts of the user model in tasks: the one driver, rewards gated, failures left out.

The seats are turned round: the policy in the agent's seat is the user model. A group shares its
prompt and role, and the seeds of partner and judge with them. What a judge or a partner failed is
missing data: it joins no group statistics and no loss (`compat`: a reward of 0); both kinds of loss
are counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mimesim import prompts
from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import Status
from mimesim.dialogue.thinking import join
from mimesim.dialogue.types import Role
from mimesim.envs.base import Observation, Task
from mimesim.envs.tasks.base import PLAIN
from mimesim.models.base import ChatMessage
from mimesim.models.tiny import token_model
from mimesim.rollout.engine import Cast, EngineConfig, Job, run_episodes
from mimesim.rollout.limits import Limits
from mimesim.rollout.policy import PolicyConfig, PolicySource, opening
from mimesim.rollout.tokens import TokenRollout
from mimesim.seeds import derive
from mimesim.train.grpo import Sample
from mimesim.train.user_gate import Problem, rollout_problem
from mimesim.train.user_signs import signs
from mimesim.train.user_tasks import Stage, task_name

LIMITS = Limits(detect_loops=False, empty_retries=0)
"""A user that repeats itself earns what that is worth; an empty message is the gate's business."""


@dataclass(frozen=True, slots=True)
class Played:
    """One finished rollout.

    Attributes:
        tokens: the record; None when the episode failed before the policy spoke.
        problem: what the format gate found.
        signs: what is watched and not rewarded.
    """

    task: Task
    episode: Episode
    tokens: TokenRollout | None
    problem: Problem
    signs: Mapping[str, float]

    @property
    def said(self) -> list[str]:
        """The policy's messages, thoughts taken out."""
        return own_messages(self.episode)


@dataclass(frozen=True, slots=True)
class Speaker:
    """The user model as a policy.

    Attributes:
        tokenizer: its tokenizer.
        thinking: whether it thinks before it writes.
        policy: how it samples.
    """

    tokenizer: Any
    thinking: bool
    policy: PolicyConfig

    def start(self, task: Task, observation: Observation) -> list[ChatMessage]:
        """Return what the policy sees before its first message."""
        return start_of(task, observation, thinking=self.thinking)

    def count(self, text: str) -> int:
        """Return how many tokens a text has."""
        return len(self.tokenizer(text, add_special_tokens=False)["input_ids"])


def start_of(task: Task, observation: Observation, *, thinking: bool) -> list[ChatMessage]:
    """Return the messages before the policy's first one, the replayed check as real turns.

    Replayed words of the customer get an empty block where the policy thinks, so that all of its
    turns have one form. They are context and carry no gradient.
    """
    replay = task.public.get("replay", ())
    if not replay:
        return opening(observation)
    messages = [
        ChatMessage("system", observation.system),
        ChatMessage("user", prompts.render("tasks/behavior_start", replay=())),
    ]
    for turn in replay:
        own = turn["role"] == Role.USER
        text = join(None, turn["text"]) if own and thinking else turn["text"]
        messages.append(ChatMessage("assistant" if own else "user", text))
    return messages


async def play(
    jobs: Sequence[Job], stage: Stage, speaker: Speaker, model: Any, seed: int
) -> list[Played]:
    """Run one episode per job, all at once, so that replies are sampled in lock-step batches."""
    policy = token_model(model, speaker.tokenizer, name="policy:training")
    source = PolicySource(policy, speaker.policy, start=speaker.start)
    cast = Cast(agent=source, make_gym=stage.make, action_format=PLAIN)
    config = EngineConfig(seed=seed, run_id="training", concurrency=len(jobs), limits=LIMITS)
    summary = await run_episodes(jobs, cast, config)
    played = []
    for job, episode in zip(jobs, summary.episodes, strict=True):
        record = source.take(episode.id)
        problem: Problem = "empty"
        watched: dict[str, float] = {}
        if record is not None:
            problem = rollout_problem(
                record, policy.codec, thinking=speaker.thinking, tokens=speaker.count
            )
            raw = [
                policy.codec.decode(record.completion_ids[span.start : span.end])
                for span in record.spans
            ]
            said = own_messages(episode)
            watched = signs(job.task, raw, said, thinking=speaker.thinking)
        played.append(Played(job.task, episode, record, problem, watched))
    return played


def own_messages(episode: Episode) -> list[str]:
    """Return what the policy said; it sits in the agent's seat."""
    return [turn.content for turn in episode.turns if turn.role is Role.AGENT]


@contextmanager
def sampling(model: Any) -> Iterator[None]:
    """Put a model into the mode in which it is sampled from, and back."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


class TaskCollector:
    """Runs generation batches in tasks (see `train.grpo.Collector`); `close` it afterwards.

    All batches share one event loop, to which the connections of judges and partners belong.

    Args:
        stage: tasks with their judges and partners.
        tasks: the prompts of the run in order; a row names one by its place.
        speaker: the policy.
        seed: run seed of the rollouts.
        compat: count a judge's failure as a reward of 0, as the original does.

    Attributes:
        failed: status -> episodes of the last batch that are not counted.
    """

    def __init__(
        self,
        stage: Stage,
        tasks: Sequence[Task],
        speaker: Speaker,
        seed: int,
        *,
        compat: bool = False,
    ) -> None:
        self._stage = stage
        self._tasks = tasks
        self._speaker = speaker
        self._seed = seed
        self._compat = compat
        self.failed: Mapping[str, int] = {}
        self._loop = asyncio.Runner()

    def collect(self, rows: Sequence[Mapping[str, Any]], model: Any, batch: int) -> list[Sample]:
        """Run one episode per row with the current weights; failures become invalid samples."""
        places = [int(row["place"]) for row in rows]
        seed = derive(self._seed, "rollout", batch)
        jobs = self._jobs(places, seed)
        with sampling(model):
            played = self._loop.run(play(jobs, self._stage, self._speaker, model, seed))
        statuses = [one.episode.outcome.status for one in played]
        self.failed = Counter(status.value for status in statuses if not status.counted)
        return [
            as_sample(one, f"{batch}/{place}/{role(one.task)}", compat=self._compat)
            for place, one in zip(places, played, strict=True)
        ]

    def close(self) -> None:
        """Release judges and partners."""
        with self._loop:
            self._loop.run(self._stage.aclose())

    def _jobs(self, places: Sequence[int], seed: int) -> list[Job]:
        """Return one job a row; members of a group are trials of one task in one world."""
        trials: Counter[str] = Counter()
        jobs = []
        for place in places:
            task = self._tasks[place]
            jobs.append(Job(task, trials[task.id], derive(seed, "world", place)))
            trials[task.id] += 1
        return jobs


def role(task: Task) -> str:
    """Return whose lines the policy speaks; a group shares it."""
    return str(task.meta.get("policy", "user"))


def as_sample(played: Played, group: str, *, compat: bool = False) -> Sample:
    """Turn a rollout into a training sample: the reward is whole in its last message.

    A malformed message gates the reward whatever the judge said, or failed to say.
    """
    episode, record = played.episode, played.tokens
    status = episode.outcome.status
    judge_failed = status is Status.JUDGE_FAILURE
    gated = bool(played.problem) and (status.counted or judge_failed)
    valid = status.counted or (judge_failed and (gated or compat))
    earned = 0.0 if gated or not status.counted else (episode.outcome.reward or 0.0)
    replies = len(record.spans) if record is not None else 1
    metrics = {
        "gated": float(gated),
        "failed_judge": float(judge_failed),
        "failed_other": float(not status.counted and not judge_failed),
        f"{task_name(played.task)}/{FAILED}": float(not valid),
    }
    if status.counted:
        metrics |= _numbers(played, earned)
    return Sample(group, record, (*[0.0] * (replies - 1), earned), valid, metrics=metrics)


def _numbers(played: Played, earned: float) -> dict[str, float]:
    """Return what is averaged in the log: over all, and by task."""
    name = task_name(played.task)
    found = {
        "turns": float(len(played.episode.steps)),
        f"{name}/reward": earned,
    }
    found |= {f"{name}/{sign}": value for sign, value in played.signs.items()}
    graded = grading(played.episode)
    for check, value in graded.get("hacks", {}).items():
        found[f"{name}/hack_{check}"] = float(value)
    for key in LOGGED:
        value = graded.get(key)
        if isinstance(value, bool | int | float):
            found[f"{name}/{key}"] = float(value)
    return found


FAILED = "failed"
"""Entry of the curve, by task: share of the rollouts that judge or partner failed."""
LOGGED = (
    "exhibit",
    "cooperative",
    "placement",
    "naturalness",
    "on_task",
    "announced",
    "check",
)
"""Parts of a score that the curve shows."""


def grading(episode: Episode) -> Mapping[str, Any]:
    """Return the bookkeeping of the last step that was graded; empty = there was none."""
    graded = (episode.private or {}).get("grading") or [{}]
    found: Mapping[str, Any] = graded[-1]
    return found
