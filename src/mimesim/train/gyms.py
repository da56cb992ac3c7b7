"""Several gyms in one training of an agent: what each brings, what is held out, and the order.

Every gym brings a number of rows to an epoch. The rows of all gyms are shuffled together, anew in
every epoch, so a batch has of each about its share. A gym that has fewer tasks than rows is gone
through again; a task that comes again meets a user with another seed. Nothing here loads torch: a
plan counts the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal

from mimesim.config.ranges import NATURAL, ROWS, check_ranges
from mimesim.config.sources import source_of
from mimesim.envs.actions import get_format
from mimesim.envs.base import Task
from mimesim.envs.load import load_tasks
from mimesim.errors import ConfigError, DataError
from mimesim.seeds import derive, file_fingerprint, generator
from mimesim.train.credit import CreditConfig
from mimesim.users.mixture import UserShare, check_shares

SINGLE = ("gym", "profile", "gym_options")
"""Keys of a run in one gym."""
_USUAL = ("support-desk", "compact")
"""Gym and profile of a run that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GymShare:
    """One gym of a mixture; what is left empty is as the run has it.

    Attributes:
        gym: door name. profile: "" = the gym's default.
        rows: its task rows in an epoch, those that are held out included.
        tasks: `own` = made by the gym, or a task file, whose training tasks are taken.
        user, users: who is met there. judge: where the gym needs one.
        options: settings of the gym.
        action_format: how a reply becomes an action: line, tool-call or plain.
        max_steps: most actions of an episode; 0 = the gym's number, which it can only lower.
        credit: how credit is assigned in this gym; a table of its own, not laid over the run's.
    """

    gym: str
    rows: int
    profile: str = ""
    tasks: Literal["own"] | Path = "own"
    user: str = ""
    users: tuple[UserShare, ...] = ()
    judge: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    action_format: str = "line"
    max_steps: int = 0
    credit: CreditConfig | None = None

    def __post_init__(self) -> None:
        """Refuse what no gym can be played with.

        Raises:
            ConfigError: naming the key.
            UnknownNameError: there is no such action format.
        """
        check_ranges(self, ROWS, "rows")
        check_ranges(self, NATURAL, "max_steps")
        check_shares(self.users)
        get_format(self.action_format)
        if self.user and self.users:
            raise ConfigError(
                "'user' and 'users' stand together", where=f"gym {self.gym!r}", expected="one"
            )


def settle(tree: dict[str, Any]) -> None:
    """Refuse settings that name one gym and several; the one is taken out, so it is told once.

    Raises:
        ConfigError: so they do; it tells where the one stands.
    """
    if not tree.get("gyms"):
        return
    said = {key: tree.pop(key) for key in SINGLE if key in tree}
    for key, value in said.items():
        raise _both(key, source_of(value).at([key]))


def check_gyms(config: Any) -> None:
    """Refuse a mixture that cannot be drawn from.

    Args:
        config: a run with `gyms`, `validation`, `gym` and `profile`.

    Raises:
        ConfigError: one gym is named, too; a gym that stands twice; a gym in which nothing is left
            to be trained on.
    """
    shares: Sequence[GymShare] = config.gyms
    if shares and (config.gym, config.profile) != _USUAL:
        raise _both("gym", "")
    names = [share.gym for share in shares]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"'gyms' names {twice!r} twice", expected="every gym once")
    kept = trained_rows([share.rows for share in shares], config.validation)
    for share, rows in zip(shares, kept, strict=True):
        if rows < 1:
            raise ConfigError(
                f"'gyms': {share.rows} row of {share.gym!r} is too few to hold one out",
                expected="2 or more, or no validation",
            )


def _both(key: str, where: str) -> ConfigError:
    return ConfigError(
        f"{key!r} names one gym, and 'gyms' several",
        where=where,
        expected="one of both",
        mend=f"take {key!r} out, or say it in the table of its gym; --set gyms=[] leaves one gym",
    )


def held_rows(rows: Sequence[int], validation: Any) -> list[int]:
    """Return how many rows of each gym are held out: the same share of all, at most `at_most`.

    Args:
        rows: of each gym.
        validation: `share` and `at_most`; see `train.validation.ValidationConfig`.
    """
    if not validation.share:
        return [0] * len(rows)
    wanted = [max(1, round(validation.share * count)) for count in rows]
    total = sum(wanted)
    if total <= validation.at_most:
        return wanted
    exact = [count * validation.at_most / total for count in wanted]
    held = [int(part) for part in exact]
    order = sorted(range(len(rows)), key=lambda i: held[i] - exact[i])
    for place in order[: validation.at_most - sum(held)]:
        held[place] += 1
    return held


