"""Models as agents: native calls and text, over a real loopback endpoint."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import Party, Status, StopReason
from mimesim.envs.actions import TOOL, get_format
from mimesim.envs.agents.load import make_agent
from mimesim.envs.gyms.support_desk.full import FullDesk
from mimesim.errors import ConfigError, EnvironmentFault, UsageError
from mimesim.models.load import preflight
from mimesim.rollout.driver import Setup, run_episode
from mimesim.rollout.record import Header
from tests.support.desk import CANARY, Customer, close, desk_task
from tests.support.stub_server import StubServer, context_full

ASK = json.dumps({"choice": "action", "content": "What is your order number?"})
CLOSE = json.dumps({"choice": "answer", "content": close("denied").content})


def call(arguments: str, *, name: str = TOOL, number: int = 0) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": f"c{number}", "type": "function", "function": function}


def native(*arguments: str, content: str | None = None) -> dict[str, Any]:
    calls = [call(text, number=number) for number, text in enumerate(arguments)]
    return {"content": content, "tool_calls": calls}


def run(name: str, options: dict[str, Any] | None = None) -> Episode:
    async def episode() -> Episode:
        source = make_agent(name, options=options)
        task = desk_task()
        header = Header(id="e1", run_id="r1", trial=0, seed=3, agent=source.identity)
        agent = source.start(task=task, seed=1, key="e1")
        setup = Setup(header, get_format("tool-call"))
        try:
            return await run_episode(task, FullDesk(user=Customer()), agent, setup)
        finally:
            await source.aclose()

    return asyncio.run(episode())


def model(server: StubServer) -> str:
    return f"model:openai:stub@{server.url}"


def test_native_calls_make_an_episode() -> None:
    with StubServer([native(ASK), native(CLOSE)]) as server:
        record = run(model(server))
    assert record.stop.reason is StopReason.CASE_CLOSED
    first, second = (request.body for request in server.generations)
    assert first["tools"][0]["function"]["name"] == TOOL
    assert [m["role"] for m in first["messages"]] == ["system", "user"]
    assert "Fernwick" in first["messages"][0]["content"]
    assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["messages"][-1]["content"] == "customer: my order id is 5512093381"
    assert second["messages"][-1]["tool_call_id"] == "c0"
    assert CANARY not in json.dumps([first, second])
    assert record.usage["agent"].calls == 2
    assert record.agent.sampling["tools"] == "native"


def test_text_calls_make_an_episode_and_reasoning_stays_private() -> None:
    replies = [f"<think>secret plan</think>{ASK}", f"```json\n{CLOSE}\n```"]
    with StubServer(replies) as server:
        record = run(model(server), {"tools": "text", "temperature": 0.5})
    assert record.stop.reason is StopReason.CASE_CLOSED
    second = server.generations[1].body
    assert "tools" not in second
    assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "user"]
    assert "secret plan" not in json.dumps(second)
    assert second["temperature"] == 0.5
    assert record.private is not None
    assert record.private["agent_reasoning"][0]["text"] == "secret plan"


def test_several_native_calls_execute_none_and_each_is_answered() -> None:
    with StubServer([native(ASK, ASK), native(CLOSE)]) as server:
        record = run(model(server))
    assert "several calls" in record.steps[0].problem
    roles = [m["role"] for m in server.generations[1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]


def test_an_endpoint_is_an_agent_that_writes_text() -> None:
    with StubServer([ASK, CLOSE]) as server:
        record = run(server.url, {"model": "stub"})
    assert record.stop.reason is StopReason.CASE_CLOSED
    assert "tools" not in server.generations[0].body


def test_an_answer_of_reasoning_only_is_asked_for_with_more_room() -> None:
    with StubServer(["<think>too long", CLOSE]) as server:
        record = run(model(server), {"tools": "text", "max_tokens": 100})
    assert [r.body["max_tokens"] for r in server.generations] == [100, 200]
    assert record.stop.reason is StopReason.CASE_CLOSED
    assert [len(r.body["messages"]) for r in server.generations] == [2, 2]


def test_a_full_context_is_a_truncation_of_the_agent() -> None:
    with StubServer([native(ASK), context_full()]) as server:
        record = run(model(server))
    assert len(server.generations) == 2
    assert (record.stop.reason, record.stop.by) == (StopReason.CONTEXT_EXCEEDED, Party.AGENT)
    assert record.outcome.status is Status.TRUNCATED


def test_preflight_reaches_the_model() -> None:
    async def check(server: StubServer) -> None:
        source = make_agent(model(server))
        try:
            await preflight(source)
        finally:
            await source.aclose()

    with StubServer() as server:
        asyncio.run(check(server))
    with StubServer(api_key="right") as server, pytest.raises(EnvironmentFault, match=r"401|key"):
        asyncio.run(check(server))


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="temperature"):
        make_agent("model:scripted:echo", options={"temperatur": 1})
    with pytest.raises(ConfigError, match="native"):
        make_agent("model:scripted:echo", options={"tools": "always"})


def test_names_hold_no_password() -> None:
    source = make_agent("model:openai:stub@http://ann:pass1234@127.0.0.1:9/v1")
    assert "pass1234" not in repr(source.identity)


@pytest.mark.parametrize("name", ["model:", "http:", "python:", "scripted:"])
def test_incomplete_names(name: str) -> None:
    with pytest.raises(UsageError, match="incomplete"):
        make_agent(name)
