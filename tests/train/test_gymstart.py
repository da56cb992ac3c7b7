"""Warm start of a tiny agent from a gym's own agents."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from mimesim.errors import ConfigError, UnknownNameError
from mimesim.models.tiny import TinyConfig
from mimesim.train.agent import AgentConfig, train_agent
from mimesim.train.gymstart import GymStartConfig, Shown, ShownConfig, demonstrate, gym_start

PLACES = [("function", "compact"), ("tau", "mini")]


def shown(gym: str, profile: str, **more: object) -> list[Shown]:
    config = replace(ShownConfig(gym=gym, profile=profile, rows=12), **more)
    return asyncio.run(demonstrate(config, 3))


@pytest.mark.parametrize(("gym", "profile"), PLACES)
def test_agents_differ_in_what_they_earn_and_slips_cost(gym: str, profile: str) -> None:
    best = shown(gym, profile, agents=(("patient", 1.0),))
    assert {talk.reward for talk in best} == {1.0}
    slipping = shown(gym, profile, agents=(("patient", 1.0),), slips=0.9)
    assert sum(talk.reward for talk in slipping) < sum(talk.reward for talk in best)


@pytest.mark.parametrize(("gym", "profile"), PLACES)
def test_a_demonstration_alternates_and_ends_with_the_agent(gym: str, profile: str) -> None:
    for talk in shown(gym, profile):
        roles = [message.role for message in talk.messages]
        assert roles[:2] == ["system", "user"]
        assert roles[2::2] == ["assistant"] * len(roles[2::2])
        assert roles[-1] == "assistant"
        assert all(m.content == " ".join(m.content.split()) for m in talk.messages[2::2])


def test_equal_seeds_give_equal_demonstrations() -> None:
    assert shown("tau", "mini") == shown("tau", "mini")


def test_a_policy_is_made_and_practises_in_the_gym(tmp_path: Path) -> None:
    config = GymStartConfig(
        out=tmp_path / "start",
        shown=ShownConfig(gym="function", profile="compact", rows=16),
        shape=TinyConfig(hidden=16, layers=1, heads=2, inner=16, context=512),
        steps=2,
        batch=4,
    )
    result = gym_start(config)
    assert result["demonstrations"] == 16
    assert gym_start(config)["steps"] == 2  # the same again goes on from what is there
    trained = train_agent(
        AgentConfig(
            init=tmp_path / "start" / "policy",
            out=tmp_path / "agent",
            gym="function",
            user="scripted:neutral",
            batches=1,
            prompts=1,
            group=2,
            minibatches=1,
        )
    )
    assert len(trained["curve"]) == 1


def test_wrong_settings_are_named() -> None:
    with pytest.raises(UnknownNameError, match="eagre"):
        shown("function", "compact", agents=(("eagre", 1.0),))
    with pytest.raises(ConfigError, match="'agents'"):
        ShownConfig(agents=())
