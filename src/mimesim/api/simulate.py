"""`mimesim.simulate`: an agent of yours and simulated users, in one call.

    result = mimesim.simulate(my_agent, ["get a refund for the blue kettle"], trials=3)
    assert result.success

It is `mimesim run` for objects: the same preparation, the same engine, the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from mimesim.api.people import Scenarios, people_of
from mimesim.api.results import Results
from mimesim.errors import ConfigError, UsageError
from mimesim.registry import closest
from mimesim.rollout.driver import TurnHook
from mimesim.rollout.engine import wait
from mimesim.rollout.events import OnEvent
from mimesim.rollout.grading import Verdict
from mimesim.rollout.limits import Limits
from mimesim.rollout.prepare import Given, Prepared, RunConfig, execute, prepare
from mimesim.rollout.store import Store
from mimesim.users.base import UserSource
from mimesim.users.given import CallableUsers

USER = "scripted:realistic"
"""Who plays the user when nobody is named."""

Users = str | Sequence[str] | Callable[..., Any] | UserSource
"""A door name, the lines to say, a function of the public messages, or a source."""


class Settings(TypedDict, total=False):
    """What `simulate` may be told beside agent, scenarios and user.

    Attributes:
        trials: conversations per scenario. limit: scenarios at most.
        seed: everything random comes from it.
        success: decides on an episode, beside the checks of its scenario; sync or async. A share
            of 1 is kept as the reward, and is a success only where it is 1.
        min_success: share of the conversations that must be a success for `result.success` to be
            true; 1 if left out.
        judge: door name of the judge that reads `success.criteria`.
        gym: a gym instead of scenarios, with `profile`, `tasks` and `episodes` as in `mimesim run`.
        max_turns: user messages at most. timeout: seconds of one conversation.
        concurrency: conversations at once. retries: new attempts at what user or network failed.
        out: run folder or X.jsonl to keep; what is there is replaced unless `resume`.
        agent_options, user_options, judge_options, gym_options: as on the command line.
        label: tells apart simulations that are otherwise the same, in ids and files.
        on_event: is told what happens. hooks: look on turn by turn.
    """

    trials: int
    limit: int
    seed: int
    success: Verdict
    min_success: float
    judge: str
    gym: str
    profile: str
    tasks: Path | str
    episodes: int
    max_turns: int
    timeout: float
    concurrency: int
    retries: int
    out: Path | str
    resume: bool
    agent_options: Mapping[str, Any]
    user_options: Mapping[str, Any]
    judge_options: Mapping[str, Any]
    gym_options: Mapping[str, Any]
    label: str
    on_event: OnEvent
    hooks: tuple[TurnHook, ...]


_PASSED_ON = (
    *("seed", "judge", "gym", "profile", "episodes", "concurrency", "retries"),
    *("agent_options", "user_options", "judge_options", "gym_options"),
)
"""Settings that `RunConfig` knows by the same name."""
_APART = ("agent", "scenarios", "user")
"""Arguments that are no settings."""
_WHOLE = ("trials", "limit", "seed", "episodes", "max_turns", "concurrency", "retries")
_REAL = ("min_success", "timeout")
_OPEN = ("limit", "max_turns", "timeout")
"""Numbers that None leaves open."""
_OF_A_GYM = ("gym", "profile", "tasks", "episodes", "gym_options")


def simulate(
    agent: Any,
    scenarios: Scenarios | None = None,
    *,
    user: Users = USER,
    **settings: Unpack[Settings],
) -> Results:
    """Let simulated users talk to `agent`, and return what came of it.

    Args:
        agent: a callable (sync or async, or an object with `reply`, or a class of such), whose
            parameters are chosen by name: `messages`, or `message`; `conversation_id` and others
            of `envs.agents.callables`; or a door name such as `model:<model>`.
        scenarios: a file, a pack, or a list of goals and scenarios; None with `gym`, or where
            `user` is a list of lines.
        user: a door name, the lines to say, a function of the public messages, or a source.
        settings: see `Settings`.

    Raises:
        UsageError: wrong use or surroundings; nothing that goes wrong inside one conversation.
    """
    return wait(asimulate(agent, scenarios, user=user, **settings))


async def asimulate(
    agent: Any,
    scenarios: Scenarios | None = None,
    *,
    user: Users = USER,
    **settings: Unpack[Settings],
) -> Results:
    """Do what `simulate` does inside a running event loop; see there.

    Args:
        agent: as `simulate`.
        scenarios: as `simulate`.
        user: as `simulate`.
        settings: as `simulate`.

    Raises:
        UsageError: as `simulate`.
    """
    plan = _plan(agent, scenarios, user, settings)
    store = _store(plan, settings)
    try:
        summary = await execute(
            plan,
            store=store,
            on_event=settings.get("on_event"),
            hooks=tuple(settings.get("hooks", ())),
        )
    finally:
        if store is not None:
            store.close()
    out = Path(settings["out"]) if "out" in settings else None
    return Results(summary, plan.config.seed, out, settings.get("min_success", 1.0))


@dataclass(frozen=True, slots=True)
class _Party:
    """Who plays the user: a name, lines, or a source."""

    name: str = USER
    lines: tuple[str, ...] = ()
    source: UserSource | None = None


def _plan(agent: Any, scenarios: Scenarios | None, user: Users, settings: Settings) -> Prepared:
    """Make ready what is to be run; no model is called."""
    _check(scenarios, settings)
    if agent is None:
        raise UsageError(
            "there is no agent", expected="a function, a class, an object with reply, or a name"
        )
    party = _party(user)
    given = Given(
        user=party.source, verdict=settings.get("success"), label=settings.get("label", "")
    )
    config = RunConfig(
        user=party.name,
        limits=Limits(
            max_turns=settings.get("max_turns"), seconds=settings.get("timeout", Limits().seconds)
        ),
        trials=settings.get("trials", 1),
        **{name: settings[name] for name in _PASSED_ON if name in settings},  # type: ignore[literal-required]
    )
    if "gym" in settings:
        if party.lines:
            raise UsageError("a gym tells its users what to say", expected="user=<door name>")
        tasks = Path(settings["tasks"]) if "tasks" in settings else None
        config = replace(config, tasks=tasks)
    else:
        people = people_of(
            scenarios, seed=config.seed, limit=settings.get("limit"), lines=party.lines
        )
        config = replace(config, episodes=len(people) * config.trials)
        given = replace(given, tasks=people)
    if isinstance(agent, str):
        return prepare(replace(config, agent=agent), given)
    return prepare(config, replace(given, agent=agent))


def _check(scenarios: Scenarios | None, settings: Settings) -> None:
    known = list(Settings.__annotations__)
    for name in settings:
        if name not in known:
            raise ConfigError(
                f"simulate has no setting {name!r}{closest(name, [*known, *_APART])}",
                expected="one of " + ", ".join(known),
            )
    _check_numbers(settings)
    if not callable(settings.get("success") or bool):
        raise ConfigError("success is no function", expected="a function of an episode")
    odd = [name for name in _OF_A_GYM if name in settings]
    if "gym" not in settings and odd:
        raise ConfigError(f"{odd[0]!r} belongs to a gym", expected="gym=<name> beside it")
    if "gym" in settings and scenarios is not None:
        raise ConfigError("a gym brings its own people", expected="either gym or scenarios")


def _check_numbers(settings: Settings) -> None:
    """Refuse what is no number here; which numbers make no run is told by `RunConfig`."""
    for name, value in settings.items():
        if value is None and name in _OPEN:
            continue
        if name in _WHOLE and type(value) is not int:
            raise ConfigError(f"{name} is {value!r}", expected="a whole number")
        if name in _REAL and type(value) not in (int, float):
            raise ConfigError(f"{name} is {value!r}", expected="a number")
    limit, needed = settings.get("limit"), settings.get("min_success", 1.0)
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit}", expected="1 or more scenarios")
    if not 0 <= needed <= 1:
        raise ConfigError(f"min_success is {needed!r}", expected="a share from 0 to 1")


def _party(user: Users) -> _Party:
    if isinstance(user, str):
        return _Party(user)
    if isinstance(user, list | tuple):
        if not user or not all(isinstance(line, str) and line.strip() for line in user):
            raise UsageError("the lines of a user are no texts", expected="a list of texts")
        return _Party("scripted:neutral", lines=tuple(user))
    if callable(user):
        return _Party(source=CallableUsers(user))
    if not isinstance(user, UserSource):
        raise UsageError(
            f"the user is of the type {type(user).__name__}",
            expected="a door name, a list of lines, a function of the messages, or a source",
        )
    return _Party(source=user)


def _store(plan: Prepared, settings: Settings) -> Store | None:
    """Open the place to keep the episodes: anew, since the code of an agent may have changed."""
    if "out" not in settings:
        return None
    return Store.open(settings["out"], plan.plan, overwrite=not settings.get("resume", False))
