"""Who takes part in the training of an agent, and what of them a checkpoint keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from mimesim.envs.base import Task
from mimesim.envs.load import gym_spec, load_gym, load_tasks, make_gym
from mimesim.envs.turns.kind import ProfiledKind, TurnKind
from mimesim.errors import ConfigError
from mimesim.judges.base import Judge
from mimesim.judges.load import SELF
from mimesim.rollout.engine import Job
from mimesim.seeds import derive
from mimesim.train import launch
from mimesim.train.coach import Coach, make_coach, read_coach, same_model
from mimesim.train.collect import GymCollector, World
from mimesim.train.gyms import GymShare, Rows, first_trials, load_rows, schedule
from mimesim.train.judging import fixed_judge, judge_mode, own_judges
from mimesim.train.rl import last_means
from mimesim.train.validation import split
from mimesim.users.base import User, UserSource
from mimesim.users.load import make_user
from mimesim.users.mixture import Mixture, make_mixture


@dataclass(frozen=True, slots=True)
class Practice:
    """What an agent practises on.

    Attributes:
        tasks: the rows of the run in order, one per prompt.
        held: rows that are held out.
        parts: the rows of each gym, where there are several.
    """

    tasks: list[Task]
    held: list[Job]
    parts: Sequence[Rows] = ()

    def notes(self) -> list[str]:
        """Return what people should know of the rows before the first batch."""
        return [
            f"gym {part.gym!r} has {part.tasks} training tasks for {part.count} rows: they come "
            "again with other seeds"
            for part in self.parts
            if part.count > part.tasks
        ]

    def record(self, curve: Sequence[Mapping[str, float]]) -> dict[str, Any]:
        """Return the block `gyms` of a record, means of the last 25 batches; none for one gym."""
        if not self.parts:
            return {}
        means = {key: last_means(curve, f"episode/{key}/") for key in ("reward", "success")}
        return {
            "gyms": {
                part.gym: {
                    "rows": len(part.train),
                    "held_out": len(part.held),
                    "tasks": part.tasks,
                    **{key: found.get(part.gym) for key, found in means.items()},
                }
                for part in self.parts
            }
        }


def practice_of(config: Any) -> Practice:
    """Return the tasks that are trained on, and those held out of them.

    Raises:
        UsageError: a gym or a task file that has none, or too few to hold one out.
    """
    wanted, held, seed = config.batches * config.prompts, config.validation, config.seed
    if config.gyms:
        parts = load_rows(config.gyms, held, seed)
        out = [task for part in parts for task in part.held]
        order = schedule(parts, wanted, derive(seed, "schedule"))
        trials = first_trials(out, max(1, len(out)), 1)
        return Practice(order, [Job(*pair) for pair in zip(out, trials, strict=True)], parts)
    more = min(held.at_most, math.ceil(held.share * wanted)) if held.share else 0
    tasks = load_tasks(
        config.gym,
        profile=config.profile,
        split="train",
        seed=derive(seed, "tasks"),
        count=wanted + more,
    )
    kept, out = split(tasks, wanted, held, derive(seed, "held-out"))
    return Practice(kept, [Job(task) for task in out])


def make_world(config: Any) -> World:
    """Return the world of a run: its gym, its frozen users, a judge where the gym needs one.

    Raises:
        UsageError: a name that nobody has, or an option that is not known.
    """
    return _world(config, {}, {})


def make_worlds(config: Any) -> World | dict[str, World]:
    """Return the world of a run, or those of a mixture of gyms by gym.

    A user or judge that several gyms name is made once.

    Raises:
        UsageError: a name that nobody has, or an option that is not known.
    """
    if not config.gyms:
        return make_world(config)
    users: dict[str, UserSource | Mixture] = {}
    judges: dict[str, Judge] = {}
    worlds: dict[str, World] = {}
    for share in config.gyms:
        made = _world(_single(config, share), users, judges)
        worlds[share.gym] = replace(
            made,
            action_format=share.action_format,
            limits=replace(made.limits, max_steps=share.max_steps or None),
            credit=share.credit,
        )
    return worlds


def _world(config: Any, users: dict[str, UserSource | Mixture], judges: dict[str, Judge]) -> World:
    """Return the world of a run in one gym; who was made before is taken again."""
    met = repr((config.user, config.users))
    if met not in users and config.users:
        users[met] = make_mixture(config.users, derive(config.seed, "users"))
    elif met not in users:
        users[met] = make_user(config.user)
    options = _in_training(config.gym, config.gym_options)
    world = World(config.gym, config.profile, users[met], options=options)
    if config.judge not in judges and config.judge != SELF:  # a mistyped one is told in any gym
        judges[config.judge] = fixed_judge(config.judge, config.judge_options)
    if gym_spec(config.gym, config.profile).needs_judge:
        if config.judge == SELF:
            world = replace(world, own_judges=own_judges(users[met], config.judge_options))
        else:
            world = replace(world, judge=judges[config.judge])
    make_gym(  # a wrong option is told before a batch is played
        config.gym,
        profile=config.profile,
        user=cast(User, None),  # nobody plays yet
        judge=next(iter(world.judges), None),
        options=options or None,
    )
    return world


def _in_training(gym: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of a gym that is trained in: flags of two phases are those of training."""
    phased = isinstance(load_gym(gym), TurnKind | ProfiledKind)
    return {"phase": "train", **options} if phased else options


