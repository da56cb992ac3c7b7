"""Gyms by name: the registry, making one episode's gym, loading or making its tasks.

A registry entry is a `Gym`: what a gym offers, profile by profile. Outsiders add one with an entry
point in `mimesim.gyms`; nothing here knows a particular gym.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from mimesim.envs import packs
from mimesim.envs.base import Agent, GymEnv, GymSpec, Task, profile_of
from mimesim.errors import DataError, UsageError
from mimesim.registry import Registry, unknown_name
from mimesim.users.base import User

REGISTRY = Registry(
    "gym",
    {
        "function": "mimesim.envs.gyms.function:GYM",
        "intention": "mimesim.envs.gyms.intention:GYM",
        "persuade": "mimesim.envs.gyms.persuade:GYM",
        "search": "mimesim.envs.gyms.search:GYM",
        "support-desk": "mimesim.envs.gyms.support_desk:GYM",
        "tau": "mimesim.envs.gyms.tau:GYM",
        "telepathy": "mimesim.envs.gyms.telepathy:GYM",
        "travel": "mimesim.envs.gyms.travel:GYM",
        "turtle": "mimesim.envs.gyms.turtle:GYM",
    },
)
"""All gyms."""
_NEEDS = ("name", "profiles", "spec", "make", "tasks")
USUAL_SPLIT = "test"
"""What is played where no split is named."""
NO_GYM = "conversation"
"""What stands for the gym where there is none; it is played from a scenario file and never listed."""
_PLAIN = Registry("conversation", {NO_GYM: "mimesim.envs.conversation:TALKS"})


class Gym(Protocol):
    """What a gym offers. `profiles` are never averaged with one another; the first is default."""

    @property
    def name(self) -> str:
        """The name at the door."""
        ...

    @property
    def profiles(self) -> tuple[str, ...]:
        """Names of the task profiles."""
        ...

    def spec(self, profile: str) -> GymSpec:
        """Return the static facts of a profile."""
        ...

    def make(
        self, profile: str, *, user: User, judge: Any, options: Mapping[str, Any] | None
    ) -> GymEnv:
        """Make the gym of one episode."""
        ...

    def tasks(self, profile: str, split: str, seed: int, count: int) -> list[Task]:
        """Make `count` tasks; equal arguments give equal tasks."""
        ...

    def agent(self, kind: str, task: Task, seed: int) -> Agent:
        """Make one of the gym's own agents: oracle, null, eager or patient."""
        ...

    def secrets(self, task: Task) -> list[str]:
        """Return strings of `task.hidden` that `task.public` must not hold."""
        ...

    def attainable(self, task: Task) -> float:
        """Return an upper bound of the return on this task; 0 = nothing can be won."""
        ...


def load_gym(name: str) -> Gym:
    """Return the gym called `name`.

    Raises:
        UnknownNameError: no such gym.
    """
    return cast(Gym, (_PLAIN if name == NO_GYM else REGISTRY).load(name, needs=_NEEDS))


def gym_spec(name: str, profile: str | None = None) -> GymSpec:
    """Return the static facts of a gym's profile (None = its default).

    Raises:
        UnknownNameError: no such gym or profile.
    """
    gym = load_gym(name)
    return gym.spec(_profile(gym, profile))


def make_gym(
    name: str,
    *,
    profile: str | None = None,
    user: User,
    judge: Any = None,
    options: Mapping[str, Any] | None = None,
) -> GymEnv:
    """Make the gym of one episode; it opens no connection and reads no environment.

    Args:
        name: door name, e.g. `support-desk`.
        profile: task profile; None = the gym's default.
        user: the user of this episode.
        judge: a judge, where the gym needs one.
        options: settings of the gym.

    Raises:
        UnknownNameError: no such gym or profile.
        UsageError: the gym needs a judge and none is given.
    """
    gym = load_gym(name)
    chosen = _profile(gym, profile)
    if gym.spec(chosen).needs_judge and judge is None:
        raise UsageError(f"gym {name!r} needs a judge", mend="name one, e.g. --judge rule")
    return gym.make(chosen, user=user, judge=judge, options=options)


