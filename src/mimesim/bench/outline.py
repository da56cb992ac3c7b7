"""The matrix before anybody is made: its cells, the tasks of its gyms, and the folder of each cell.

A cell is one checkpoint in one gym under one user. Where nobody is talked to, a gym is played once
and stands in the averages under every user. Scripted people and people played by a model never share
a matrix, for their numbers do not compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mimesim.bench import averages
from mimesim.bench.config import ALL, Arm, EvaluationConfig
from mimesim.bench.rows import NOBODY
from mimesim.envs.base import Task, profile_of
from mimesim.envs.load import REGISTRY, gym_spec, load_gym, load_tasks, usual_split
from mimesim.envs.packs import read_tasks
from mimesim.errors import ConfigError
from mimesim.judges.load import SELF
from mimesim.users.load import is_scripted


class Cell(NamedTuple):
    """What is played in one folder."""

    gym: str
    arm: Arm
    user: str

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.arm.name} in {self.gym}" + (
            f" with {self.user}" if self.user != NOBODY else ""
        )


@dataclass(frozen=True, slots=True)
class Ground:
    """A gym as it is played here; `profile` None = each task says its own."""

    gym: str
    profile: str | None
    action_format: str
    tasks: tuple[Task, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outline:
    """The matrix before anybody is made: what is played where."""

    grounds: Mapping[str, Ground]
    cells: tuple[Cell, ...]


def outline(config: EvaluationConfig) -> Outline:
    """Return the cells of a matrix and the tasks of its gyms.

    Raises:
        UnknownNameError: no such gym.
        ConfigError: what makes no matrix.
        DataError: a bad task file.
    """
    names = gym_names(config.gyms.names) or (config.matrix.gym,)
    _same_kind(config.users)
    _named_only(config, names)
    grounds = {gym: _ground(gym, config) for gym in names}
    cells = tuple(
        Cell(gym, arm, user)
        for gym in names
        for arm in config.checkpoints
        for user in (config.users if _by_user(gym, config) else (NOBODY,))
    )
    _own_folders(cells)
    return Outline(grounds, cells)


def gym_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the gyms that `names` means, `all` being every one there is.

    Raises:
        UnknownNameError: no such gym.
    """
    for name in names:
        if name != ALL:
            load_gym(name)
    return tuple(REGISTRY.names() if ALL in names else names)


def _by_user(gym: str, config: EvaluationConfig) -> bool:
    """Tell whether a gym is played once per user: to be talked with, or to be judged by."""
    spec = gym_spec(gym)
    return spec.needs_user or (spec.needs_judge and config.gyms.judge == SELF)


def _same_kind(users: Sequence[str]) -> None:
    """Refuse scripted users beside others.

    Raises:
        ConfigError: there are both.
    """
    scripted = [user for user in users if is_scripted(user)]
    if scripted and len(scripted) < len(users):
        raise ConfigError(
            f"'users' mixes {scripted[0]!r} with users of another kind",
            expected="all scripted, or none",
            mend="evaluate them one after the other, each with an --out of its own",
        )


def _named_only(config: EvaluationConfig, gyms: Sequence[str]) -> None:
    """Refuse settings of gyms that are not played.

    Raises:
        ConfigError: naming the gym.
    """
    for key, named in (("options", config.gyms.options), ("tasks", config.gyms.tasks)):
        for gym in named:
            if gym not in gyms:
                raise ConfigError(
                    f"'gyms.{key}' names {gym!r}, which is not played",
                    expected="one of " + ", ".join(gyms),
                )


def _ground(gym: str, config: EvaluationConfig) -> Ground:
    single = not config.gyms.names
    profile = config.matrix.profile if single else None
    return Ground(
        gym=gym,
        profile=profile,
        action_format=config.matrix.action_format if single else config.gyms.action_format,
        tasks=tuple(_tasks(gym, profile, config)),
        options=_options(gym, config),
    )


def _tasks(gym: str, profile: str | None, config: EvaluationConfig) -> list[Task]:
    """Return the test tasks; those of a file belong together whatever their profiles.

    A file whose tasks of this gym are all of another split is played, too.

    Raises:
        DataError: a bad task file, or one without such tasks.
    """
    path = config.gyms.tasks.get(gym)
    if path is None:
        seed, count = config.matrix.seed, config.matrix.tasks
        return load_tasks(gym, profile=profile, split="test", seed=seed, count=count)
    listed = [task for task in read_tasks(path) if task.gym == gym]
    split = usual_split(listed)
    found = dict.fromkeys(profile_of(task) for task in listed if task.split == split)
    profiles: list[str | None] = [*found] or [profile]
    return [
        task for one in profiles for task in load_tasks(gym, profile=one, split=split, path=path)
    ]


def _options(gym: str, config: EvaluationConfig) -> dict[str, Any]:
    """Return the settings of a gym; the compat profile is only for the gyms that were published."""
    profile = config.gyms.compat
    preset = {"compat": profile} if profile and gym in averages.WEIGHTS else {}
    return {**preset, **config.gyms.options.get(gym, {})}


def _own_folders(cells: Sequence[Cell]) -> None:
    """Refuse names that differ only in signs which no folder name keeps.

    Raises:
        ConfigError: two cells would share a folder.
    """
    seen: dict[Path, Cell] = {}
    for cell in cells:
        other = seen.setdefault(folder_of(cell), cell)
        if other is not cell:
            raise ConfigError(
                f"{cell} and {other} would share the folder {str(folder_of(cell))!r}",
                mend="give arms and users names that differ in letters or digits",
            )


def folder_of(cell: Cell) -> Path:
    """Return the folder of a cell inside that of the matrix."""
    seed = f"-s{cell.arm.seed}" if cell.arm.seed else ""
    return Path("cells") / _slug(cell.gym) / f"{_slug(cell.arm.label)}{seed}-{_slug(cell.user)}"


def _slug(text: str) -> str:
    """Return a name as part of a folder name."""
    return "".join(c if c.isalnum() else "-" for c in text).strip("-")
