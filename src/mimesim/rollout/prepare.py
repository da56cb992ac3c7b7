"""From a run configuration to a running engine: tasks, parties, manifest, preflight.

This is what `mimesim run` does; `RunConfig` is its config file.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field, replace
from itertools import count as naturals
from itertools import islice
from pathlib import Path
from typing import Any, cast

from mimesim import config as configs
from mimesim import jsonio
from mimesim.config.ranges import COUNT, NATURAL, SHARE, check_ranges
from mimesim.dialogue.types import Identity
from mimesim.envs.actions import get_format
from mimesim.envs.agents.callables import given_agent
from mimesim.envs.agents.load import GymAgents, make_agent
from mimesim.envs.base import AgentSource, GymEnv, Task
from mimesim.envs.conversation import read_scenarios
from mimesim.envs.load import NO_GYM, gym_spec, load_gym, load_tasks, make_gym
from mimesim.errors import ConfigError, UsageError
from mimesim.judges.base import Judge
from mimesim.models.load import preflight
from mimesim.rollout.driver import TurnHook
from mimesim.rollout.engine import (
    Cast,
    EngineConfig,
    Job,
    RunSummary,
    episode_seed,
    run_episodes,
)
from mimesim.rollout.events import OnEvent
from mimesim.rollout.grading import Grader, Verdict
from mimesim.rollout.limits import Limits
from mimesim.rollout.record import task_ref
from mimesim.rollout.store import Plan, Store, episode_id, run_id
from mimesim.scenarios import behaviors
from mimesim.seeds import derive
from mimesim.users.base import User, UserSource
from mimesim.users.load import make_user
from mimesim.users.scripted import ScriptedSource
from mimesim.users.scripted.kinds import plays

_FORMATS = {"compact": "line"}
"""Task profiles made for tiny policies: agents write the line grammar unless told otherwise."""
_LIMITS = Limits()
_OFFLINE_JUDGE = "rule"
"""Who judges where a gym needs a judge and none is named; its name stands in every result."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Everything that `mimesim run` can be told.

    Attributes:
        profile: task profile; None = the gym's default.
        split: train, validation or test; None = test, or the only one of the task file.
        tasks: task file; None = made by the gym from `seed`.
        scenarios: scenario file, played without a gym: the user and the agent just talk.
        behavior: only people whose scenario has this behavior, by id or name, or `neutral`.
        action_format: tool-call, line or plain; None = what suits the profile.
        episodes: (task, trial) pairs, cycled over the tasks in seed order.
        trials: how often each task is played at least.
        max_invalid: share of not counted episodes above which the exit code is 1.
        fail_under: metric (success, reward) -> lowest mean that is a pass.
    """

    gym: str = "support-desk"
    profile: str | None = None
    split: str | None = None
    tasks: Path | None = None
    scenarios: Path | None = None
    behavior: str | None = None
    agent: str = "scripted:eager"
    user: str = "scripted:realistic"
    judge: str | None = None
    action_format: str | None = None
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    user_options: Mapping[str, Any] = field(default_factory=dict)
    judge_options: Mapping[str, Any] = field(default_factory=dict)
    gym_options: Mapping[str, Any] = field(default_factory=dict)
    episodes: int = 20
    trials: int = 1
    seed: int = 0
    concurrency: int = 8
    retries: int = 2
    limits: Limits = _LIMITS
    max_invalid: float = 0.02
    fail_under: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "episodes", "trials", "concurrency")
        check_ranges(self, NATURAL, "retries")
        check_ranges(self, SHARE, "max_invalid")
        for name in self.fail_under:
            if name not in METRICS:
                raise ConfigError(
                    f"'fail_under' knows no metric {name!r}",
                    expected="one of " + ", ".join(METRICS),
                )


NEUTRAL = "neutral"
"""What `behavior` calls people without one."""
_MOST_DRAWN, _FIRST_WITHIN = 20_000, 1_000
"""People looked at in search of a behavior, and among how many the first is found if there is any;
rare ones are one in a hundred."""
METRICS = ("success", "reward")
"""What `fail_under` can ask for."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that is ready to start; its sources are open until `aclose`."""

    config: RunConfig
    jobs: tuple[Job, ...]
    cast: Cast
    plan: Plan
    judge: Judge | None

    async def preflight(self) -> None:
        """Check the endpoints of all parties.

        Raises:
            EnvironmentFault: one is not reachable or refuses the key; one line.
        """
        for party in (self.cast.agent, self.cast.user, self.judge):
            if party is not None:
                await preflight(party)

    async def aclose(self) -> None:
        """Close the sources."""
        async with AsyncExitStack() as stack:
            for party in (self.cast.agent, self.cast.user, self.judge):
                if party is not None:
                    stack.push_async_callback(party.aclose)


