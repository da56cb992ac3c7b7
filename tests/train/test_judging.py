"""Who grades in training, and rewards that the agent may read: settings of a run, played for real."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from mimesim.envs.load import load_tasks
from mimesim.errors import ConfigError, UsageError
from mimesim.models.base import ServedTokens
from mimesim.models.load import make_token_model
from mimesim.rollout.policy import PolicyConfig
from mimesim.train.agent import AgentConfig
from mimesim.train.agent_cast import cast_names, make_worlds
from mimesim.train.collect import GymCollector
from mimesim.train.grpo import Sample
from mimesim.users.mixture import UserShare
from tests import tiny
from tests.support.stub_server import StubRequest, StubServer

KEYLESS: dict[str, Any] = {"api_key_env": ""}
ROWS = [{"task_index": index} for index in (0, 0, 1, 1)]


def guess(request: StubRequest) -> dict[str, Any]:
    """Be a policy that guesses at once."""
    ids = [*tiny.tokenizer()("act tiger").input_ids, 2]
    return {"token_ids": ids, "logprobs": {"token_logprobs": [-1.0] * len(ids)}}


def says(verdict: bool) -> Any:
    return lambda request: f'{{"correct": {str(verdict).lower()}}}'


@contextmanager
def playing(policy: Any = None, **changed: Any) -> Iterator[tuple[AgentConfig, GymCollector]]:
    """Open a collector as a run with these settings has it."""
    config = AgentConfig(init=Path("x"), profile="default", **changed)
    tasks = load_tasks(config.gym, profile=config.profile, split="train", seed=1, count=2)
    words = tiny.tokenizer()
    options = {"tokenizer": words, **KEYLESS}
    sampler = make_token_model(f"openai:p@{policy.url}", options=options) if policy else None
    made = GymCollector(
        make_worlds(config), tasks, words, PolicyConfig(1.0, 24), 1,
        sampler=cast(ServedTokens, sampler),
    )  # fmt: skip
    with closing(made):
        yield config, made


def collect(made: GymCollector) -> list[Sample]:
    return made.collect(ROWS, tiny.talker(), 0)


def test_each_user_grades_its_own_conversations() -> None:
    with StubServer(says(True)) as kind, StubServer(says(False)) as strict:
        shares = tuple(
            UserShare(f"roleplay:openai:{name}@{server.url}", options={"model_options": KEYLESS})
            for name, server in (("kind", kind), ("strict", strict))
        )
        how: dict[str, Any] = {"gym": "telepathy", "users": shares, "judge": "self"}
        with StubServer(guess) as policy, playing(policy, **how) as (config, made):
            samples = [
                s for batch in range(4) for s in made.collect(ROWS[::2], tiny.talker(), batch)
            ]
            names = cast_names(config, made.worlds)
        assert kind.generations
        assert strict.generations
    assert names["judge_mode"] == names["judge"] == "self"
    met = [
        {
            key.partition("@")[0].rpartition(":")[2]: value
            for key, value in s.metrics.items()
            if "/" in key
        }
        for s in samples
    ]
    assert {name for one in met for name in one} == {"kind", "strict"}
    assert all(one == ({"kind": 1.0} if "kind" in one else {"strict": 0.0}) for one in met)
    assert {sum(s.rewards) for s in samples} == {0.0, 1.0}


def test_one_fixed_judge_grades_whoever_is_met() -> None:
    with StubServer(says(False)) as person, StubServer(says(True)) as judge:
        share = UserShare(f"roleplay:openai:m@{person.url}", options={"model_options": KEYLESS})
        how: dict[str, Any] = {
            "gym": "telepathy",
            "users": (share,),
            "judge": f"model:openai:j@{judge.url}",
            "judge_options": {"model": KEYLESS, "max_tokens": 77},
        }
        with StubServer(guess) as policy, playing(policy, **how) as (config, made):
            assert [sum(s.rewards) for s in collect(made)] == [1.0] * 4
            assert cast_names(config, made.worlds)["judge_mode"] == "fixed"
        assert {request.body["max_tokens"] for request in judge.generations} == {77}
        assert person.generations == []


def test_a_scripted_user_is_graded_by_the_rules_either_way() -> None:
    found = []
    for judge in ("self", "rule"):
        how = {"gym": "telepathy", "user": "scripted:neutral", "judge": judge}
        with StubServer(guess) as policy, playing(policy, **how) as (config, made):
            found.append([(s.rewards, s.valid) for s in collect(made)])
            assert cast_names(config, made.worlds)["judge_mode"] == "rule"
    assert found[0] == found[1]
    assert all(valid for _, valid in found[0])


def test_judges_that_cannot_be() -> None:
    given: dict[str, Any] = {"init": Path("x"), "gym": "telepathy", "profile": "default"}
    with pytest.raises(ConfigError, match="no model is known behind the user"):
        make_worlds(AgentConfig(**given, judge="self", user="tests.support.faulty:make"))
    with pytest.raises(UsageError, match="judge 'rule' takes neither"):
        make_worlds(AgentConfig(**given, judge_options={"reasks": 1}))


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, False),
        ({"show_reward": "both"}, True),
        ({"show_reward": "train"}, True),
        ({"show_reward": "eval"}, False),
        ({"compat": "userrl", "no_tool_call": "nudge"}, True),
        ({"show_reward": "train", "phase": "eval"}, False),
    ],
)
def test_an_agent_in_training_may_read_its_rewards(options: dict[str, Any], shown: bool) -> None:
    with playing(gym="persuade", user="scripted:neutral", gym_options=options) as (_, made):
        texts = [
            tiny.tokenizer().decode(sample.tokens.completion_ids)
            for sample in collect(made)
            if sample.tokens is not None
        ]
    longer = [text for text in texts if text.count("<|im_start|>") > 1]
    assert longer
    assert {"Reward: 0.0" in text for text in longer} == {shown}
