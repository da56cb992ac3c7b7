"""What every gym of the registry keeps: bounds, ends, seeds, snapshots, secrets, failures.

A gym that is registered later is tested here without a line of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimesim import jsonio
from mimesim.dialogue.episode import Episode, without_times
from mimesim.dialogue.stop import Status, StopReason
from mimesim.dialogue.types import Identity
from mimesim.envs.actions import MAX_CONTENT, TOOL, get_format
from mimesim.envs.agents.floors import TASKS, USER, floors, stored
from mimesim.envs.agents.load import GymAgents
from mimesim.envs.base import AgentAction, AgentMove, AgentView, Choice, GymSpec, StepResult, Task
from mimesim.envs.load import REGISTRY, check_tasks, gym_spec, load_gym, load_tasks, make_gym
from mimesim.envs.turns.law import leaks
from mimesim.errors import CallerError, EnvironmentFault, InfraError, JudgeError, UserError
from mimesim.judges.base import Judge
from mimesim.judges.rule import RuleJudge
from mimesim.rollout.engine import Cast, EngineConfig, Job, run_episodes
from mimesim.rollout.limits import Limits
from mimesim.users.load import make_user
from tests.support.gyms import CANARY, People, Played, Referee, Table, plain, play, table


def available(name: str, profile: str) -> bool:
    """Tell whether tasks can be made here: some profiles need a user's copy of foreign data."""
    try:
        load_tasks(name, profile=profile, count=1)
    except EnvironmentFault:
        return False
    return True


CASES = [(n, p) for n in REGISTRY.names() for p in load_gym(n).profiles if available(n, p)]
TURNS = [case for case in CASES if case[0] != "support-desk"]
"""Gyms under the law of `envs.turns.law`; the desk is older, and its own tests say the same."""
ASKED = [case for case in CASES if gym_spec(*case).needs_user]
JUDGED = [case for case in CASES if gym_spec(*case).needs_judge]


def each(cases: list[tuple[str, str]]) -> pytest.MarkDecorator:
    """Run a test once for each of these gyms."""
    return pytest.mark.parametrize(("name", "profile"), cases, ids=["-".join(c) for c in cases])


EVERY = each(CASES)
AGENTS = ("oracle", "null", "random")
REASONING = "agent-plan-5521"


@cache
def tasks_of(name: str, profile: str, count: int = 3, split: str = "test") -> tuple[Task, ...]:
    return tuple(load_tasks(name, profile=profile, split=split, seed=5, count=count))


def forbidden(at: Table) -> list[str]:
    found: list[str] = at.env.forbidden()  # type: ignore[attr-defined]
    return found


def texts(result: StepResult) -> list[str]:
    return [message.content for message in result.feedback]


class Watch:
    """Looks at every step of an episode."""

    def __init__(self, at: Table, own: Sequence[str] = ()) -> None:
        self._at = at
        self._own = list(own)

    def __call__(self, played: Played) -> None:
        """Check the last step."""
        result, spec = played.results[-1], self._at.env.spec
        low, high = spec.step_bounds
        assert low - 1e-9 <= result.reward <= high + 1e-9
        assert not (result.terminated and result.truncated)
        assert (result.reason is None) == (not result.done) == (result.success is None)
        if result.truncated:
            assert len(played.results) == spec.max_steps
        self._own.append(played.actions[-1].content)
        shown = texts(result)
        assert leaks(shown, forbidden(self._at), self._own) == []
        assert not any(CANARY in text or "reward:" in text.lower() for text in shown)
        jsonio.dumps(self._at.env.snapshot())


def watched(task: Task, agent: Any, *, seed: int = 0, **parties: Any) -> Played:
    """Play an episode that is looked at, and check its end."""
    at = table(task, seed=seed, **parties)
    played = asyncio.run(play(at, agent, seed=seed, after=Watch(at)))
    assert played.results[-1].done
    assert len(played.results) <= at.env.spec.max_steps
    assert CANARY not in played.observation.system + played.observation.first_user
    with pytest.raises(CallerError):
        asyncio.run(at.env.step(played.actions[-1]))
    return played


@EVERY
def test_its_facts_hold_together(name: str, profile: str) -> None:
    spec = gym_spec(name, profile)
    assert spec.name == name
    assert spec.summary
    assert spec.choices
    low, high = spec.step_bounds
    assert low <= 0.0 <= high <= max(1.0, spec.return_bound)
    assert 0 < spec.max_steps <= 16