@dataclass(frozen=True, slots=True)
class Given:
    """What is here as an object, and needs no name; None = as the configuration says.

    Attributes:
        agent: a callable, a class or an `AgentSource`.
        user: who plays the user.
        tasks: the people of a conversation without a gym, of `envs.conversation.tasks_of`.
        verdict: decides on success where the gym leaves it open.
        label: tells apart runs that are otherwise the same.
    """

    agent: Any = None
    user: UserSource | None = None
    tasks: tuple[Task, ...] | None = None
    verdict: Verdict | None = None
    label: str = ""


_NOTHING = Given()


def prepare(config: RunConfig, given: Given = _NOTHING) -> Prepared:
    """Resolve names, load tasks and make the parties; no model is called.

    Raises:
        UsageError: an unknown name, a bad file, a party that cannot be made.
    """
    if config.scenarios is not None or given.tasks is not None:
        config = _without_gym(config, own_agent=given.agent is None)
    profile = config.profile or load_gym(config.gym).profiles[0]
    spec = gym_spec(config.gym, profile)
    config = replace(config, profile=profile)
    usual = "plain" if config.gym == NO_GYM else _FORMATS.get(profile, "tool-call")
    written = config.action_format or usual
    if config.judge is None and spec.needs_judge:
        config = replace(config, judge=_OFFLINE_JUDGE)
    if spec.scored and given.verdict is not None:
        raise UsageError(
            f"gym {config.gym!r} decides on success itself",
            expected="no success function beside it",
        )
    user = _user(config, given) if spec.needs_user else None
    if config.behavior is not None:
        _check_plays(user, config.behavior)
    tasks = _tasks(config, given.tasks)
    config = replace(config, split=config.split or tasks[0].split)
    judge = _judge(config)
    if given.agent is None:
        agent = make_agent(config.agent, action_format=written, options=config.agent_options)
    else:
        agent = given_agent(given.agent, get_format(written))
    if isinstance(agent, GymAgents):
        agent.check(tasks[0])

    def gym(task: Task, person: User | None) -> GymEnv:
        return make_gym(
            config.gym,
            profile=profile,
            user=cast(User, person),  # None only where the gym needs no user
            judge=judge,
            options=config.gym_options,
        )

    if config.gym_options:
        gym(tasks[0], None)  # a wrong option is told before a folder is made
    grade = None if spec.scored else Grader(given.verdict, judge).grade
    party = Cast(agent, gym, get_format(written), user, judge.identity if judge else None, grade)
    pairs = ((task, trial) for trial in naturals() for task in tasks)
    jobs = tuple(Job(task, trial) for task, trial in islice(pairs, config.episodes))
    plan = _plan(config, written, party, jobs)
    if given.label:
        plan = replace(plan, identity={**plan.identity, "label": given.label})
    return Prepared(config, jobs, party, plan, judge)


async def execute(
    prepared: Prepared,
    *,
    store: Store | None = None,
    on_event: OnEvent | None = None,
    hooks: tuple[TurnHook, ...] = (),
) -> RunSummary:
    """Check the endpoints, run everything that is not done yet, and close the sources.

    Raises:
        UsageError: the surroundings are wrong; everything finished is in the store.
    """
    config = prepared.config
    engine = EngineConfig(
        seed=config.seed,
        run_id=run_id(prepared.plan.identity),
        concurrency=config.concurrency,
        retries=config.retries,
        limits=config.limits,
        hooks=hooks,
    )
    pending = store is None or any(
        episode_id(store.run_id, *pair) not in store.kept for pair in prepared.plan.pairs
    )
    try:
        if pending:
            await prepared.preflight()
        return await run_episodes(
            prepared.jobs, prepared.cast, engine, store=store, on_event=on_event
        )
    finally:
        await prepared.aclose()


def _user(config: RunConfig, given: Given) -> UserSource:
    if given.user is not None:
        return given.user
    return make_user(config.user, options=config.user_options)


def _without_gym(config: RunConfig, *, own_agent: bool) -> RunConfig:
    """Return the configuration of a conversation without a gym.

    Args:
        config: what was asked for.
        own_agent: whether the agent is the one that the configuration names.

    Raises:
        UsageError: it names what only a gym has.
    """
    odd = [name for name in ("tasks", "profile") if getattr(config, name) not in (None, "default")]
    if odd or config.gym not in (NO_GYM, RunConfig().gym) or config.gym_options:
        raise UsageError(
            "a scenario file is played without a gym",
            where="scenarios",
            expected=f"no {odd[0] if odd else 'gym'} beside it",
        )
    if own_agent and config.agent.partition(":")[0] in ("scripted", "oracle", "null"):
        raise UsageError(
            f"the agent {config.agent!r} belongs to a gym, and a scenario file is played without",
            expected="--agent python:<module:callable>, model:<model> or http:<url>",
        )
    return replace(config, gym=NO_GYM)


