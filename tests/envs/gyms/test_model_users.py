"""Every gym that asks a user can be played with a model-backed one, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from mimesim.envs.base import AgentAction, Choice
from mimesim.envs.load import REGISTRY, gym_spec, load_tasks, make_gym
from mimesim.errors import JudgeError, UserError
from mimesim.judges.base import Judge
from mimesim.judges.load import make_judge
from mimesim.judges.rule import RuleJudge
from mimesim.users import kinds
from mimesim.users.load import make_user
from tests.support.gyms import Person, Played, Table, play
from tests.support.stub_server import StubRequest, StubServer

ASKED = [name for name in REGISTRY.names() if name != "support-desk" and gym_spec(name).needs_user]
FRAME = "You are a person in an exchange"


def answer(request: StubRequest) -> str:
    """Answer as a person who thinks aloud first."""
    system = str(request.body["messages"][0]["content"])
    said = "Yes." if "one of these words" in system else "That suits me well."
    return f"<think>what now</think>\n\n{said}"


def episode(
    name: str, server: StubServer, options: Mapping[str, Any] | None = None
) -> tuple[Played, Table]:
    """Play one task with the gym's own oracle and a user behind `server`."""

    async def run() -> tuple[Played, Table]:
        task = load_tasks(name, split="test", seed=5, count=1)[0]
        source = make_user(f"roleplay:openai:stub@{server.url}")
        person = Person(source.start(task.scenario, seed=1))
        judge: Any = RuleJudge()
        env = make_gym(name, user=person, judge=judge, options=options)
        at = Table(env, task, person, judge)
        try:
            return await play(at, "oracle"), at
        finally:
            await source.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize("name", ASKED)
def test_an_episode_with_a_model_as_user(name: str) -> None:
    with StubServer(answer) as server:
        played, at = episode(name, server)
        bodies = [sent.body for sent in server.generations]
    assert played.results[-1].done
    assert {f"user/kinds/{heard.kind}" for heard in at.person.heard} <= kinds.templates()
    assert len(bodies) >= len(at.person.heard) > 0
    assert all(body["messages"][0]["content"].startswith(FRAME) for body in bodies)
    shown = [message.content for result in played.results for message in result.feedback]
    assert not any("what now" in text or "Yes." in text for text in shown)


@pytest.mark.parametrize("name", ["telepathy", "turtle"])
def test_tu_10_under_compat_a_thinking_user_fails_every_question(name: str) -> None:
    """TU-10: the turn is spent, pays nothing and shows a canned line."""
    with StubServer(answer) as server:
        played, _ = episode(name, server, {"compat": "userrl"})
        with pytest.raises(UserError, match="leftover_tag"):
            episode(name, server, {"json_parser": "python_literal"})
    asked = [r for a, r in zip(played.actions, played.results, strict=True) if a.choice == "action"]
    assert asked
    assert {(r.reward, len(r.feedback), r.private.reply) for r in asked} == {(0.0, 1, None)}


@pytest.mark.parametrize("name", ["telepathy", "turtle"])
def test_tu_09_under_compat_the_reply_is_shown_as_it_is(name: str) -> None:
    """TU-09."""
    for options, shown in ((None, "Yes"), ({"compat": "userrl"}, "yes.")):
        with StubServer(["yes."]) as server:
            played, _ = episode(name, server, options)
        assert played.results[0].feedback[0].content == shown


@pytest.mark.parametrize(
    ("options", "read"), [(None, True), ({"json_parser": "python_literal"}, False)]
)
def test_p_08_a_judge_model_is_read_as_the_gym_says(
    options: dict[str, Any] | None, *, read: bool
) -> None:
    """P-08 in a gym: JSON's `true` is no Python literal."""
    task = load_tasks("telepathy", split="test", seed=5, count=1)[0]
    with StubServer(['{"correct": true}']) as server:

        async def run() -> float:
            judge: Judge = make_judge(f"model:openai:stub@{server.url}")
            user = make_user("scripted:neutral").start(task.scenario, seed=1)
            env = make_gym("telepathy", user=user, judge=judge, options=options)
            try:
                await env.reset(task, seed=1)
                return (await env.step(AgentAction(Choice.ANSWER, "some odd thing"))).reward
            finally:
                await judge.aclose()

        if read:
            assert asyncio.run(run()) == 1.0
        else:
            with pytest.raises(JudgeError, match="Python literal"):
                asyncio.run(run())
