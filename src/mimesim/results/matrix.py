"""Rows of the evaluation matrix, averages over gyms, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mimesim.results.values import UNKNOWN, Estimate


@dataclass(frozen=True, slots=True)
class Counting:
    """What became of the episodes of a cell, and both scores with their denominators.

    Attributes:
        episodes: all of them. counted: those that are data.
        valid: mean score of the counted. strict: the same over all, the others as 0.
        faults: share of all episodes that went wrong, by fault: agent (counted), user, judge, env
            and infra (not counted).
        truncated: share that a limit ended. early_stop: share that the user left too early.
        reportable: False where too many episodes are not counted for the score to mean anything.
    """

    episodes: int
    counted: int
    valid: float | None
    strict: float | None
    invalid_rate: float = 0.0
    faults: Mapping[str, float] = field(default_factory=dict)
    truncated: float = 0.0
    early_stop: float = 0.0
    reportable: bool = True


@dataclass(frozen=True, slots=True)
class Floor:
    """A score beside what an agent earns that does nothing.

    Attributes:
        null: mean of the null agent over all tasks.
        corrected: mean score over the tasks on which the null agent earns nothing.
        tasks: how many those are.
    """

    null: float
    corrected: float | None
    tasks: int


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One cell of the matrix: an arm against a user.

    Attributes:
        arm: training arm, the row label. agent: door name of the agent.
        user: column label. n: counted episodes.
        success, reward: over counted episodes. success_strict: over all, failures as misses.
        invalid_rate: share of episodes that are not counted.
        ends: share of each stop reason among the counted.
        note: short remark shown with the cell.
        counting, floor, pass_k: of a gym's score (`reward`): what lies behind it, what doing
            nothing earns, and the share of tasks of which k rollouts out of k succeed.
        of_attainable: the score as a share of what could be had.
        settings: what a number cannot be compared without, e.g. {"max_steps": 16}.
    """

    arm: str
    user: str
    success: Estimate
    agent: str = ""
    judge: str = "rule"
    gym: str = ""
    profile: str = ""
    n: int = 0
    seeds: tuple[int, ...] = ()
    reward: Estimate = UNKNOWN
    success_strict: float | None = None
    invalid_rate: float = 0.0
    ends: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    counting: Counting | None = None
    floor: Floor | None = None
    pass_k: Mapping[str, float | None] = field(default_factory=dict)
    of_attainable: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def brief(self) -> dict[str, Any]:
        """Return the row of `eval agents --json`."""
        more: dict[str, Any] = {}
        if self.counting is not None:
            more = {
                "counting": asdict(self.counting),
                "floor": None if self.floor is None else asdict(self.floor),
                "pass_k": dict(self.pass_k),
                "of_attainable": self.of_attainable,
                "settings": dict(self.settings),
            }
        return {
            "arm": self.arm,
            "agent": self.agent,
            "user": self.user,
            "judge": self.judge,
            "gym": self.gym,
            "profile": self.profile,
            "n": self.n,
            "seeds": list(self.seeds),
            "reward": self.reward.brief(),
            "success": self.success.brief(),
            "success_strict": self.success_strict,
            "invalid_rate": self.invalid_rate,
            **more,
        }


