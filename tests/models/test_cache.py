"""The answer cache: what makes the key, what is stored, what a hit is worth."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mimesim.dialogue.types import Identity, Role, Thought, ToolCall, Usage
from mimesim.errors import EnvironmentFault, InfraError
from mimesim.models.base import ChatMessage, Completion, Sampling
from mimesim.models.cache import Cached, CacheStore
from mimesim.models.load import make_chat_model
from mimesim.models.scripted import Scripted
from mimesim.seeds import derive
from tests.support.stub_server import StubServer

ASK = (ChatMessage("user", "hi"),)
HOT = Sampling(temperature=0.9, seed=1)


class Counter(Scripted):
    """Every call gets another text, and costs a cent."""

    def __init__(self, identity: Identity | None = None) -> None:
        numbers = count()
        super().__init__(
            lambda messages, sampling: Completion(
                f"answer {next(numbers)}", usage=Usage(3, 2, calls=1, cost=0.01)
            )
        )
        if identity is not None:
            self.identity = identity


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CacheStore]:
    """Return an empty store."""
    opened = CacheStore(tmp_path / "deep" / "answers.db")
    yield opened
    opened.close()


def say(model: Cached, sampling: Sampling = HOT, messages: Any = ASK, **more: Any) -> Completion:
    """Ask once."""
    return asyncio.run(model.chat(messages, sampling, **more))


def test_repeats_stay_apart_and_a_second_run_costs_nothing(tmp_path: Path) -> None:
    """C-RUN-04: five trials, five texts; again: five hits, the same texts, cost 0, marked."""
    numbers = count()
    file = str(tmp_path / "answers.db")
    with StubServer(lambda request: f"text {next(numbers)}") as server:
        prices = {"stub": {"prompt": 1e6, "completion": 1e6}}

        async def run() -> list[Completion]:
            name, options = f"openai:stub@{server.url}", {"cache": file, "prices": prices}
            model = make_chat_model(name, options=options)
            try:
                return [
                    await model.chat(ASK, replace(HOT, seed=derive(7, "episode", trial)))
                    for trial in range(5)
                ]
            finally:
                await model.aclose()

        first, second = asyncio.run(run()), asyncio.run(run())
        assert len(server.requests) == 5
    texts = [answer.text for answer in first]
    assert len(set(texts)) == 5
    assert [answer.text for answer in second] == texts
    assert not any(answer.cached for answer in first)
    assert all(answer.cached for answer in second)
    assert sum(answer.usage.cost or 0 for answer in first) > 0
    assert [(a.usage.cost, a.usage.calls) for a in second] == [(0.0, 0)] * 5


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2}, {"temperature": 0.8}, {"top_p": 0.5}, {"top_k": 3}, {"max_tokens": 9},
        {"stop": ("x",)}, {"thinking": True}, {"thinking": False}, {"extra": {"min_p": 0.1}},
    ],
    ids=str,
)  # fmt: skip
def test_every_sampling_argument_is_in_the_key(store: CacheStore, change: dict[str, Any]) -> None:
    model = Cached(Counter(), store)
    say(model)
    assert say(model).cached
    assert not say(model, replace(HOT, **change)).cached


def test_messages_tools_and_schema_are_in_the_key(store: CacheStore) -> None:
    model = Cached(Counter(), store)
    call = ToolCall("1", "f", "{}", Role.AGENT)
    variants: list[dict[str, Any]] = [
        {},
        {"messages": (ChatMessage("system", "hi"),)},
        {"messages": (ChatMessage("user", "hi "),)},
        {"messages": (*ASK, ChatMessage("assistant", "", (call,)))},
        {"messages": (*ASK, ChatMessage("assistant", "", (replace(call, name="g"),)))},
        {"messages": (*ASK, ChatMessage("tool", "", tool_call_id="1"))},
        {"tools": ({"name": "f"},)},
        {"response_schema": {"type": "object"}},
    ]
    assert not any(say(model, **variant).cached for variant in variants)
    assert all(say(model, **variant).cached for variant in variants)


def test_who_answers_is_in_the_key(store: CacheStore) -> None:
    base = Identity("llm", "openai:m@http://h/v1", model="m", endpoint_host="h")
    others = [
        replace(base, name="openai:m@http://h/v2"),
        replace(base, model="n"),
        replace(base, revision="2"),
        replace(base, endpoint_host="i"),
        replace(base, prompt_hash="a"),
        replace(base, sampling={"extra_body": {"a": 1}}),
    ]
    assert [say(Cached(Counter(one), store)).cached for one in (base, *others, base)] == [
        *[False] * 7,
        True,
    ]


def test_trial_and_attempt_are_in_the_key(store: CacheStore) -> None:
    model = Cached(Counter(), store)
    unseeded = replace(HOT, seed=None)
    places = [model.at(trial=0), model.at(trial=1), model.at(trial=1, attempt=1)]
    assert len({say(place, unseeded).text for place in places}) == 3
    assert all(say(place, unseeded).cached for place in places)


def test_without_seed_and_trial_nothing_is_cached(store: CacheStore) -> None:
    model = Cached(Counter(), store)
    unseeded = replace(HOT, seed=None)
    assert say(model, unseeded).text != say(model, unseeded).text
    assert (model.hits, model.misses) == (0, 2)


@pytest.mark.parametrize(
    "answer",
    [
        Completion("cut", finish_reason="length"),
        Completion("no", finish_reason="content_filter"),
        Completion(" \u200b"),
        Completion("", reasoning=Thought("hm")),
    ],
    ids=lambda answer: answer.finish_reason,
)
def test_only_complete_answers_are_stored(store: CacheStore, answer: Completion) -> None:
    model = Cached(Scripted([answer, "whole"]), store)
    say(model)
    assert say(model).text == "whole"
    assert say(model).cached


def test_errors_are_not_stored(store: CacheStore) -> None:
    def lost(messages: object, sampling: object) -> str:
        raise InfraError("gone")

    with pytest.raises(InfraError):
        say(Cached(Scripted(lost), store))
    assert not say(Cached(Scripted(["here"]), store)).cached


def test_a_hit_is_the_whole_answer(store: CacheStore) -> None:
    answer = Completion(
        "a\u2028b\ud83d",
        finish_reason="tool_calls",
        reasoning=Thought("private"),
        tool_calls=(ToolCall("1", "f", '{"a": 1}', Role.AGENT, "odd"),),
        usage=Usage(3, 2, 1, 0, calls=1, cost=None, unknown_cost_calls=1),
    )
    say(Cached(Scripted([answer]), store))
    hit = say(Cached(Scripted([]), store))
    usage = replace(answer.usage, calls=0, cost=0.0, unknown_cost_calls=0)
    assert hit == replace(answer, cached=True, usage=usage)


def test_the_file_is_private_and_shared(tmp_path: Path) -> None:
    file = tmp_path / "answers.db"
    one, two = CacheStore(file), CacheStore(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert one._run("PRAGMA journal_mode", ()) == [("wal",)]
    say(Cached(Counter(), one))
    assert say(Cached(Counter(), two)).cached
    one.close()
    one.close()
    two.close()


def test_many_callers_at_once(store: CacheStore) -> None:
    model = Cached(Counter(), store)

    async def run() -> list[Completion]:
        calls = [model.chat(ASK, replace(HOT, seed=n % 10)) for n in range(40)]
        return await asyncio.gather(*calls)

    asyncio.run(run())
    assert all(answer.cached for answer in asyncio.run(run()))


def test_a_file_that_is_no_cache_is_named(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("these are my notes, not a database\n" * 20, encoding="utf-8")
    with pytest.raises(EnvironmentFault, match="cache cannot be used") as caught:
        CacheStore(file)
    assert str(file) in str(caught.value)
    with pytest.raises(EnvironmentFault, match="cache cannot be used"):
        CacheStore(file / "below.db")
    assert file.read_text(encoding="utf-8").startswith("these are my notes")