def load_tasks(
    gym: str,
    *,
    profile: str | None = None,
    split: str | None = None,
    seed: int = 0,
    count: int | None = None,
    path: Path | str | None = None,
) -> list[Task]:
    """Return tasks of a gym: made from a seed, or read from a task file.

    Args:
        gym: door name.
        profile: task profile; None = the gym's default.
        split: train, validation or test; None = test, or the only one of a file.
        seed: of the generator; not used with `path`.
        count: how many; None = 64 made ones, or all of a file.
        path: a task file; its tasks of this profile and split are used in order.

    Raises:
        UnknownNameError: no such gym or profile.
        UsageError: the gym has none in this split.
        DataError: a bad task file, or none of its tasks fits.
    """
    kind = load_gym(gym)
    chosen = _profile(kind, profile)
    if path is None:
        return _made(kind, chosen, split or USUAL_SPLIT, seed, 64 if count is None else count)
    tasks = packs.read_tasks(path)
    own = [t for t in tasks if (t.gym, profile_of(t)) == (gym, chosen)]
    split = split or usual_split(own)
    fitting = [t for t in own if t.split == split]
    if not fitting:
        held = sorted({f"{t.gym}/{profile_of(t)}/{t.split}" for t in tasks})
        raise DataError(
            f"no task of gym {gym!r}, profile {chosen!r}, split {split!r}",
            where=str(path),
            expected="such tasks; the file holds " + (", ".join(held) or "none"),
        )
    chosen_tasks = fitting if count is None else fitting[:count]
    for task in chosen_tasks:
        _read_once(kind, task, str(path))
    return chosen_tasks


def usual_split(tasks: list[Task]) -> str:
    """Return the split to play of a file where none is named: test, or the only one there is."""
    held = {task.split for task in tasks}
    return held.pop() if len(held) == 1 else USUAL_SPLIT


def _made(gym: Gym, profile: str, split: str, seed: int, count: int) -> list[Task]:
    if split not in packs.SPLITS:
        raise unknown_name("split", split, list(packs.SPLITS))
    tasks = gym.tasks(profile, split, seed, count)
    if count and not tasks:
        raise UsageError(f"gym {gym.name!r} has no tasks in split {split!r}")
    return tasks


def _read_once(gym: Gym, task: Task, where: str) -> list[str]:
    """Let a gym read a task from a file before anything runs; return the strings it must hide.

    Raises:
        DataError: the gym cannot read it.
    """
    try:
        if gym.attainable(task) <= 0:
            raise DataError(f"task {task.id!r}: nothing can be won", where=where)
        return gym.secrets(task)
    except UsageError:
        raise
    except Exception as error:
        raise DataError(
            f"task {task.id!r} cannot be read: {type(error).__name__}: {error}",
            where=where,
            expected=f"a task as the gym {gym.name!r} makes them",
        ) from error


def check_tasks(tasks: list[Task]) -> list[str]:
    """Return what is wrong with a pack: `packs.problems` and what each gym knows of its tasks."""
    found = packs.problems(tasks)
    for task in tasks:
        shown = packs.public_text(task)
        try:
            secrets = _read_once(load_gym(task.gym), task, "")
        except UsageError as error:
            found.append(str(error))
            continue
        found += [
            f"task {task.id!r}: a hidden string stands in public: {secret[:40]!r}"
            for secret in secrets
            if packs.holds_string(shown, secret)
        ]
    return found


def describe_gyms() -> list[dict[str, Any]]:
    """Return one plain object per gym: name, the facts of its default profile, all profiles.

    An extension that cannot be described is left out with a warning.
    """
    return REGISTRY.each(lambda name: _describe(load_gym(name)))


def describe_gym(name: str, profile: str | None = None) -> dict[str, Any]:
    """Return the facts of one gym's profile (None = its default) as a plain object.

    Raises:
        UnknownNameError: no such gym or profile.
    """
    gym = load_gym(name)
    chosen = _profile(gym, profile)
    return {
        "name": gym.name,
        "profile": chosen,
        **_facts(gym.spec(chosen)),
        "profiles": list(gym.profiles),
    }


def _describe(gym: Gym) -> dict[str, Any]:
    facts = {profile: _facts(gym.spec(profile)) for profile in gym.profiles}
    return {"name": gym.name, **facts[gym.profiles[0]], "profiles": facts}


def _facts(spec: GymSpec) -> dict[str, Any]:
    return {
        "summary": spec.summary,
        "choices": [choice.value for choice in spec.choices],
        "max_steps": spec.max_steps,
        "step_bounds": list(spec.step_bounds),
        "return_bound": spec.return_bound,
        "needs_user": spec.needs_user,
        "needs_judge": spec.needs_judge,
        "needs_search": spec.needs_search,
    }


def _profile(gym: Gym, profile: str | None) -> str:
    if profile is None:
        return gym.profiles[0]
    if profile not in gym.profiles:
        raise unknown_name(f"profile of {gym.name}", profile, list(gym.profiles))
    return profile
