"""Agents by name, and the ends of the scale."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from mimesim.dialogue.stop import StopReason
from mimesim.envs.actions import as_message
from mimesim.envs.agents.floors import floors
from mimesim.envs.agents.load import GymAgents, make_agent
from mimesim.envs.base import AgentView, Observation, StepResult, Task
from mimesim.envs.gyms.support_desk.full import FullDesk
from mimesim.envs.load import load_tasks, make_gym
from mimesim.envs.packs import holds_string
from mimesim.errors import ConfigError, EnvError, UnknownNameError
from mimesim.users.load import make_user


@pytest.mark.parametrize("profile", ["full", "compact"])
def test_floors_of_our_packs(profile: str) -> None:
    tasks = load_tasks("support-desk", profile=profile, split="test", seed=11, count=40)
    found = asyncio.run(floors(tasks, make_user("scripted:neutral"), seed=2))
    assert found.null <= 0.02
    assert found.oracle >= 0.95 * found.attainable
    assert found.sound
    assert found.random is not None
    assert found.random < 0.2
    assert found.to_json()["tasks"] == 40


async def _play(agent: str, user: str, task: Task, seed: int) -> list[StepResult]:
    env = make_gym(
        "support-desk",
        profile=task.public["profile"],
        user=make_user(user).start(task.scenario, seed=seed),
    )
    player = make_agent(agent).start(task=task, seed=seed, key=f"e{seed}")
    observation = await env.reset(task, seed=seed)
    history, results = [], []
    for step in range(env.spec.max_steps):
        left = env.spec.max_steps - step
        move = await player.act(AgentView(observation, tuple(history), step, left))
        assert move.action is not None
        result = await env.step(move.action)
        history += [as_message(move.action), *result.feedback]
        results.append(result)
        if isinstance(env, FullDesk):
            shown = "\n".join(message.content for message in result.feedback)
            assert not [s for s in env.forbidden() if holds_string(shown, s)]
            reply = result.private.reply
            if reply is not None and reply.thought:
                assert reply.thought.reveal() not in shown
        if result.done:
            break
    await player.aclose()
    return results


def mean_success(agent: str, user: str, profile: str, count: int = 40) -> float:
    async def everyone() -> float:
        tasks = load_tasks("support-desk", profile=profile, split="test", seed=3, count=count)
        ends = [(await _play(agent, user, task, n))[-1] for n, task in enumerate(tasks)]
        assert all(end.done and end.reason is not StopReason.AGENT_INVALID for end in ends)
        return sum(end.success is True for end in ends) / count

    return asyncio.run(everyone())


@pytest.mark.parametrize("profile", ["full", "compact"])
def test_scripted_agents_solve_much_with_an_easy_user_and_less_with_a_real_one(
    profile: str,
) -> None:
    for agent in ("eager", "patient"):
        easy = mean_success(f"scripted:{agent}", "scripted:cooperative", profile)
        assert easy >= 0.6
    eager = mean_success("scripted:eager", "scripted:realistic", profile)
    patient = mean_success("scripted:patient", "scripted:realistic", profile)
    assert patient > eager


@pytest.mark.parametrize("user", [f"scripted:B{n}" for n in range(1, 14)])
def test_every_behavior_leaks_nothing_of_its_directive(user: str) -> None:
    async def everyone() -> None:
        tasks = load_tasks("support-desk", split="train", seed=6, count=10)
        for number, task in enumerate(tasks):
            await _play("scripted:patient", user, task, number)

    asyncio.run(everyone())


def test_equal_seeds_give_equal_conversations() -> None:
    (task,) = load_tasks("support-desk", split="train", seed=8, count=1)
    plays = [
        asyncio.run(_play("scripted:patient", "scripted:realistic", task, 4)) for _ in range(2)
    ]
    first, second = ([(r.feedback, r.reward) for r in results] for results in plays)
    assert first == second


def test_unknown_names_are_told() -> None:
    with pytest.raises(UnknownNameError, match="eager"):
        make_agent("scripted:eagr")
    with pytest.raises(UnknownNameError, match="oracle"):
        make_agent("orakle")
    with pytest.raises(UnknownNameError, match="line"):
        make_agent("null", action_format="lines")
    with pytest.raises(ConfigError, match="no option"):
        make_agent("oracle", options={"temperature": 1})


def test_an_agent_that_a_gym_lacks_is_told_before_anything_runs() -> None:
    (task,) = load_tasks("turtle", count=1)
    eager, random = make_agent("scripted:eager"), make_agent("scripted:random")
    assert isinstance(eager, GymAgents)
    assert isinstance(random, GymAgents)
    random.check(task)
    with pytest.raises(UnknownNameError) as caught:
        eager.check(task)
    told = str(caught.value)
    assert "gym 'turtle' has no agent 'scripted:eager'" in told
    assert "oracle, null, scripted:random" in told
    assert "--agent" in told


def test_floors_know_a_gym_without_a_random_agent() -> None:
    tasks = load_tasks("function", profile="compact", count=2)
    foreign = [replace(task, gym="tests.support.gyms:FEWER") for task in tasks]
    found = asyncio.run(floors(foreign, make_user("scripted:neutral")))
    assert (found.random, found.oracle) == (None, 1.0)


def test_a_gyms_own_agent_that_breaks_scores_nothing() -> None:
    (task,) = load_tasks("support-desk", profile="compact", count=1)
    broken = replace(task, public={**task.public, "policy": 5})
    agent = make_agent("scripted:eager").start(task=broken, seed=1, key="e")
    with pytest.raises(EnvError, match="the gym's own agent broke") as caught:
        asyncio.run(agent.act(AgentView(Observation("", "hello"), (), 8, 1)))
    assert caught.value.reason == "internal_error"


def test_unknown_gym_options_are_refused_in_both_profiles() -> None:
    user = make_user("scripted:neutral")
    for profile in ("full", "compact"):
        (task,) = load_tasks("support-desk", profile=profile, count=1)
        with pytest.raises(ConfigError, match="no option 'patience'"):
            make_gym(
                "support-desk",
                profile=profile,
                user=user.start(task.scenario, seed=1),
                options={"patience": 3},
            )