@dataclass(frozen=True, slots=True)
class GymAverages:
    """The averages of one agent over gyms, under one user and one judge.

    Attributes:
        weighted: by the task counts of the published tables. unweighted: plain mean.
        weighted_strict: weighted, with episodes that are not counted as 0.
        without_intention, user_gyms, held_in, held_out: weighted, over those gyms only.
        gyms: score by gym, the gyms outside the averages too.
        search: where the gym `search` looks things up; without (`offline`), it is another task.
        missing: gyms of the average that were not played; with any, all this is partial.
        not_reportable: gyms with too many episodes that are not counted.
        users: whom the numbers are the mean over; empty = `user` alone.
        seeds: training seeds of the arm. per_seed: the weighted average of each.
        over_seeds: their mean, its interval by Student's t over the seeds.
        judge_mode: rule, fixed (one model for all users) or self (each user's own model).
        n: counted episodes. episodes: all of them. tasks: different ones.
        incomplete: gyms in which a user or a seed is missing that others have.
    """

    arm: str
    agent: str
    user: str
    judge: str
    weighted: Estimate
    unweighted: Estimate
    weighted_strict: float | None = None
    without_intention: float | None = None
    user_gyms: float | None = None
    held_in: float | None = None
    held_out: float | None = None
    gyms: Mapping[str, float | None] = field(default_factory=dict)
    search: str = ""
    missing: tuple[str, ...] = ()
    not_reportable: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    per_seed: Mapping[str, float] = field(default_factory=dict)
    over_seeds: Estimate = UNKNOWN
    judge_mode: str = ""
    n: int = 0
    episodes: int = 0
    tasks: int = 0
    incomplete: tuple[str, ...] = ()

    @property
    def invalid_rate(self) -> float:
        """Share of episodes that are not counted."""
        return (self.episodes - self.n) / self.episodes if self.episodes else 0.0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What forbids laying the numbers beside published ones."""
        found = []
        if self.missing:
            found.append("partial: without " + ", ".join(self.missing))
        if self.not_reportable:
            found.append("not reportable: " + ", ".join(self.not_reportable))
        if self.incomplete:
            found.append("cells are missing: " + ", ".join(self.incomplete))
        return tuple(found)

    @property
    def label(self) -> str:
        """What must stand beside the numbers: whose they are, and what forbids comparing them."""
        search = [f"search={self.search}"] if self.search else []
        return "; ".join([f"user={self.user}", f"judge={self.judge}", *search, *self.warnings])

    def brief(self) -> dict[str, Any]:
        """Return the averages of `eval agents --json`."""
        return {
            "arm": self.arm,
            "agent": self.agent,
            "user": self.user,
            "judge": self.judge,
            "weighted": self.weighted.value,
            "weighted_ci95": self.weighted.brief()["ci95"],
            "weighted_strict": self.weighted_strict,
            "unweighted": self.unweighted.value,
            "unweighted_ci95": self.unweighted.brief()["ci95"],
            "without_intention": self.without_intention,
            "user_gyms": self.user_gyms,
            "held_in": self.held_in,
            "held_out": self.held_out,
            "gyms": dict(self.gyms),
            "search": self.search,
            "partial": bool(self.missing),
            "missing": list(self.missing),
            "not_reportable": list(self.not_reportable),
            "incomplete": list(self.incomplete),
            "users": list(self.users or (self.user,)),
            "seeds": list(self.seeds),
            "per_seed": dict(self.per_seed),
            "over_seeds": self.over_seeds.brief(),
            "judge_mode": self.judge_mode,
            "n": self.n,
            "episodes": self.episodes,
            "tasks": self.tasks,
            "invalid_rate": self.invalid_rate,
            "label": self.label,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired comparison `arm - baseline` on the same tasks.

    Attributes:
        value: in fractions; shown as percentage points.
        headline: drawn strongly; the claims of the run.
        per_seed: the value under each seed, e.g. {"SFT 0, RL 1": 0.21}.
        over_seeds: the mean over training seeds that both arms have, interval by Student's t.
        p: two-sided p value by flipped signs of tasks. p_holm: corrected for its family.
        per_user: the value under each user; they share checkpoints and tasks.
    """

    arm: str
    baseline: str
    value: Estimate
    measure: str = "held-out success"
    headline: bool = False
    per_seed: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    over_seeds: Estimate = UNKNOWN
    p: float | None = None
    p_holm: float | None = None
    per_user: Mapping[str, float] = field(default_factory=dict)

    def brief(self) -> dict[str, Any]:
        """Return the comparison of `eval agents --json`."""
        return {
            "arm": self.arm,
            "baseline": self.baseline,
            "measure": self.measure,
            **self.value.brief(),
            "over_seeds": self.over_seeds.brief(),
            "p": self.p,
            "p_holm": self.p_holm,
            "per_seed": dict(self.per_seed),
            "per_user": dict(self.per_user),
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Reference:
    """A row of a published table, to stand beside a new run; numbers as printed there.

    Attributes:
        arm: its name there, in short. scale: what a fraction was multiplied with.
        users: weighted average by evaluation user, as far as published.
        gyms: score by gym, mean over the evaluation users.
        protocol: what the numbers cannot be compared without: judge, search, tasks, users.
        tags: part -> published, derived or inferred.
    """

    arm: str
    source: str
    weighted: float | None = None
    unweighted: float | None = None
    users: Mapping[str, float] = field(default_factory=dict)
    gyms: Mapping[str, float] = field(default_factory=dict)
    scale: float = 100.0
    protocol: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LostCell:
    """A cell of the matrix that could not be finished; what it has is on disk."""

    arm: str
    seed: int
    user: str
    gym: str
    reason: str
