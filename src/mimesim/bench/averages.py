"""Scores of gyms and the averages over them, as pure functions.

An episode is worth the sum of its rewards; one of `travel` what its best answer to each aspect is
worth, divided by the number of aspects. A gym is worth the mean over the rollouts of a task, then
over tasks. The averages over gyms weigh them by how many test tasks the published tables have, so
that numbers can be laid beside those. Episodes that are not counted stay out of the headline and
count 0 in the strict score; both are always told.
Paper: UserRL and MIMESIS ("Avg." is `weighted`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import Party, Status, StopReason
from mimesim.envs.gyms.travel.score import travel_score
from mimesim.results import Counting, Floor

WEIGHTS: Mapping[str, int] = {
    "travel": 471,
    "turtle": 48,
    "function": 78,
    "tau": 165,
    "persuade": 42,
    "intention": 40,
    "telepathy": 41,
    "search": 125,
}
"""Test tasks of each gym in the published tables."""
HELD_OUT = ("intention", "telepathy", "search")
"""Gyms that UserRL did not train on."""
USERLESS = ("function", "search")
"""Gyms in which nobody is talked to."""
AVERAGES: Mapping[str, tuple[str, ...]] = {
    "weighted": tuple(WEIGHTS),
    "unweighted": tuple(WEIGHTS),
    "without_intention": tuple(gym for gym in WEIGHTS if gym != "intention"),
    "user_gyms": tuple(gym for gym in WEIGHTS if gym not in USERLESS),
    "held_in": tuple(gym for gym in WEIGHTS if gym not in HELD_OUT),
    "held_out": HELD_OUT,
}
"""Name of an average -> its gyms. All but `unweighted` weigh by `WEIGHTS`."""
MOST_INVALID = 0.02
"""Share of episodes that are not counted above which a gym's score is not reportable."""

_FAULTS = {
    Status.USER_FAILURE: "user",
    Status.JUDGE_FAILURE: "judge",
    Status.ENV_FAILURE: "env",
    Status.INFRA_FAILURE: "infra",
}
_EARLY_STOP = "early_stop"  # the guard that tells of a user who left before anything was done


# ------------------------------------------------------------------------------------- episodes


@dataclass(frozen=True, slots=True)
class Played:
    """One episode as the averages see it.

    Attributes:
        score: None = the episode is not counted.
        success: None = not counted.
        fault: whose fault an episode is that went wrong: agent, user, judge, env or infra.
        truncated: a limit ended it.
        early_stop: the user left before what it asked for could be done.
        stop: why it ended.
    """

    task: str
    score: float | None
    success: bool | None = None
    fault: str = ""
    truncated: bool = False
    early_stop: bool = False
    stop: str = ""


def played(episode: Episode, *, aspects: int = 0, compat: bool = False) -> Played:
    """Return what an episode is worth.

    Args:
        episode: of any gym.
        aspects: how many aspects its task has (`travel` only).
        compat: score as the published evaluator does.
    """
    status = episode.outcome.status
    return Played(
        task=episode.task.id,
        score=_score(episode, aspects, compat=compat) if status.counted else None,
        success=bool(episode.outcome.success) if status.counted else None,
        fault=_FAULTS.get(status, "agent" if _agent_at_fault(episode) else ""),
        truncated=status is Status.TRUNCATED,
        early_stop=any(event.get("guard") == _EARLY_STOP for event in episode.guards),
        stop=episode.stop.reason.value,
    )


def normalized(score: float, attainable: float) -> float:
    """Return a score as the share of what could be had on its task (`intention` exceeds 1)."""
    return score / attainable


def _score(episode: Episode, aspects: int, *, compat: bool) -> float:
    if episode.task.gym == "travel" and aspects:
        turns = [(step.choice, step.content, step.reward) for step in episode.steps]
        return travel_score(turns, aspects, compat=compat)
    return math.fsum(step.reward for step in episode.steps)


