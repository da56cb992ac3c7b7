"""A whole matrix from a configuration: named arms, named users, one gym."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimesim.bench.agents import Cell, Matrix, MatrixConfig, difference, play_cell
from mimesim.config.ranges import COUNT, check_ranges
from mimesim.envs.agents.load import make_agent
from mimesim.envs.base import AgentSource
from mimesim.errors import ConfigError
from mimesim.models.load import preflight
from mimesim.results import Difference, MatrixRow, RunRecord
from mimesim.rollout.engine import wait
from mimesim.users.load import make_user

USERS = tuple(f"scripted:heldout-{n}" for n in range(1, 8))
"""The evaluation users of the compact desk."""


ALL = "all"
"""What `gyms.names` calls every gym there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GymsConfig:
    """Several gyms instead of the one of `matrix`, whose tasks, seed, concurrency and limits hold.

    Attributes:
        names: gyms, or `all`; empty = the matrix of one gym.
        trials: how often each task is played; pass^k is told for k up to it.
        judge: door name, for the gyms that need one.
        options: gym -> its settings, e.g. {search = {mode = "static"}}.
        compat: play and score as the originals: userrl or mimesis; "" = repaired.
        tasks: gym -> task file whose test tasks are all played, e.g. of `gyms import`.
    """

    names: tuple[str, ...] = ()
    action_format: str = "tool-call"
    trials: int = 1
    judge: str = "rule"
    judge_options: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    compat: str = ""
    tasks: Mapping[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "trials")
        if len(set(self.names)) < len(self.names):
            raise ConfigError("'gyms.names' names one twice", expected="every gym once")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """What `mimesim eval agents` runs.

    Attributes:
        arms: label -> door name of an agent.
        users: door names; averages are over all of them.
        baseline: arm that the others are compared with; "" = the first.
        out: folder of episodes and record; a second run goes on there.
        agent_options: settings given to every agent, e.g. {temperature = 0.0}.
        gyms: the matrix over several gyms.
    """

    arms: Mapping[str, str] = field(default_factory=dict)
    users: tuple[str, ...] = USERS
    baseline: str = ""
    matrix: MatrixConfig = field(default_factory=MatrixConfig)
    out: Path = Path("out/eval")
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    gyms: GymsConfig = field(default_factory=GymsConfig)

    def __post_init__(self) -> None:
        """Refuse a matrix without rows.

        Raises:
            ConfigError: naming the key.
        """
        if not self.arms:
            raise ConfigError(
                "'arms' is empty",
                expected="at least one label = agent",
                mend="e.g. --arm mine=policy:out/agent/policy",
            )
        if not self.users:
            raise ConfigError("'users' is empty", expected="at least one user")
        if len(set(self.users)) < len(self.users):
            raise ConfigError("'users' names one twice", expected="every user once")
        if self.baseline and self.baseline not in self.arms:
            raise ConfigError(
                f"'baseline' {self.baseline!r} is no arm", expected=f"one of {sorted(self.arms)}"
            )


def evaluate(
    config: EvaluationConfig, on_cell: Callable[[str, int, int], None] | None = None
) -> RunRecord:
    """Run (or go on with) the matrix and return its record.

    Raises:
        UsageError: an unknown agent or user, or a folder that belongs to another matrix.
        EnvironmentFault: an endpoint is not fit.
    """
    record = wait(_evaluate(config, on_cell))
    record.write(config.out / "record.json")
    return record


async def _evaluate(
    config: EvaluationConfig, on_cell: Callable[[str, int, int], None] | None
) -> RunRecord:
    cells: list[Cell] = []
    total = len(config.arms) * len(config.users)
    async with AsyncExitStack() as stack:
        agents = {}
        for arm, name in config.arms.items():
            agents[arm] = make_agent(
                name,
                action_format=config.matrix.action_format,
                options=dict(config.agent_options) or None,
            )
            stack.push_async_callback(agents[arm].aclose)
        await _check(agents.values(), config.users)
        for arm, agent in agents.items():
            for user in config.users:
                if on_cell is not None:
                    on_cell(f"{arm} under {user}", len(cells), total)
                folder = config.out / "cells" / f"{slug(arm)}-{slug(user)}"
                seed = config.matrix.seed
                cells.append(await play_cell(arm, seed, user, agent, config.matrix, folder))
    return _record(config, Matrix(tuple(cells), config.matrix.gym, config.matrix.profile))


async def _check(agents: Iterable[AgentSource], users: Iterable[str]) -> None:
    """Find mistyped names and endpoints that do not answer before the first hour, not after it."""
    people = [make_user(name) for name in users]
    try:
        for party in (*agents, *people):
            await preflight(party)
    finally:
        for person in people:
            await person.aclose()


def _record(config: EvaluationConfig, matrix: Matrix) -> RunRecord:
    averages = matrix.averages(config.users, "all users (mean)")
    baseline = config.baseline or next(iter(config.arms))
    differences = tuple(
        difference(matrix, arm, baseline, config.users, headline=True)
        for arm in config.arms
        if arm != baseline
    )
    return RunRecord(
        title="Agents under users",
        verdict=_verdict(averages, differences),
        kind="eval",
        rows=tuple(matrix.rows(config.users)),
        averages=tuple(averages),
        differences=differences,
        seeds={"evaluation": (config.matrix.seed,)},
    )


def _verdict(averages: list[MatrixRow], differences: tuple[Difference, ...]) -> str:
    resolved = [d for d in differences if d.value.resolved]
    if differences:
        return f"{len(resolved)} of {len(differences)} differences exclude 0."
    return f"One arm, {averages[0].n} counted episodes."


def slug(text: str) -> str:
    """Return a name as part of a folder name."""
    return "".join(c if c.isalnum() else "-" for c in text).strip("-")
