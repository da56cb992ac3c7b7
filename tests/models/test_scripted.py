"""Scripted chat models."""

from __future__ import annotations

import asyncio

import pytest

from mimesim.dialogue.types import Usage
from mimesim.errors import CallerError
from mimesim.models.base import ChatMessage, ChatModel, Completion, Sampling
from mimesim.models.scripted import Echo, Replay, Scripted

HELLO = ChatMessage("user", "hello there")
SAID = ChatMessage("assistant", "first")


def say(model: ChatModel, *messages: ChatMessage, seed: int = 0) -> Completion:
    """Ask once."""
    return asyncio.run(model.chat(messages, Sampling(seed=seed)))


def test_a_list_is_used_up_in_order_and_never_repeats() -> None:
    model = Scripted(["a", Completion("b", finish_reason="length")])
    assert (say(model, HELLO).text, say(model, HELLO).finish_reason) == ("a", "length")
    with pytest.raises(CallerError, match="2 replies"):
        say(model, HELLO)
    assert model.requests[0][0] == (HELLO,)


def test_a_function_sees_the_request_and_its_errors_come_through() -> None:
    model = Scripted(lambda messages, sampling: f"{messages[-1].content} {sampling.seed}")
    assert say(model, HELLO, seed=7).text == "hello there 7"

    def broken(messages: object, sampling: object) -> str:
        raise KeyError("x")

    with pytest.raises(KeyError):
        say(Scripted(broken), HELLO)


def test_echo_answers_the_last_user_message() -> None:
    assert say(Echo(), HELLO, SAID).text == "hello there"
    assert say(Echo()).text == ""


def test_replay_depends_on_the_place_in_the_conversation_only() -> None:
    model = Replay(["first", "second"])
    asked = [(HELLO,), (HELLO, SAID, HELLO)] * 3

    async def together() -> list[str]:
        answers = await asyncio.gather(*(model.chat(one, Sampling()) for one in asked))
        return [answer.text for answer in answers]

    assert asyncio.run(together()) == ["first", "second"] * 3
    with pytest.raises(CallerError, match="turn 2"):
        say(model, HELLO, SAID, SAID)


def test_usage_is_counted_in_words_and_costs_nothing() -> None:
    assert say(Echo(), HELLO).usage == Usage(2, 2, calls=1, cost=0.0)
    priced = Completion("x", usage=Usage(9, 9, calls=1, cost=0.5))
    assert say(Scripted([priced]), HELLO).usage.cost == 0.5
