"""Python callables as agents: arguments by name, answers of every shape, failures (cases.md MSG)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import Status, StopReason
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.envs.actions import TOOL, get_format
from mimesim.envs.agents.answers import read_answer
from mimesim.envs.agents.callables import CallableAgents
from mimesim.envs.agents.load import make_agent
from mimesim.envs.base import AgentAction, AgentMove, AgentView, Choice, Observation
from mimesim.envs.gyms.support_desk.full import SPEC, FullDesk
from mimesim.errors import AgentError, UnknownNameError, UsageError
from mimesim.rollout.driver import Setup, run_episode
from mimesim.rollout.record import Header
from tests.envs.agents import bots
from tests.support.desk import Customer, close, desk_task

VIEW = AgentView(
    Observation("policy text", "hello, it broke"),
    (PublicMessage(Role.AGENT, "What broke?"), PublicMessage(Role.USER, "the lamp")),
    step=1,
    steps_left=15,
)


def act(name: str, view: AgentView = VIEW) -> AgentMove:
    source = make_agent(f"python:tests.envs.agents.bots:{name}", action_format="line")
    agent = source.start(task=desk_task(), seed=1, key="ep-1")
    return asyncio.run(agent.act(view))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("echo", "you said the lamp"),
        ("history_bot", "ep-1/1"),
        ("Counting", "answer 1"),
        ("Callable_", "THE LAMP"),
        ("slow", "4 ['context', 'conversation_id', 'session_id', 'thread_id', 'tools', 'turn']"),
    ],
)
def test_arguments_go_by_name(name: str, text: str) -> None:
    assert act(name).text == text


def test_a_class_makes_one_instance_per_conversation_an_object_is_shared() -> None:
    assert act("Counting").text == act("Counting").text == "answer 1"
    first, second = act("INSTANCE").text, act("INSTANCE").text
    assert first != second


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("both", "messages and input"),
        ("neither", "neither"),
        ("unknown", "database"),
        ("two_texts", "text and message"),
        ("positional", "'text'"),
        ("NO_BOT", "no callable"),
    ],
)
def test_a_wrong_signature_is_found_before_any_call(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_agent(f"python:tests.envs.agents.bots:{name}")


@pytest.mark.parametrize("path", ["tests.envs.agents.bots:absent", "no_such_module:bot"])
def test_what_cannot_be_imported_is_told(path: str) -> None:
    with pytest.raises(UnknownNameError, match="cannot be loaded"):
        make_agent(f"python:{path}")


@pytest.mark.parametrize("path", ["bots", "bots:", ":reply"])
def test_incomplete_paths(path: str) -> None:
    with pytest.raises(UsageError, match="incomplete"):
        make_agent(f"python:{path}")


def test_history_holds_the_system_text_and_the_own_calls() -> None:
    seen: list[Any] = []

    def spy(messages: list[dict[str, Any]], tools: list[Any], context: dict[str, Any]) -> str:
        seen.append((messages, tools, context))
        return "ok"

    source = CallableAgents(spy, name="python:spy", action_format=get_format("tool-call"))
    agent = source.start(task=desk_task(), seed=1, key="k")
    asyncio.run(agent.act(VIEW))
    messages, tools, context = seen[0]
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "user"]
    assert "policy text" in messages[0]["content"]
    assert TOOL in messages[0]["content"]
    assert tools[0]["function"]["name"] == TOOL
    assert context["flow"] == "returns"
    assert "5512093381" not in str(context)


def test_answers_of_every_shape_become_text() -> None:
    parts = [{"type": "text", "text": "Your code"}, bots.AUDIO, {"type": "text", "text": "is 41."}]
    history = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "own"}]},
        {"role": "tool", "content": "{}"},
        {"role": "assistant", "content": "It arrives Monday."},
    ]
    assert read_answer("hi", SPEC).text == "hi"
    assert read_answer(parts, SPEC).text == "Your code\nis 41."
    assert read_answer(history, SPEC).text == "It arrives Monday."
    assert read_answer({"role": "assistant", "content": parts}, SPEC).text == "Your code\nis 41."
    assert read_answer(SimpleNamespace(content="hi"), SPEC).text == "hi"
    assert read_answer(None, SPEC).text == ""
    thinking = read_answer("<think>plan</think>hi", SPEC)
    assert (thinking.text, thinking.reasoning) == ("hi", "plan")
    action = AgentAction(Choice.ACTION, "hi")
    assert read_answer(action, SPEC).action == action
    assert read_answer(AgentMove("x", action), SPEC).action == action


def test_a_native_tool_call_in_a_message_is_read() -> None:
    function = {"name": TOOL, "arguments": '{"choice": "action", "content": "hi"}'}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "function": function}],
    }
    assert read_answer(message, SPEC).action == AgentAction(Choice.ACTION, "hi", "c1")


@pytest.mark.parametrize("answer", [7, object(), {"content": 7}, {"tool_calls": [{"id": 1}]}])
def test_what_is_no_text_is_the_agents_error(answer: Any) -> None:
    with pytest.raises(AgentError):
        read_answer(answer, SPEC)


def episode(function: Any) -> Episode:
    """Run one conversation of a callable on the desk, in the line format."""
    source = CallableAgents(function, name="python:test", action_format=get_format("line"))
    task = desk_task()
    header = Header(id="e1", run_id="r1", trial=0, seed=3, agent=source.identity)
    setup = Setup(header, get_format("line"))
    agent = source.start(task=task, seed=1, key="e1")
    return asyncio.run(run_episode(task, FullDesk(user=Customer()), agent, setup))


def test_an_agent_that_ends_the_program_ends_its_own_episode_only() -> None:
    def leaves(messages: Any) -> str:
        raise SystemExit(3)

    played = episode(leaves)
    assert played.outcome.status is Status.AGENT_FAILURE
    assert "SystemExit" in str(played.errors)


def scripted(*answers: Any) -> Any:
    left = list(answers)
    return lambda text: left.pop(0)


def test_c_msg_01_an_empty_answer_is_asked_for_once_more() -> None:
    done = f"act {close('denied').content}"
    record = episode(scripted(" \n", "Your refund is on its way.", done))
    agent_turns = [t.content for t in record.turns if t.role is Role.AGENT]
    assert agent_turns[0] == "Your refund is on its way."
    assert record.stop.reason is StopReason.CASE_CLOSED
    record = episode(scripted(" \n", " \n"))
    assert record.stop.reason is StopReason.AGENT_ERROR
    assert record.outcome.status is Status.AGENT_FAILURE


def test_c_msg_05_audio_without_text_is_refused_by_name() -> None:
    record = episode(scripted([bots.AUDIO]))
    assert record.stop.reason is StopReason.AGENT_ERROR
    assert record.stop.detail == "audio content without text"
    both = [bots.AUDIO, {"type": "text", "text": "Your code is 41."}]
    record = episode(scripted(both, f"act {close('denied').content}"))
    assert record.turns[1].content == "Your code is 41."


def test_c_msg_06b_an_exception_is_a_failure_and_never_words() -> None:
    record = episode(bots.angry)
    assert record.outcome.status is Status.AGENT_FAILURE
    assert record.outcome.success is False
    assert "KeyError" in record.errors[0]["message"]
    assert not any("KeyError" in turn.content for turn in record.turns)