def _agent_at_fault(episode: Episode) -> bool:
    reason, by = episode.stop.reason, episode.stop.by
    own = (StopReason.AGENT_INVALID, StopReason.AGENT_ERROR)
    return reason in own or (reason is StopReason.CONTEXT_EXCEEDED and by is Party.AGENT)


# ----------------------------------------------------------------------------------------- gyms


def task_scores(episodes: Iterable[Played]) -> dict[str, float]:
    """Return the mean over the counted rollouts of each task; tasks without one are left out."""
    scores: dict[str, list[float]] = {}
    for one in episodes:
        if one.score is not None:
            scores.setdefault(one.task, []).append(one.score)
    return {task: math.fsum(values) / len(values) for task, values in scores.items()}


def counting(episodes: Sequence[Played]) -> Counting:
    """Return both scores with their denominators, and whose fault the rest is."""
    total = len(episodes)
    scores = [one.score for one in episodes if one.score is not None]
    invalid = total - len(scores)
    return Counting(
        episodes=total,
        counted=len(scores),
        valid=math.fsum(scores) / len(scores) if scores else None,
        strict=math.fsum(scores) / total if total else None,
        invalid_rate=invalid / total if total else 0.0,
        faults={
            fault: sum(one.fault == fault for one in episodes) / total if total else 0.0
            for fault in ("agent", *_FAULTS.values())
        },
        truncated=sum(one.truncated for one in episodes) / total if total else 0.0,
        early_stop=sum(one.early_stop for one in episodes) / total if total else 0.0,
        reportable=total > 0 and invalid / total <= MOST_INVALID,
    )


def successes(episodes: Iterable[Played]) -> list[tuple[int, int]]:
    """Return (successes, counted rollouts) of each task, as `stats.pass_k` takes them."""
    found: dict[str, tuple[int, int]] = {}
    for one in episodes:
        won, tried = found.get(one.task, (0, 0))
        counted = one.success is not None
        found[one.task] = (won + bool(one.success), tried + counted)
    return list(found.values())


# --------------------------------------------------------------------------------------- floors


def above_floor(scores: Mapping[str, float], null: Mapping[str, float]) -> Floor | None:
    """Return the score over tasks that doing nothing does not win; None without a common task.

    Args:
        scores: score by task.
        null: score of the null agent by task.
    """
    common = [task for task in scores if task in null]
    if not common:
        return None
    rest = [scores[task] for task in common if null[task] <= 0]
    return Floor(
        null=math.fsum(null[task] for task in common) / len(common),
        corrected=math.fsum(rest) / len(rest) if rest else None,
        tasks=len(rest),
    )


# ------------------------------------------------------------------------------------- averages


@dataclass(frozen=True, slots=True)
class Average:
    """One average over gyms. `missing` names gyms it should hold and does not; None = none of them."""

    value: float | None
    missing: tuple[str, ...] = ()


def averages(scores: Mapping[str, float | None]) -> dict[str, Average]:
    """Return every average of `AVERAGES`; other gyms are not in them.

    Args:
        scores: score by gym; a gym that is left out or None is missing, the rest is weighed anew.
    """
    return {name: _average(scores, gyms, name) for name, gyms in AVERAGES.items()}


def weight(gym: str, name: str) -> float:
    """Return the weight of a gym in the average `name`; 0 = it is not in it."""
    if gym not in AVERAGES[name]:
        return 0.0
    return 1.0 if name == "unweighted" else float(WEIGHTS[gym])


def _average(scores: Mapping[str, float | None], gyms: Sequence[str], name: str) -> Average:
    known = {gym: value for gym in gyms if (value := scores.get(gym)) is not None}
    missing = tuple(gym for gym in gyms if gym not in known)
    if not known:
        return Average(None, missing)
    total = math.fsum(weight(gym, name) for gym in known)
    summed = math.fsum(weight(gym, name) * value for gym, value in known.items())
    return Average(summed / total, missing)