def trained_rows(rows: Sequence[int], validation: Any) -> list[int]:
    """Return how many rows of each gym an epoch of training has."""
    return [n - held for n, held in zip(rows, held_rows(rows, validation), strict=True)]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one gym.

    Attributes:
        train: of an epoch. held: held out; none of their tasks is in `train`.
        tasks: how many different ones there are on both sides.
    """

    gym: str
    train: tuple[Task, ...]
    held: tuple[Task, ...]
    tasks: int

    @property
    def count(self) -> int:
        """How many rows there are on both sides."""
        return len(self.train) + len(self.held)


def load_rows(shares: Sequence[GymShare], validation: Any, seed: int) -> list[Rows]:
    """Load the tasks of all gyms and hold out the same share of the rows of each.

    Args:
        shares: the mixture.
        validation: how much is held out, see `held_rows`.
        seed: run seed.

    Raises:
        UsageError: a gym or a task file that has none, or too few to hold one out.
    """
    held = held_rows([share.rows for share in shares], validation)
    return [
        _parted(share, _pool(share, seed), count, derive(seed, "held-out", share.gym))
        for share, count in zip(shares, held, strict=True)
    ]


def _pool(share: GymShare, seed: int) -> list[Task]:
    """Return the tasks of a gym, at most one a row."""
    made = share.tasks == "own"
    tasks = load_tasks(
        share.gym,
        profile=share.profile or None,
        split="train",
        seed=derive(seed, "tasks", share.gym),
        count=share.rows if made else None,
        path=None if share.tasks == "own" else share.tasks,
    )
    if len(tasks) <= share.rows:
        return tasks
    rng = generator(seed, "rows", share.gym)
    return [tasks[place] for place in sorted(rng.sample(range(len(tasks)), share.rows))]


def _parted(share: GymShare, tasks: Sequence[Task], held: int, seed: int) -> Rows:
    """Hold out whole groups of tasks, as near to the share of the rows as they allow."""
    if not held:
        return Rows(share.gym, tuple(islice(cycle(tasks), share.rows)), (), len(tasks))
    wanted = max(1, round(held * len(tasks) / share.rows))
    out = _held_out(tasks, wanted, seed)
    rest = [task for task in tasks if task.id not in out]
    if not rest:
        raise ConfigError(
            f"{len(tasks)} training tasks of gym {share.gym!r} are too few to hold one out",
            where="validation.share",
            expected="at least one group of tasks on each side",
        )
    kept = [task for task in tasks if task.id in out]
    train = tuple(islice(cycle(rest), share.rows - held))
    return Rows(share.gym, train, tuple(islice(cycle(kept), held)), len(tasks))


def _held_out(tasks: Sequence[Task], wanted: int, seed: int) -> set[str]:
    """Return the ids of the tasks of some groups, `wanted` or somewhat fewer, at least one group.

    A task of several groups counts as a group of its own: where tasks hang together through such
    groups, nothing whole could be held out.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for task in tasks:
        key = task.groups if len(task.groups) == 1 else ("", task.id)
        groups.setdefault(key, []).append(task.id)
    order = list(groups.values())
    generator(seed, "groups").shuffle(order)
    found: set[str] = set()
    for ids in order:
        if len(found) + len(ids) <= wanted:
            found.update(ids)
    smallest = min(order, key=len)
    return found or set(smallest)


def schedule(parts: Sequence[Rows], count: int, seed: int) -> list[Task]:
    """Return the first `count` rows of a run: epochs of all rows, each shuffled anew."""
    return list(islice(_epochs([t for part in parts for t in part.train], seed), count))


def _epochs(rows: Sequence[Task], seed: int) -> Iterator[Task]:
    epoch = 0
    while True:
        order = list(rows)
        generator(seed, "epoch", epoch).shuffle(order)
        yield from order
        epoch += 1


def first_trials(tasks: Sequence[Task], prompts: int, group: int) -> list[int]:
    """Return the number of each row's first trial: a task that stands twice in a batch goes on.

    Args:
        tasks: of a run, row by row.
        prompts: rows of a batch.
        group: rollouts of a row.
    """
    found: list[int] = []
    met: Counter[tuple[str, str]] = Counter()
    for place, task in enumerate(tasks):
        if place % prompts == 0:
            met.clear()
        found.append(group * met[task.gym, task.id])
        met[task.gym, task.id] += 1
    return found


def fingerprints(shares: Sequence[GymShare]) -> dict[str, str]:
    """Return gym -> fingerprint of its task file, where it has one.

    Raises:
        DataError: there is no such file, or it cannot be read.
    """
    found: dict[str, str] = {}
    for number, share in enumerate(shares):
        if share.tasks != "own":
            try:
                found[share.gym] = file_fingerprint(share.tasks)
            except OSError as error:
                raise DataError(
                    f"'gyms.{number}.tasks' cannot be read: {error.strerror or error}",
                    where=str(share.tasks),
                    expected='a task file, or "own"',
                ) from error
    return found
