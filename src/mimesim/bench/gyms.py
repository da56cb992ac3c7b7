"""The matrix over gyms: agents x gyms x users, and the averages that published tables print.

Every gym is played in its default profile on its own test tasks, or on those of a task file. Where
nobody is talked to, a gym is played once and stands in the averages under every user. Scripted
people and people played by a model never share a matrix, for their numbers do not compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any, cast

from mimesim.bench import averages
from mimesim.bench.agents import play
from mimesim.bench.clusters import clusters_of
from mimesim.bench.evaluate import ALL, EvaluationConfig, slug
from mimesim.bench.gym_rows import NOBODY, GymCell, averages_of, null_scores, row_of, verdict
from mimesim.envs.actions import get_format
from mimesim.envs.agents.load import make_agent
from mimesim.envs.base import AgentSource, GymEnv, Task, profile_of
from mimesim.envs.load import REGISTRY, gym_spec, load_gym, load_tasks, make_gym
from mimesim.envs.packs import read_tasks
from mimesim.errors import ConfigError
from mimesim.judges.base import Judge
from mimesim.judges.load import make_judge
from mimesim.models.load import preflight
from mimesim.results import RunRecord
from mimesim.rollout.engine import Cast, EngineConfig, Job, wait
from mimesim.users.base import User, UserSource
from mimesim.users.load import make_user

OnCell = Callable[[str, int, int], None]
_TALKLESS = ("oracle", "null", "scripted")  # families of agents that take no options


@dataclass(frozen=True, slots=True)
class _Parties:
    agents: Mapping[str, AgentSource]
    users: Mapping[str, UserSource]
    judge: Judge | None


def evaluate_gyms(config: EvaluationConfig, on_cell: OnCell | None = None) -> RunRecord:
    """Run (or go on with) the matrix over `config.gyms` and return its record.

    Raises:
        UsageError: an unknown gym, agent, user or judge, or a folder that belongs to another matrix.
        EnvironmentFault: an endpoint is not fit.
    """
    record = wait(_evaluate(config, on_cell))
    record.write(config.out / "record.json")
    return record


async def _evaluate(config: EvaluationConfig, on_cell: OnCell | None) -> RunRecord:
    gyms = gym_names(config.gyms.names)
    _same_kind(config.users)
    _named_only(config, gyms)
    tasks = {gym: _tasks(gym, config) for gym in gyms}
    plan = [
        (gym, arm, user)
        for gym in gyms
        for arm in config.arms
        for user in (config.users if gym_spec(gym).needs_user else (NOBODY,))
    ]
    cells = []
    async with AsyncExitStack() as stack:
        parties = await _parties(config, gyms, stack)
        for done, (gym, arm, user) in enumerate(plan):
            if on_cell is not None:
                on_cell(
                    f"{arm} in {gym}" + (f" with {user}" if user != NOBODY else ""), done, len(plan)
                )
            cells.append(await _cell(config, parties, tasks[gym], (gym, arm, user)))
    return _record(config, cells)


def gym_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the gyms that `names` means, `all` being every one there is.

    Raises:
        UnknownNameError: no such gym.
    """
    known = REGISTRY.names() if ALL in names else names
    for name in known:
        load_gym(name)
    return tuple(known)


def _same_kind(users: Sequence[str]) -> None:
    """Refuse scripted users beside others.

    Raises:
        ConfigError: there are both.
    """
    scripted = [user for user in users if user.startswith("scripted:")]
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


def _tasks(gym: str, config: EvaluationConfig) -> list[Task]:
    """Return the test tasks; those of a file belong together whatever their profiles.

    Raises:
        DataError: a bad task file, or one without test tasks of this gym.
    """
    path = config.gyms.tasks.get(gym)
    if path is None:
        seed, count = config.matrix.seed, config.matrix.tasks
        return load_tasks(gym, split="test", seed=seed, count=count)
    listed = [t for t in read_tasks(path) if (t.gym, t.split) == (gym, "test")]
    profiles = list(dict.fromkeys(profile_of(task) for task in listed))
    if len(profiles) < 2:
        return load_tasks(gym, profile=next(iter(profiles), None), path=path)
    return [task for one in profiles for task in load_tasks(gym, profile=one, path=path)]