@EVERY
def test_its_tasks_are_sound_and_the_same_for_equal_seeds(name: str, profile: str) -> None:
    made = [
        task
        for split in ("train", "test")
        for task in load_tasks(name, profile=profile, split=split, seed=5, count=10)
    ]
    again = load_tasks(name, profile=profile, split="train", seed=5, count=10)
    assert made[: len(again)] == again
    assert check_tasks(made) == []
    assert {task.gym for task in made} == {name}


@EVERY
def test_the_ends_of_its_scale_are_those_it_comes_with(name: str, profile: str) -> None:
    tasks = load_tasks(name, profile=profile, seed=0, count=TASKS)
    found = asyncio.run(floors(tasks, make_user(USER)))
    assert found.sound, found
    assert found.random is not None
    assert found.random < found.oracle
    known = stored(name, profile)
    assert known is not None, "python -m benchmarks.floors"
    assert found.to_json() == pytest.approx(dict(known))


@each(TURNS)
def test_the_oracle_succeeds_under_compat_too(name: str, profile: str) -> None:
    for task in tasks_of(name, profile, 12):
        at = table(task, seed=1, options={"compat": "userrl"})
        assert asyncio.run(play(at, "oracle", seed=1)).results[-1].success, task.id


@EVERY
@pytest.mark.parametrize("agent", AGENTS)
def test_bounds_ends_and_secrets(name: str, profile: str, agent: str) -> None:
    gym = load_gym(name)
    for number, task in enumerate(tasks_of(name, profile)):
        for kind in ("neutral", "realistic", "hostile"):
            played = watched(task, agent, seed=number, kind=f"scripted:{kind}")
            assert played.total <= gym.attainable(task) + 1e-6
            assert played.total <= gym_spec(name, profile).return_bound + 1e-6


@pytest.mark.slow
@EVERY
def test_bounds_and_secrets_in_500_random_episodes(name: str, profile: str) -> None:
    pool = tasks_of(name, profile, 40)
    for number in range(500):
        kind = ("neutral", "realistic", "hostile", "cooperative")[number % 4]
        watched(pool[number % len(pool)], "random", seed=number, kind=f"scripted:{kind}")


@EVERY
@pytest.mark.parametrize("agent", AGENTS)
def test_equal_seeds_give_equal_transcripts(name: str, profile: str, agent: str) -> None:
    task = tasks_of(name, profile)[0]
    plays = [watched(task, agent, seed=4, kind="scripted:realistic") for _ in range(2)]
    first, second = (played.transcript() for played in plays)
    assert first == second


@EVERY
@pytest.mark.parametrize("agent", ["oracle", "random"])
def test_the_law_of_snapshots_at_every_step(name: str, profile: str, agent: str) -> None:
    task = tasks_of(name, profile)[0]
    guide, at, other = (table(task, seed=6, kind="scripted:realistic") for _ in range(3))
    actions = asyncio.run(play(guide, agent, seed=6)).actions
    for one in (at, other):
        asyncio.run(one.env.reset(task, seed=6))
    for action in actions:
        state = jsonio.loads(jsonio.dumps(at.env.snapshot()))
        result = asyncio.run(at.env.step(action))
        end = jsonio.dumps(at.env.snapshot())
        for again in (at, other):
            again.env.restore(state)
            assert jsonio.loads(jsonio.dumps(again.env.snapshot())) == state
            assert plain(asyncio.run(again.env.step(action))) == plain(result)
            assert jsonio.dumps(again.env.snapshot()) == end


@EVERY
def test_a_state_of_another_task_is_refused(name: str, profile: str) -> None:
    first, second = (table(task) for task in tasks_of(name, profile)[:2])
    for at in (first, second):
        asyncio.run(at.env.reset(at.task, seed=0))
    with pytest.raises(CallerError):
        second.env.restore(first.env.snapshot())


# Agents that write anything ---------------------------------------------------------------------

LONG = "x" * 100_000
"""Stands for LONG in the texts below, which hypothesis can print."""
WORDS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "",
            " ",
            "\u200b",
            "[finish]",
            "[answer] yes",
            "###",
            "{}",
            "null",
            "test",
            "tools",
            "help",
        ]
    ),
    st.sampled_from(["Is it big?", "What would you like?", "I disagree.", "1 2 3 4", "H1", "12"]),
    st.sampled_from(["LONG", "Is it LONG?"]),
    st.just(f"<think>{REASONING}</think>What would you like?"),
)
VALUES = st.one_of(WORDS, st.integers(), st.floats(), st.none(), st.booleans(), st.just([1]))
CALLS = st.fixed_dictionaries(
    {
        "choice": st.one_of(st.sampled_from([*map(str, Choice), "Answer ", "dance"]), VALUES),
        "content": VALUES,
    },
    optional={"extra": VALUES},
)


