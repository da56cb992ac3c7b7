"""One gym, arms x users: the cells and comparisons that studies are made of.

Success and graded reward per cell with 95 % intervals clustered by task, invalid episodes beside
them, differences between arms paired by task, and the difficulty that each user makes for one fixed
agent. `bench.cells` plays whole matrices over gyms by the same `play`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mimesim import stats
from mimesim.config.ranges import COUNT, check_ranges
from mimesim.dialogue.episode import Episode
from mimesim.envs.actions import get_format
from mimesim.envs.base import AgentSource, GymEnv, Task
from mimesim.envs.load import load_tasks, make_gym
from mimesim.errors import CallerError
from mimesim.results import Difference, Estimate, MatrixRow
from mimesim.rollout.engine import Cast, EngineConfig, Job, run_episodes, wait
from mimesim.rollout.events import OnEvent
from mimesim.rollout.limits import Limits
from mimesim.rollout.record import task_ref
from mimesim.rollout.store import Plan, Store
from mimesim.users.base import User
from mimesim.users.load import make_user


@dataclass(frozen=True, slots=True)
class MatrixConfig:
    """What every cell shares, so that arms meet the same tasks and the same users.

    Attributes:
        tasks: number of test tasks.
        seed: of tasks, users and agents.
        concurrency: episodes at once; local policies sample them in one batch.
    """

    gym: str = "support-desk"
    profile: str = "compact"
    action_format: str = "line"
    tasks: int = 200
    seed: int = 0
    concurrency: int = 200
    limits: Limits = Limits(detect_loops=False, empty_retries=0)

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "tasks", "concurrency")


class Key(NamedTuple):
    """What makes two episodes of different arms a pair."""

    user: str
    task: str
    trial: int


@dataclass(frozen=True, slots=True)
class Cell:
    """Scores of one arm (one seed) under one user; not-counted episodes have no value."""

    arm: str
    seed: int
    user: str
    agent: str
    success: Mapping[Key, float]
    reward: Mapping[Key, float]
    ends: Mapping[str, int]
    invalid: int

    @property
    def total(self) -> int:
        """All episodes, counted or not."""
        return len(self.success) + self.invalid


def run_cell(
    arm: str,
    seed: int,
    user: str,
    agent: AgentSource,
    config: MatrixConfig,
    out: Path | None = None,
) -> Cell:
    """Run (or resume) the episodes of one cell and score them.

    Args:
        arm: label of the arm.
        seed: training seed of this checkpoint.
        user: door name of the evaluation user.
        agent: the agent; the caller closes it.
        config: tasks, seed and limits that all cells share.
        out: run folder of the cell; None keeps nothing on disk.
    """
    return wait(play_cell(arm, seed, user, agent, config, out))


async def play_cell(
    arm: str,
    seed: int,
    user: str,
    agent: AgentSource,
    config: MatrixConfig,
    out: Path | None = None,
) -> Cell:
    """Do what `run_cell` does, in the loop of the caller; the user is closed in the end.

    Args:
        arm: as `run_cell`.
        seed: as `run_cell`.
        user: as `run_cell`.
        agent: as `run_cell`.
        config: as `run_cell`.
        out: as `run_cell`.
    """
    tasks = load_tasks(
        config.gym, profile=config.profile, split="test", seed=config.seed, count=config.tasks
    )
    people = make_user(user)

    def gym_of(task: Task, person: User | None) -> GymEnv:
        if person is None:
            raise CallerError("the matrix needs a user")
        return make_gym(config.gym, profile=config.profile, user=person)

    engine = EngineConfig(
        seed=config.seed,
        run_id="matrix",
        concurrency=config.concurrency,
        limits=config.limits,
    )
    cast = Cast(agent, gym_of, get_format(config.action_format), people)
    identity = {
        "arm": arm,
        "seed": seed,
        "user": user,
        "agent": asdict(agent.identity),
        "matrix": asdict(config),
    }
    try:
        jobs = [Job(task) for task in tasks]
        episodes = await play(jobs, cast, engine, identity, out)
    finally:
        await people.aclose()
    return score_cell(arm, seed, user, agent.identity.name, episodes)


async def play(
    jobs: Sequence[Job],
    cast: Cast,
    engine: EngineConfig,
    identity: Mapping[str, Any],
    out: Path | None,
    on_event: OnEvent | None = None,
) -> Sequence[Episode]:
    """Run (or resume) the episodes of one cell of any matrix.

    Args:
        jobs: what to play.
        cast: who takes part; the caller closes them.
        engine: seed, concurrency, limits.
        identity: all that decides the results of the cell; a folder of another cell is refused.
        out: run folder of the cell; None keeps nothing on disk.
        on_event: told what happens; what it raises ends the cell.
    """
    if out is None:
        return (await run_episodes(jobs, cast, engine, on_event=on_event)).episodes
    store = Store.open(out, plan_of(jobs, identity))
    try:
        summary = await run_episodes(jobs, cast, engine, store=store, on_event=on_event)
    finally:
        store.close()
    return summary.episodes


def plan_of(jobs: Sequence[Job], identity: Mapping[str, Any]) -> Plan:
    """Return what the run folder of a cell says it is."""
    return Plan(
        identity=identity,
        config=identity["matrix"],
        tasks={job.task.id: task_ref(job.task).hash for job in jobs},
        pairs=tuple((job.task.id, job.trial) for job in jobs),
    )


def score_cell(arm: str, seed: int, user: str, agent: str, episodes: Sequence[Episode]) -> Cell:
    """Score the episodes of one cell; failures are counted apart, never as 0."""
    counted = [e for e in episodes if e.outcome.status.counted]
    keys = [Key(user, e.task.id, e.trial) for e in counted]
    return Cell(
        arm,
        seed,
        user,
        agent,
        {k: float(bool(e.outcome.success)) for k, e in zip(keys, counted, strict=True)},
        {k: float(e.outcome.reward or 0.0) for k, e in zip(keys, counted, strict=True)},
        Counter(e.stop.reason.value for e in counted),
        len(episodes) - len(counted),
    )


@dataclass(frozen=True, slots=True)
class Matrix:
    """All cells, and what is read off them."""

    cells: tuple[Cell, ...] = field(default_factory=tuple)
    gym: str = "support-desk"
    profile: str = "compact"

    def rows(self, users: Sequence[str]) -> list[MatrixRow]:
        """Return one row per arm and user, seeds of an arm together."""
        found = []
        for arm in self.arms():
            for user in users:
                cells = [c for c in self.cells if c.arm == arm and c.user == user]
                if cells:
                    found.append(self._row(arm, user, cells))
        return found

    def averages(self, users: Sequence[str], label: str) -> list[MatrixRow]:
        """Return one row per arm: the mean over `users`, clustered by task."""
        found = []
        for arm in self.arms():
            cells = [c for c in self.cells if c.arm == arm and c.user in users]
            if cells:
                found.append(self._row(arm, label, cells))
        return found

    def arms(self) -> list[str]:
        """Return the arms in order of appearance."""
        return list(dict.fromkeys(c.arm for c in self.cells))

    def seeds(self, arm: str) -> list[int]:
        """Return the training seeds of an arm."""
        return list(dict.fromkeys(c.seed for c in self.cells if c.arm == arm))

    def outcomes(self, arm: str, seed: int, users: Sequence[str]) -> dict[Key, float]:
        """Return success by key for one checkpoint under `users`."""
        merged: dict[Key, float] = {}
        for cell in self.cells:
            if cell.arm == arm and cell.seed == seed and cell.user in users:
                merged |= cell.success
        return merged

    def _row(self, arm: str, user: str, cells: Sequence[Cell]) -> MatrixRow:
        success = [(key.task, v) for c in cells for key, v in c.success.items()]
        reward = [(key.task, v) for c in cells for key, v in c.reward.items()]
        ends: Counter[str] = Counter()
        for cell in cells:
            ends.update(cell.ends)
        total = sum(c.total for c in cells)
        return MatrixRow(
            arm=arm,
            user=user,
            success=_clustered(success),
            agent=cells[0].agent,
            gym=self.gym,
            profile=self.profile,
            n=len(success),
            seeds=tuple(dict.fromkeys(c.seed for c in cells)),
            reward=_clustered(reward),
            success_strict=sum(v for _, v in success) / total if total else None,
            invalid_rate=sum(c.invalid for c in cells) / total if total else 0.0,
            ends={k: v / len(success) for k, v in sorted(ends.items())} if success else {},
        )


def _clustered(values: Sequence[tuple[str, float]]) -> Estimate:
    return Estimate.of(stats.mean_ci([v for _, v in values], [task for task, _ in values]))


def difference(
    matrix: Matrix, arm: str, baseline: str, users: Sequence[str], *, headline: bool = False
) -> Difference:
    """Return `arm - baseline` in success over `users`, paired by user and task.

    Several seeds are averaged per pair first, so the interval is over tasks, for these
    checkpoints; `hierarchical` also resamples the seeds.
    """
    a = _averaged(matrix, arm, users)
    b = _averaged(matrix, baseline, users)
    interval = stats.paired_difference(_free(a), _free(b), {key: key.task for key in a})
    return Difference(
        arm, baseline, Estimate.of(interval), headline=headline, note="interval over tasks"
    )


def _free(values: Mapping[Key, float]) -> dict[Hashable, float]:
    """Return the values under keys of any kind, as `stats` takes them."""
    return {key: value for key, value in values.items()}  # noqa: C416 - the key type widens


def _averaged(matrix: Matrix, arm: str, users: Sequence[str]) -> dict[Key, float]:
    by_key: dict[Key, list[float]] = {}
    for seed in matrix.seeds(arm):
        for key, value in matrix.outcomes(arm, seed, users).items():
            by_key.setdefault(key, []).append(value)
    return {key: sum(values) / len(values) for key, values in by_key.items()}


class SeedPair(NamedTuple):
    """Two checkpoints that differ in the arm only: warm-start seed and RL seed are equal."""

    sft: int
    rl: int
    arm_seed: int
    baseline_seed: int


def hierarchical(
    matrix: Matrix,
    arm: str,
    baseline: str,
    pairs: Sequence[SeedPair],
    users: Sequence[str],
    *,
    headline: bool = False,
) -> Difference:
    """Return the paired difference with warm-start seeds, RL seeds and tasks resampled."""
    runs = []
    for pair in pairs:
        a = matrix.outcomes(arm, pair.arm_seed, users)
        b = matrix.outcomes(baseline, pair.baseline_seed, users)
        clusters: dict[Hashable, Hashable] = {key: key.task for key in a}
        runs.append(stats.PairedRun(pair.sft, pair.rl, _free(a), _free(b), clusters))
    result = stats.hierarchical_paired(runs)
    per_seed = {
        f"SFT {s.outer}, RL {s.inner}": s.value for s in result.per_seed if s.value is not None
    }
    return Difference(
        arm,
        baseline,
        Estimate.of(result.interval),
        headline=headline,
        per_seed=per_seed,
        note="interval over warm-start seeds, RL seeds and tasks",
    )
