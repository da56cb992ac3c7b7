"""How suites with judges have their conversations played: from scenarios, or in people's own talks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from mimesim.bench.suites.base import Simulation
from mimesim.bench.suites.questions import own_people
from mimesim.bench.suites.replay import check_reader, replay
from mimesim.bench.suites.sessions import Session, SessionSet, read_sessions
from mimesim.envs.conversation import tasks_of
from mimesim.errors import UsageError
from mimesim.rollout.engine import EngineConfig, RunSummary, wait
from mimesim.rollout.prepare import Given, RunConfig, execute, prepare
from mimesim.rollout.store import Store
from mimesim.users.load import make_user

ECHO = "model:scripted:echo"
"""Who answers in our own small sets where nobody is named: a script that repeats the user."""
QUICK = 4


def play_scenarios(
    scenarios: Sequence[Mapping[str, Any]], asked: Simulation, *, own: bool
) -> RunSummary:
    """Let the user talk to the partner, one conversation per scenario and seed.

    Args:
        scenarios: JSON values, see `scenarios.types.Scenario`.
        asked: who plays, and where to.
        own: whether they are our own, which a script may answer.

    Raises:
        UsageError: nobody answers, an unknown party, or a folder of another run.
    """
    partner = asked.partner or ("rule" if own else "")
    if not partner:
        raise UsageError("nobody answers the user", expected="--partner model:<model>")
    config = RunConfig(
        user=asked.user,
        user_options=asked.user_options,
        agent=ECHO if partner == "rule" else partner,
        episodes=len(scenarios) * len(asked.seeds),
        trials=len(asked.seeds),
        seed=asked.seeds[0],
        concurrency=asked.concurrency,
    )
    tasks = tasks_of((f"scenario {one['id']!r}", one) for one in scenarios)
    prepared = prepare(config, Given(tasks=tuple(tasks)))
    with closing(Store.open(asked.out, prepared.plan)) as store:
        return wait(execute(prepared, store=store, on_event=asked.on_event))


def play_goals(asked: Simulation, tasks: Sequence[str], *, turns: int) -> RunSummary:
    """Let the user pursue what people wanted, told as little as they were themselves.

    Args:
        asked: whose goals (`people`; empty = those of our own rows of `tasks`), who plays.
        tasks: see `questions.own_people`.
        turns: most messages of the user.

    Raises:
        UsageError: nobody's goal is known, or as `play_scenarios`.
    """
    people = _people(asked, tasks)
    scenarios = [_scenario(one, turns) for one in people.sessions if one.goal.strip()]
    if not scenarios:
        raise UsageError(
            "nobody's goal is known",
            where=people.name,
            expected="a `goal` beside the turns of each conversation",
            mend="without goals the user can write in these conversations instead: mimesim bench "
            "simulate turing-rl --human FILE --out out/replay, then --episodes out/replay",
        )
    return play_scenarios(scenarios, asked, own=not asked.people)


def play_places(asked: Simulation, tasks: Sequence[str]) -> RunSummary:
    """Let the user write at every place where a person wrote; see `bench.suites.replay`.

    Raises:
        UsageError: an unknown user, a scripted one in real people's talks, or a folder of another
            run.
    """
    user = make_user(asked.user, options=asked.user_options)
    if asked.people:
        check_reader(user)
    config = EngineConfig(seed=asked.seeds[0], concurrency=asked.concurrency)
    try:
        return replay(
            _people(asked, tasks), user, asked.out, config=config, on_event=asked.on_event
        )
    finally:
        wait(user.aclose())


def _people(asked: Simulation, tasks: Sequence[str]) -> SessionSet:
    limit = QUICK if asked.quick else asked.limit
    if asked.people:
        return read_sessions(asked.people, limit=limit)
    found = own_people(*tasks)
    return replace(found, sessions=found.sessions[:limit])


def _scenario(person: Session, turns: int) -> dict[str, Any]:
    profile = person.about.get("profile")
    background = profile.get("background", ()) if isinstance(profile, Mapping) else ()
    facts = {str(one["q"]): str(one["a"]) for one in background if one.get("a")}
    return {"id": person.id, "goal": person.goal, "facts": facts, "max_turns": turns}
