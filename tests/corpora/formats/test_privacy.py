"""What is hidden stays hidden: turns hold what the source's conversation holds, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimesim.corpora.base import Format
from mimesim.corpora.formats import (
    lmsys,
    mirrorbench,
    openai_messages,
    osim_midtrain,
    osim_post,
    realusersim,
    simulatorarena,
    tau_usi,
    thoughttrace,
    userrl,
    wildchat,
)

Row = Callable[[list[str], str], dict[str, Any]]


def messages(said: list[str], key: str = "content", role: str = "role") -> list[dict[str, Any]]:
    return [{role: ("user", "assistant")[at % 2], key: text} for at, text in enumerate(said)]


def arena(said: list[str], secret: str) -> dict[str, Any]:
    return {
        "user_queries": said[::2],
        "ai_responses": said[1::2],
        "model": secret,
        "document_type": secret,
        "intent": secret,
        "bullet_points": [secret],
        "bullet_points_responses": [secret],
        "document_history": [secret],
        "strength": secret,
    }


def thoughts(said: list[str], secret: str) -> dict[str, Any]:
    notes = [{"content": secret, "label": secret}]
    talk = [
        {**message, "reasons" if message["type"] == "user" else "reactions": notes}
        for message in messages(said, role="type")
    ]
    return {
        "id": "user1_task1_conversation1",
        "messages": talk,
        "task_summary": secret,
        "task_expectation": secret,
        "survey_answers": [{"purposes": secret}],
    }


def case(said: list[str], secret: str) -> dict[str, Any]:
    return {
        "test_id": 1,
        "domain": secret,
        "original_messages": messages(said),
        "user_profile": {
            "demographics": {"age": {"value": secret}},
            "linguistic_profile": secret,
        },
        "problem_desc": secret,
        "solution_conditions": secret,
    }


FORMATS: dict[str, tuple[Format, Row]] = {
    "openai": (
        openai_messages.FORMAT,
        lambda said, secret: {
            "messages": [
                {"role": "system", "content": secret},
                *messages(said),
                {"role": "tool", "content": secret},
            ],
            "outcome": secret,
        },
    ),
    "wildchat": (
        wildchat.FORMAT,
        lambda said, secret: {
            "conversation_hash": "h",
            "model": secret,
            "conversation": messages(said),
            "hashed_ip": secret,
            "country": secret,
        },
    ),
    "lmsys": (
        lmsys.FORMAT,
        lambda said, secret: {
            "conversation_id": "c",
            "model": secret,
            "conversation": messages(said),
        },
    ),
    "mirrorbench": (
        mirrorbench.FORMAT,
        lambda said, secret: {
            "dataset": "oasst1",
            "conversation_id": "c",
            "task_description": secret,
            "turns": messages(said),
            "metadata": {"facet": secret, "few_shot_user_examples": [{"utterance": secret}]},
        },
    ),
    "osim-midtrain": (
        osim_midtrain.FORMAT,
        lambda said, secret: {
            "data_source": "wildchat",
            "messages": [{"role": "system", "content": secret}, *messages(said)],
        },
    ),
    "osim-post": (
        osim_post.FORMAT,
        lambda said, secret: {
            "data_source": "mirrorbench",
            "extra_info": {"task_description": secret, "turns": messages(said)},
        },
    ),
    "tau-usi": (
        tau_usi.FORMAT,
        lambda said, secret: {
            "instance_id": "airline_0",
            "conversation": messages(said),
            "survey": {"trust": {"question": secret, "answer": secret}},
            "reward": 1.0,
        },
    ),
    "simulatorarena": (simulatorarena.FORMAT, arena),
    "thoughttrace": (thoughttrace.FORMAT, thoughts),
    "realusersim": (realusersim.FORMAT, case),
}

SAID = st.lists(st.text("abc ", min_size=1).filter(str.strip), min_size=2, max_size=8).filter(
    lambda said: len(said) % 2 == 0
)
SECRET = st.lists(st.text("xyz", min_size=1), min_size=4, max_size=6).map(" ".join)


@pytest.mark.parametrize("name", sorted(FORMATS))
@settings(max_examples=25)
@given(said=SAID, secret=SECRET)
def test_turns_are_what_was_said(name: str, said: list[str], secret: str) -> None:
    form, row = FORMATS[name]
    (found,) = form.convert(row(said, secret), {})
    assert [turn.text for turn in found.turns] == said
    assert secret not in found.topic
    assert secret not in found.earlier


@given(secret=SECRET)
def test_a_task_shows_its_prompt_only(secret: str) -> None:
    reward = {"env_name": "TurtleGym", "title": "t", "ground_truth": secret, "bottom": secret}
    task = userrl.read_task(
        {
            "prompt": [{"role": "system", "content": "abc"}, {"role": "user", "content": "cba"}],
            "reward_model": reward,
            "extra_info": {"tools_kwargs": {"bottom": secret}},
        }
    )
    assert (task.system, task.request) == ("abc", "cba")
    assert task.hidden["ground_truth"] == secret