def _single(config: Any, share: GymShare) -> Any:
    """Return the run in one gym of its mixture alone."""
    own = share.user or share.users
    return replace(
        config,
        gyms=(),
        gym=share.gym,
        profile=share.profile or load_gym(share.gym).profiles[0],
        gym_options=share.options,
        user=share.user if own else config.user,
        users=share.users if own else config.users,
        judge=share.judge or config.judge,
        judge_options={} if share.judge else config.judge_options,
    )


def cast_names(config: Any, worlds: Sequence[World]) -> dict[str, Any]:
    """Return users and judges of a run as its record names them; `users` are a list."""
    runs = [_single(config, share) for share in config.gyms] or [config]
    names = dict.fromkeys(n for run in runs for n in [s.name for s in run.users] or [run.user])
    pairs = zip(runs, worlds, strict=True)
    judges = dict.fromkeys(run.judge for run, world in pairs if world.judges)
    listed = len(names) > 1 or any(run.users for run in runs)
    return {
        "user": list(names) if listed else next(iter(names)),
        "judge": ", ".join(judges) or "none",
        "judge_mode": judge_mode(worlds),
    }


def coach_of(config: Any, met: Sequence[UserSource | Mixture]) -> Coach | None:
    """Return the coach of a run; None where none is asked.

    Args:
        config: the run.
        met: the users of all its worlds, each once.

    Raises:
        ConfigError: the coach is not one that the run may have.
    """
    asking = read_coach(config.coach)
    if config.csd.alpha == 0 or asking is None:
        return None  # alpha = 0 asks no coach and draws no random number
    users = [one for user in met for one in (user.sources if isinstance(user, Mixture) else [user])]
    if asking.name == "user" and len(users) > 1:
        raise ConfigError(
            f"coach 'user' asks the model behind the user, and 'users' has {len(users)}",
            where="coach",
            mend="take coach = 'rule' or 'model:<model>'",
        )
    coach = make_coach(asking, users[0])
    for user in users:
        if config.arm == "csd-othercoach" and same_model(coach, user):
            raise ConfigError(
                f"the coach is the model of the user, {user.identity.name!r}",
                where="coach",
                expected="another model in the arm 'csd-othercoach'",
            )
    return coach


class Kept:
    """The placebo ring, and the numbers of the last batch that no trainer knows."""

    def __init__(self, collector: GymCollector) -> None:
        self._collector = collector

    def numbers(self) -> dict[str, float]:
        """Return what became of the notes of the last batch, and what it cost in all processes."""
        collector = self._collector
        own = collector.counts.numbers() if collector.coach else {}
        return launch.summed({**own, **collector.spent.numbers()})

    def state(self) -> dict[str, Any]:
        """Return the ring."""
        return {"ring": self._collector.ring.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a ring."""
        self._collector.ring.restore(state["ring"])


def spent_in(curve: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return calls, tokens and dollars of user, judge and coach over a whole run."""
    found: dict[str, float] = {}
    for row in curve:
        for key, value in row.items():
            if key.startswith("usage/"):
                name = key.removeprefix("usage/")
                found[name] = found.get(name, 0) + value
    return dict(sorted(found.items()))