def written(call: Any) -> str:
    """Return a call as models write it; what JSON cannot hold becomes null."""
    kept = {k: None if isinstance(v, float) and v != v else v for k, v in call.items()}
    finite = {k: None if v in (float("inf"), float("-inf")) else v for k, v in kept.items()}
    return jsonio.dumps(finite)


TEXTS = st.one_of(
    CALLS.map(written),
    CALLS.map(lambda call: f'{{"name": "{TOOL}", "arguments": {written(call)}}}'),
    st.tuples(CALLS, CALLS).map(lambda two: "\n".join(map(written, two))),
    WORDS,
)


class Writer:
    """Writes given texts in the tool-call format, the last one for ever."""

    def __init__(self, spec: GymSpec, texts: Sequence[str]) -> None:
        self._spec = spec
        self._texts = texts

    async def act(self, view: AgentView) -> AgentMove:
        """Write the next text."""
        text = self._texts[min(view.step, len(self._texts) - 1)].replace("LONG", LONG)
        move = AgentMove(text)
        return AgentMove(text, get_format("tool-call").parse(move, self._spec))

    async def aclose(self) -> None:
        """Release nothing."""


@EVERY
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_no_text_of_an_agent_breaks_it(name: str, profile: str, texts: list[str]) -> None:
    task = tasks_of(name, profile)[0]
    played = watched(task, Writer(gym_spec(name, profile), texts))
    assert played.total <= load_gym(name).attainable(task) + 1e-6


@each(TURNS)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(moves=st.lists(st.tuples(st.sampled_from(Choice), WORDS), min_size=1, max_size=6))
@pytest.mark.parametrize("compat", ["", "userrl", "mimesis"])
def test_no_typed_action_breaks_it(
    name: str, profile: str, compat: str, moves: list[tuple[Choice, str]]
) -> None:
    task = tasks_of(name, profile)[0]
    at = table(task, options={"compat": compat, "phase": "train"} if compat else None)
    low, high = at.env.spec.step_bounds
    asyncio.run(at.env.reset(task, seed=1))
    for number in range(at.env.spec.max_steps):
        choice, content = moves[number % len(moves)]
        result = asyncio.run(at.env.step(AgentAction(choice, content.replace("LONG", LONG))))
        assert low - 1e-9 <= result.reward <= high + 1e-9
        assert not (result.terminated and result.truncated)
        assert not any(CANARY in text for text in texts(result))
        if result.done:
            break
    assert result.done


@EVERY
def test_reasoning_of_an_agent_reaches_neither_person_nor_judge(name: str, profile: str) -> None:
    task = tasks_of(name, profile)[0]
    spec = gym_spec(name, profile)
    for choice in spec.choices:
        content = f"<think>{REASONING}</think>What would you like, and why?"
        call = jsonio.dumps({"choice": choice.value, "content": content})
        at = table(task)
        played = asyncio.run(play(at, Writer(spec, [call]), seed=2))
        heard = jsonio.dumps(
            [
                [[r.agent_text, *(m.content for m in r.history)] for r in at.person.heard],
                [dict(request.inputs) for request in at.referee.asked],
                [texts(result) for result in played.results],
            ]
        )
        assert REASONING not in heard


# Failures ---------------------------------------------------------------------------------------


@each([case for case in ASKED if case in TURNS])
@pytest.mark.parametrize("agent", ["oracle", "random"])
@pytest.mark.parametrize("error", [UserError("broke", retryable=True), InfraError("no answer")])
def test_a_person_that_fails_once_at_everything_changes_nothing(
    name: str, profile: str, agent: str, error: Exception
) -> None:
    task = tasks_of(name, profile)[0]
    at = table(task, seed=3, fails=[error, None] * 40)
    calm = asyncio.run(play(table(task, seed=3), agent, seed=3))
    assert patient(at, calm, seed=3) == calm.transcript()


@each(JUDGED)
@pytest.mark.parametrize("agent", ["oracle", "random"])
@pytest.mark.parametrize("error", [JudgeError("unreadable"), InfraError("no answer")])
def test_a_judge_that_fails_once_at_everything_changes_nothing(
    name: str, profile: str, agent: str, error: Exception
) -> None:
    task = tasks_of(name, profile)[0]
    calm = asyncio.run(play(table(task, seed=3), agent, seed=3))
    at = table(task, seed=3, judge_fails=[error, None] * 40)
    assert patient(at, calm, seed=3) == calm.transcript()


