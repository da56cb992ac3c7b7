"""Scoring a user model on held-out rows, before and after training, by judges it was not trained on.

Every task is reported apart, and inside the behavior task every behavior and the ordinary
customers. Nothing is gated here: form is counted. What judge or partner failed is left out of the
means and counted. Intervals are bootstraps over rows.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mimesim import jsonio, stats
from mimesim.config.ranges import COUNT, NATURAL, check_ranges
from mimesim.dialogue.stop import Status
from mimesim.envs.base import Task
from mimesim.rollout.engine import Job
from mimesim.seeds import derive
from mimesim.train.user_rollouts import FAILED, Played, Speaker, grading, play, sampling
from mimesim.train.user_tasks import BEHAVIOR_TASK, NEUTRAL, Stage, task_name


@dataclass(frozen=True, slots=True)
class MeasureConfig:
    """How a user model is scored.

    Attributes:
        rows: held-out rows of each task; 0 = not scored.
        trials: rollouts of a row, each with a seed of its own.
        temperature: 1 samples as in training, 0 is greedy.
        at_once: rollouts of a batch.
        seed: of rows, samples and partners; not the seed of the training.
    """

    rows: int = 90
    trials: int = 1
    temperature: float = 1.0
    at_once: int = 48
    seed: int = 1000

    def __post_init__(self) -> None:
        """Refuse numbers that make no score.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, NATURAL, "rows", "temperature")
        check_ranges(self, COUNT, "trials", "at_once")


@dataclass(frozen=True, slots=True)
class Scored:
    """What is kept of one rollout.

    Attributes:
        row: id of its task line; trial: which rollout of it.
        part: behavior id, `neutral`, or "" where there are no such parts.
        numbers: reward, sub-scores and signs; empty when it is not counted.
        failed: judge, other, or "".
    """

    task: str
    row: str
    trial: int
    part: str
    numbers: Mapping[str, float]
    failed: str = ""

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Scored:
        """Read the JSON form."""
        return cls(**value)


def measure(
    model: Any, tasks: Sequence[Task], stage: Stage, speaker: Speaker, cfg: MeasureConfig, log: Path
) -> list[Scored]:
    """Play every row `cfg.trials` times; the conversations are written to `log`.

    Args:
        model: the weights.
        tasks: held-out rows.
        stage: with the held-out judges; it is closed.
        speaker: the policy, its temperature already set.
        cfg: seeds and sizes.
        log: JSON lines of episodes.
    """
    jobs = [
        Job(task, trial, derive(cfg.seed, "world", task.id, trial))
        for trial in range(cfg.trials)
        for task in tasks
    ]
    scored: list[Scored] = []
    log.unlink(missing_ok=True)
    with asyncio.Runner() as loop, jsonio.Appender(log) as out, sampling(model):
        for start in range(0, len(jobs), cfg.at_once):
            some = jobs[start : start + cfg.at_once]
            for job, one in zip(
                some, loop.run(play(some, stage, speaker, model, cfg.seed)), strict=True
            ):
                scored.append(_scored(one, job.trial))
                out.append(one.episode.to_json())
        loop.run(stage.aclose())
    return scored


def _scored(played: Played, trial: int) -> Scored:
    task, episode = played.task, played.episode
    status = episode.outcome.status
    failed = ""
    if not status.counted:
        failed = "judge" if status is Status.JUDGE_FAILURE else "other"
    return Scored(
        task_name(task),
        task.id,
        trial,
        part_of(task),
        {} if failed else _numbers(played),
        failed,
    )


def part_of(task: Task) -> str:
    """Return the behavior of a row, `neutral` for an ordinary customer, "" for other tasks."""
    if task_name(task) != BEHAVIOR_TASK:
        return ""
    return str(task.public.get("behavior") or NEUTRAL)


_NOT_NUMBERS = ("step", "score", "judge_failed", "thought_cites_directive")


def _numbers(played: Played) -> dict[str, float]:
    graded = grading(played.episode)
    said = played.said
    found = {
        "reward": float(played.episode.outcome.reward or 0.0),
        "turns": float(len(said)),
        "words_per_turn": sum(len(stats.words(text)) for text in said) / max(1, len(said)),
        "format_correct": float(not played.problem),
        **played.signs,
        **{f"hack_{name}": float(value) for name, value in graded.get("hacks", {}).items()},
    }
    for key, value in graded.items():
        if isinstance(value, bool | int | float) and key not in _NOT_NUMBERS:
            found.setdefault(key, float(value))
    return found


