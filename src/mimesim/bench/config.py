"""The configuration of an evaluation: arms x users x gyms.

Without `gyms.names` the one gym of `matrix` is played, the compact desk unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimesim.bench.agents import MatrixConfig
from mimesim.config.ranges import COUNT, check_ranges
from mimesim.errors import ConfigError

USERS = tuple(f"scripted:heldout-{n}" for n in range(1, 8))
"""The evaluation users of the compact desk."""
ALL = "all"
"""What `gyms.names` calls every gym there is."""
WITHOUT_MODEL = ("oracle", "null", "scripted")
"""Families of agents that no model stands behind; they take no settings of one."""

OnCell = Callable[[str, int, int], None]
"""Told of a cell that starts: what it is, how many started before it, how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One trained agent: an arm of the comparison under one training seed.

    Attributes:
        label: name of the arm; several seeds of one arm share it.
        agent: door name.
        seed: training seed of this checkpoint.
        options: settings of this agent, over `agent_options`.
    """

    label: str
    agent: str
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """What tells checkpoints apart."""
        return self.label, self.seed

    @property
    def name(self) -> str:
        """The arm with its seed, where that is not 0."""
        return f"{self.label}, seed {self.seed}" if self.seed else self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class GymsConfig:
    """Several gyms instead of the one of `matrix`, whose tasks, seed, concurrency and limits hold.

    Attributes:
        names: gyms, or `all`; empty = the matrix of one gym.
        trials: how often each task is played; pass^k is told for k up to it.
        judge: door name, for the gyms that need one, or `self`: each user's own model.
        options: gym -> its settings, e.g. {search = {search = "static"}}.
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
        arms: one entry per checkpoint, or label -> door name of an agent.
        users: door names; averages are over all of them.
        user_options: user -> its settings.
        baseline: arm that the others are compared with; "" = every pair of arms.
        out: folder of episodes and record; a second run goes on there.
        agent_options: settings given to every agent, e.g. {temperature = 0.0}.
        gyms: the matrix over several gyms.
        jobs: cells at once.
        give_up_after: attempts at episodes that the infrastructure loses in a row end a cell.
        published: print the published rows beside this run.
    """

    arms: tuple[Arm, ...] | Mapping[str, str] = ()
    users: tuple[str, ...] = USERS
    user_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    baseline: str = ""
    matrix: MatrixConfig = field(default_factory=MatrixConfig)
    out: Path = Path("out/eval")
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    gyms: GymsConfig = field(default_factory=GymsConfig)
    jobs: int = 1
    give_up_after: int = 32
    published: bool = False

    def __post_init__(self) -> None:
        """Refuse a matrix without rows.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "jobs", "give_up_after")
        if not self.arms:
            raise ConfigError(
                "'arms' is empty",
                expected="at least one label = agent",
                mend="e.g. --arm mine=policy:out/agent/policy",
            )
        _refuse_twins(self.checkpoints)
        if not self.users:
            raise ConfigError("'users' is empty", expected="at least one user")
        if len(set(self.users)) < len(self.users):
            raise ConfigError("'users' names one twice", expected="every user once")
        for name in self.user_options:
            if name not in self.users:
                raise ConfigError(
                    f"'user_options' names {name!r}, who is no user here",
                    expected="one of " + ", ".join(self.users),
                )
        if self.baseline and self.baseline not in self.labels:
            raise ConfigError(
                f"'baseline' {self.baseline!r} is no arm", expected=f"one of {sorted(self.labels)}"
            )

    @property
    def checkpoints(self) -> tuple[Arm, ...]:
        """The arms, one entry per checkpoint."""
        if isinstance(self.arms, tuple):
            return self.arms
        return tuple(Arm(label=label, agent=agent) for label, agent in self.arms.items())

    @property
    def labels(self) -> tuple[str, ...]:
        """The arms by label, in order."""
        return tuple(dict.fromkeys(arm.label for arm in self.checkpoints))


def _refuse_twins(arms: tuple[Arm, ...]) -> None:
    """Refuse an arm without a name, and two entries that nothing tells apart.

    Raises:
        ConfigError: naming the label.
    """
    seen = set()
    for arm in arms:
        if not arm.label.strip():
            raise ConfigError("'arms' holds an empty label", expected="a name for every arm")
        if arm.key in seen:
            raise ConfigError(
                f"'arms' names {arm.label!r} with seed {arm.seed} twice",
                expected="every label once, or once for each training seed",
            )
        seen.add(arm.key)