def _tasks(config: RunConfig, given: tuple[Task, ...] | None) -> list[Task]:
    """Return the tasks of the first round, at least one.

    Raises:
        UsageError: there is none, or a bad file.
    """
    needed = -(-config.episodes // config.trials)
    if config.behavior is not None:
        return _behaving(config, needed, given)
    return _load(config, needed, given)


def _load(config: RunConfig, count: int, given: tuple[Task, ...] | None) -> list[Task]:
    if given is not None:
        return list(given[:count])
    if config.scenarios is not None:
        return read_scenarios(config.scenarios)[:count]
    return load_tasks(
        config.gym,
        profile=config.profile,
        split=config.split,
        seed=config.seed,
        count=count,
        path=config.tasks,
    )


def _behaving(config: RunConfig, needed: int, given: tuple[Task, ...] | None) -> list[Task]:
    """Return tasks whose person has the behavior that was asked for, in their usual order.

    Raises:
        UnknownNameError: no such behavior.
        UsageError: no person has it.
    """
    assert config.behavior is not None
    wanted = _wanted(config.behavior)
    seen, count = -1, needed
    while True:
        tasks = _load(config, count, given)
        fitting = [task for task in tasks if _behavior_ids(task) == wanted]
        most = _MOST_DRAWN if fitting else _FIRST_WITHIN
        if len(fitting) >= needed or len(tasks) == seen or len(tasks) > most:
            break
        seen, count = len(tasks), 4 * count
    if not fitting:
        raise UsageError(
            f"none of {len(tasks)} people has behavior {config.behavior!r}",
            expected="people whose scenario names it: those of gym support-desk, profile full, "
            "have B1 to B13, those of a scenario file what stands there",
        )
    return fitting[:needed]


def _wanted(behavior: str) -> list[str]:
    return [] if behavior == NEUTRAL else [behaviors.get(behavior).id]


def _check_plays(user: UserSource | None, behavior: str) -> None:
    """Refuse a script that would not do what the people it plays are chosen for.

    Raises:
        UnknownNameError: no such behavior.
        UsageError: it is another script.
    """
    wanted = _wanted(behavior)
    if isinstance(user, ScriptedSource) and not plays(user.kind, wanted):
        raise UsageError(
            f"user 'scripted:{user.kind}' does not play behavior {behavior!r} and nothing else",
            expected="scripted:realistic for B1 to B13 and neutral, or a model for any",
        )


def _behavior_ids(task: Task) -> list[str]:
    return [str(one.get("id")) for one in task.scenario.get("behavior", [])]


def _judge(config: RunConfig) -> Judge | None:
    if config.judge is None:
        return None
    from mimesim.judges.load import make_judge

    return make_judge(config.judge, options=config.judge_options)


def _plan(config: RunConfig, written: str, party: Cast, jobs: tuple[Job, ...]) -> Plan:
    shown = configs.dump(config)
    decisive = (
        "gym",
        "profile",
        "split",
        "behavior",
        "seed",
        "agent_options",
        "user_options",
        "judge_options",
        "gym_options",
        "limits",
    )
    identity = {key: shown[key] for key in decisive}
    identity |= {
        "agent": _identity(party.agent.identity),
        "user": _identity(party.user.identity if party.user else None),
        "judge": _identity(party.judge),
        "action_format": written,
    }
    hashes = {job.task.id: task_ref(job.task).hash for job in jobs}
    return Plan(identity, shown, hashes, tuple((job.task.id, job.trial) for job in jobs))


def _identity(who: Identity | None) -> dict[str, Any] | None:
    if who is None:
        return None
    known = asdict(who)
    return known | {"name": configs.redact(who.name)}


def parties(prepared: Prepared) -> dict[str, Identity | None]:
    """Return who takes part: agent, user, judge."""
    user: UserSource | None = prepared.cast.user
    agent: AgentSource = prepared.cast.agent
    return {
        "agent": agent.identity,
        "user": user.identity if user else None,
        "judge": prepared.cast.judge,
    }


async def preview(prepared: Prepared) -> str:
    """Return what the agent of the first task is told first, without calling a model.

    A model-backed user is not asked for its opening line: only the task's public side is shown.
    """
    job, party = prepared.jobs[0], prepared.cast
    scripted = party.user is None or party.user.identity.kind == "scripted"
    if not scripted:
        return jsonio.dumps(dict(job.task.public), indent=1)
    seed = episode_seed(prepared.config.seed, job)
    user = party.user.start(job.task.scenario, seed=derive(seed, "user")) if party.user else None
    gym = party.make_gym(job.task, user)
    try:
        seen = await gym.reset(job.task, seed=derive(seed, "env"))
    finally:
        await gym.aclose()
    speaker = "user: " if user is not None else ""
    return f"{seen.system}\n\n{speaker}{seen.first_user}"