def summary(
    scored: Sequence[Scored], cfg: MeasureConfig, judges: Mapping[str, str]
) -> dict[str, Any]:
    """Return what was measured as JSON values: by task, and inside it by part.

    Args:
        scored: rollouts of one model.
        cfg: how they were made.
        judges: task -> who judged.
    """
    by_task: dict[str, list[Scored]] = defaultdict(list)
    for one in scored:
        by_task[one.task].append(one)
    return {
        name: {
            "judge": judges.get(name, ""),
            "rows": len({one.row for one in some}),
            "rollouts": len(some),
            "trials": cfg.trials,
            "temperature": cfg.temperature,
            "seed": cfg.seed,
            "failed": dict(Counter(one.failed for one in some if one.failed)),
            "numbers": _means(some),
            "parts": {
                part: _means(members)
                for part, members in sorted(_by_part(some).items(), key=lambda item: _rank(item[0]))
            },
        }
        for name, some in by_task.items()
    }


def without_a_score(curve: Sequence[Mapping[str, float]], after: Sequence[Scored]) -> list[str]:
    """Return the tasks of which every rollout failed, in training or afterwards."""
    shares: dict[str, list[float]] = defaultdict(list)
    for row in curve:
        for key, value in row.items():
            name, _, what = key.removeprefix("episode/").rpartition("/")
            if what == FAILED and name:
                shares[name].append(value)
    lost: dict[str, list[float]] = defaultdict(list)
    for one in after:
        lost[one.task].append(float(bool(one.failed)))
    return sorted({name for some in (shares, lost) for name, own in some.items() if min(own) == 1})


def difference(before: Sequence[Scored], after: Sequence[Scored]) -> dict[str, Any]:
    """Return after minus before, paired by rollout, clustered by row, with intervals.

    For the behavior task apart: rows with a behavior, and ordinary customers.
    """
    groups = {}
    for name in dict.fromkeys(one.task for one in after):
        ours = [one for one in after if one.task == name]
        parts = {one.part for one in ours} - {""}
        if not parts:
            groups[name] = _paired([x for x in before if x.task == name], ours, ("reward",))
            continue
        for label, wanted in (
            ("behaving", parts - {NEUTRAL}),
            (NEUTRAL, parts & {NEUTRAL}),
        ):
            keys = ("reward", "cooperative") if label == NEUTRAL else ("reward", "exhibit")
            groups[f"{name}/{label}"] = _paired(
                [x for x in before if x.task == name and x.part in wanted],
                [x for x in ours if x.part in wanted],
                keys,
            )
    return groups


def _paired(
    before: Sequence[Scored], after: Sequence[Scored], keys: Sequence[str]
) -> dict[str, Any]:
    clusters: dict[Hashable, Hashable] = {(x.row, x.trial): x.row for x in [*before, *after]}
    found = {}
    for key in keys:
        first, last = (_by_rollout(some, key) for some in (before, after))
        found[key] = as_json(stats.paired_difference(last, first, clusters))
    return found


def _by_rollout(scored: Sequence[Scored], key: str) -> dict[Hashable, float]:
    return {(x.row, x.trial): x.numbers[key] for x in scored if key in x.numbers}


def as_json(interval: stats.Interval) -> dict[str, Any]:
    """Return an interval as JSON values."""
    return {
        "value": interval.value,
        "ci95": [interval.low, interval.high],
        "n": interval.n,
        "method": interval.method,
    }


def dump(scored: Sequence[Scored]) -> list[dict[str, Any]]:
    """Return rollouts as JSON values that `Scored.read` reads."""
    return [asdict(one) for one in scored]


def _by_part(scored: Sequence[Scored]) -> dict[str, list[Scored]]:
    parts: dict[str, list[Scored]] = defaultdict(list)
    for one in scored:
        if one.part:
            parts[one.part].append(one)
            if one.part != NEUTRAL:
                parts["behaving"].append(one)
    return parts


def _rank(part: str) -> tuple[int, int, str]:
    """Order: all behaviors together, ordinary customers, then B1 to B13."""
    number = part.removeprefix("B")
    first = ("behaving", NEUTRAL).index(part) if part in ("behaving", NEUTRAL) else 2
    return first, int(number) if number.isdigit() else 0, part


def _means(scored: Sequence[Scored]) -> dict[str, Any]:
    keys = list(dict.fromkeys(key for one in scored for key in one.numbers))
    return {
        key: as_json(
            stats.mean_ci(
                [one.numbers[key] for one in scored if key in one.numbers],
                [one.row for one in scored if key in one.numbers],
            )
        )
        for key in keys
    }