async def _parties(
    config: EvaluationConfig, gyms: Sequence[str], stack: AsyncExitStack
) -> _Parties:
    """Make and check everybody before the first episode; `stack` closes them."""
    agents = {}
    for arm, name in config.arms.items():
        options = {} if name.partition(":")[0] in _TALKLESS else dict(config.agent_options)
        source = make_agent(name, action_format=config.gyms.action_format, options=options or None)
        stack.push_async_callback(source.aclose)
        agents[arm] = source
    users = {}
    for name in config.users:
        users[name] = make_user(name)
        stack.push_async_callback(users[name].aclose)
    judge = None
    if any(gym_spec(gym).needs_judge for gym in gyms):
        judge = make_judge(config.gyms.judge, options=config.gyms.judge_options)
        stack.push_async_callback(judge.aclose)
    for party in (*agents.values(), *users.values(), *([judge] if judge else [])):
        await preflight(party)
    return _Parties(agents, users, judge)


async def _cell(
    config: EvaluationConfig, parties: _Parties, tasks: Sequence[Task], key: tuple[str, str, str]
) -> GymCell:
    gym, arm, user = key
    spec, agent = gym_spec(gym), parties.agents[arm]
    judge = parties.judge if spec.needs_judge else None
    options = _options(gym, config)

    def gym_of(task: Task, person: User | None) -> GymEnv:
        own = profile_of(task) if task.public.get("profile") else None
        # `person` is None only where the gym needs nobody
        return make_gym(gym, profile=own, user=cast(User, person), judge=judge, options=options)

    trials = config.gyms.trials
    shared = {
        "gym": gym,
        "options": options,
        "action_format": config.gyms.action_format,
        "trials": trials,
        **{name: value for name, value in asdict(config.matrix).items() if name in _SHARED},
    }
    episodes = await play(
        [Job(task, trial) for trial in range(trials) for task in tasks],
        Cast(
            agent,
            gym_of,
            get_format(config.gyms.action_format),
            parties.users.get(user),
            judge.identity if judge else None,
        ),
        EngineConfig(
            seed=config.matrix.seed,
            run_id="matrix",
            concurrency=config.matrix.concurrency,
            limits=config.matrix.limits,
        ),
        {
            "arm": arm,
            "user": user,
            "agent": asdict(agent.identity),
            "judge": asdict(judge.identity) if judge else None,
            "matrix": shared,
        },
        config.out / "cells" / slug(gym) / f"{slug(arm)}-{slug(user)}",
    )
    aspects = {task.id: len(task.hidden.get("dimensions", ())) for task in tasks}
    return GymCell(
        gym=gym,
        arm=arm,
        agent=agent.identity.name,
        user=user,
        judge=judge.identity.name if judge else NOBODY,
        episodes=tuple(
            averages.played(one, aspects=aspects[one.task.id], compat=bool(options.get("compat")))
            for one in episodes
        ),
        clusters=clusters_of(tasks),
        attainable={task.id: load_gym(gym).attainable(task) for task in tasks},
        known_null={task.id: float(task.meta["floor"]) for task in tasks if "floor" in task.meta},
        settings={
            "max_steps": spec.max_steps,
            "seed": config.matrix.seed,
            "trials": trials,
            "profiles": list(dict.fromkeys(map(profile_of, tasks))),
            **options,
            **({"search": options.get("search", "static")} if spec.needs_search else {}),
        },
    )


_SHARED = ("tasks", "seed", "limits")


def _options(gym: str, config: EvaluationConfig) -> dict[str, Any]:
    """Return the settings of a gym; the compat profile is only for the gyms that were published."""
    profile = config.gyms.compat
    preset = {"compat": profile} if profile and gym in averages.WEIGHTS else {}
    return {**preset, **config.gyms.options.get(gym, {})}


def _record(config: EvaluationConfig, cells: Sequence[GymCell]) -> RunRecord:
    found = tuple(
        averages_of(arm, user, [c for c in cells if c.arm == arm and c.user in (user, NOBODY)])
        for arm in config.arms
        for user in config.users
    )
    judges = sorted({cell.judge for cell in cells} - {NOBODY})
    scripted = config.users[0].startswith("scripted:")
    return RunRecord(
        title="Agents in gyms",
        verdict=verdict(found),
        kind="eval",
        rows=tuple(row_of(cell, null_scores(cell, cells)) for cell in cells),
        gym_averages=found,
        seeds={"evaluation": (config.matrix.seed,)},
        limits=(
            (
                f"The people are {'scripted' if scripted else 'played by a model'}, the judge is "
                f"{', '.join(judges) or NOBODY}: compare with numbers of the same kind only."
            ),
        ),
    )