def patient(at: Table, guide: Played, *, seed: int) -> str:
    """Take the steps of another episode, each until it succeeds; nothing may change meanwhile."""

    async def insist(attempt: Callable[[], Any]) -> Any:
        for _ in range(9):
            before = seen(at)
            try:
                return await attempt()
            except (UserError, JudgeError, InfraError):
                assert seen(at) == before
        raise AssertionError("it never succeeded")

    async def whole() -> Played:
        played = Played(await insist(lambda: at.env.reset(at.task, seed=seed)))
        for action in guide.actions:
            played.results.append(await insist(lambda one=action: at.env.step(one)))
        return played

    return asyncio.run(whole()).transcript()


def seen(at: Table) -> Any:
    """Return the state without the count of failures; None before the start."""
    try:
        return at.env.snapshot() | {"failures": 0}
    except CallerError:
        return None


def engine(
    name: str,
    profile: str,
    agent: str,
    *,
    people: People | None = None,
    judge: Callable[[], Judge] = RuleJudge,
    jobs: int = 3,
    concurrency: int = 8,
    most_steps: int | None = None,
) -> list[Episode]:
    """Run episodes through the engine and return their records."""

    def gym(task: Task, person: Any) -> Any:
        return make_gym(name, profile=profile, user=person, judge=judge())

    source = GymAgents(agent, Identity("scripted", agent))
    crew = Cast(source, gym, get_format("tool-call"), people or People("scripted:realistic"))
    pool = tasks_of(name, profile, 16)
    work = [Job(pool[n % len(pool)], n // len(pool)) for n in range(jobs)]
    config = EngineConfig(
        seed=9, run_id="r", concurrency=concurrency, retries=0, limits=Limits(max_steps=most_steps)
    )
    return list(asyncio.run(run_episodes(work, crew, config)).episodes)


@each(ASKED)
@pytest.mark.parametrize("agent", ["oracle", "random"])
def test_what_the_persons_infrastructure_fails_is_never_scored(
    name: str, profile: str, agent: str
) -> None:
    people = People("scripted:realistic", fails=[InfraError("no answer")] * 99)
    records = engine(name, profile, agent, people=people, concurrency=1)
    asked = [bool(person.heard) for person in people.made]
    assert agent != "oracle" or any(asked) or name == "telepathy"
    check_unscored(records, asked)


@each(JUDGED)
@pytest.mark.parametrize("agent", ["oracle", "random"])
def test_what_the_judges_infrastructure_fails_is_never_scored(
    name: str, profile: str, agent: str
) -> None:
    judges: list[Referee] = []

    def referee() -> Judge:
        judges.append(Referee(fails=[InfraError("no answer")] * 99))
        return judges[-1]

    records = engine(name, profile, agent, judge=referee, concurrency=1)
    check_unscored(records, [bool(judge.asked) for judge in judges])


def check_unscored(records: list[Episode], failed: list[bool]) -> None:
    """Check that just the episodes whose party was asked are failures without a score."""
    assert [record.stop.reason == StopReason.INFRA_ERROR for record in records] == failed
    for record in records:
        if record.stop.reason == StopReason.INFRA_ERROR:
            assert record.outcome.status is Status.INFRA_FAILURE
            assert record.outcome.success is None
            assert record.outcome.reward is None


# Surroundings -----------------------------------------------------------------------------------


@EVERY
def test_it_needs_no_environment_and_no_key(
    name: str, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in list(os.environ):
        monkeypatch.delenv(key)
    assert watched(tasks_of(name, profile)[0], "oracle").results


@EVERY
def test_64_episodes_at_once_do_not_hear_one_another(name: str, profile: str) -> None:
    def runs(jobs: int, concurrency: int) -> list[str]:
        found = engine(name, profile, "random", jobs=jobs, concurrency=concurrency, most_steps=5)
        return [jsonio.dumps(without_times(episode.to_json())) for episode in found]

    together = runs(64, concurrency=64)
    assert len(set(together)) == 64
    assert together[:16] == runs(16, concurrency=1)


def test_every_gym_is_tested_here() -> None:
    assert {name for name, _ in CASES} == set(REGISTRY.names())


def test_long_contents_are_longer_than_may_be() -> None:
    assert len(LONG) > MAX_CONTENT
