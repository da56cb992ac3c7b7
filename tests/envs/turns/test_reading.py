"""How an agent's call reaches a gym: every row of the table of calls, repaired and under compat.

Calls are native, and read as agents read them, who do not know how their gym does; the format then
reads them for the gym.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import StopReason
from mimesim.dialogue.types import Role, ToolCall
from mimesim.envs.actions import TOOL, get_format, read_tool_calls
from mimesim.envs.agents.load import make_agent
from mimesim.envs.base import AgentAction, AgentMove, Choice, StepResult, Task
from mimesim.envs.gyms.function.gym import BROKEN, FunctionGym
from mimesim.envs.gyms.search.gym import EMPTY, UNREADABLE
from mimesim.envs.load import gym_spec, load_tasks, make_gym
from mimesim.envs.turns.law import UNTAGGED
from mimesim.envs.turns.parts import as_speech, by_tag
from mimesim.rollout.driver import Setup, run_episode
from mimesim.rollout.record import Header
from tests.support.gyms import Person, Table, table
from tests.support.stub_server import StubServer

FIXED: Mapping[str, Any] = {}
EVAL = {"compat": "userrl", "phase": "eval"}
TRAIN = {"compat": "userrl", "phase": "train", "show_reward": "never"}
COMPAT = pytest.mark.parametrize("options", [EVAL, TRAIN], ids=["eval", "train"])
FORMAT = get_format("tool-call")


@cache
def task_of(gym: str) -> Task:
    (task,) = load_tasks(gym, count=1, seed=5)
    return task


VALUE = str(task_of("function").hidden["expected"])


def called(choice: object, content: object, **more: object) -> str:
    return jsonio.dumps({"choice": choice, "content": content, **more})


def take(gym: str, options: Mapping[str, Any], *calls: str) -> tuple[Table, StepResult]:
    """Take one step with a message of native calls."""
    at = table(task_of(gym), options=options)
    given = [ToolCall(f"c{n}", TOOL, call, Role.AGENT) for n, call in enumerate(calls)]
    move = AgentMove("", read_tool_calls(given, gym_spec(gym)))
    asyncio.run(at.env.reset(at.task, seed=1))
    return at, asyncio.run(at.env.step(FORMAT.parse(move, at.env.spec)))


def result(gym: str, options: Mapping[str, Any], *calls: str) -> StepResult:
    return take(gym, options, *calls)[1]


def asked(options: Mapping[str, Any], *calls: str, gym: str = "turtle") -> str:
    """Return what the person of a gym heard."""
    person: Person = take(gym, options, *calls)[0].person
    return person.heard[-1].agent_text


def told(one: StepResult) -> str:
    (message,) = one.feedback
    return message.content


def refused(one: StepResult) -> bool:
    """Tell whether an action was invalid and the episode goes on."""
    return (one.valid, one.reward, one.done) == (False, 0.0, False)


def broken_off(one: StepResult) -> bool:
    """Tell whether the episode ended there, scored so far."""
    end = (one.valid, one.reward, one.terminated, one.reason)
    return end == (False, 0.0, True, StopReason.AGENT_INVALID)


# The rows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["Answer ", "ANSWER", " answer", "Answer"])
def test_a_choice_in_another_spelling(choice: str) -> None:
    assert result("function", FIXED, called(choice, VALUE)).reward == 1.0
    for options in (EVAL, TRAIN):
        one = result("function", options, called(choice, VALUE))
        assert (told(one), one.reward, one.valid, one.done) == (UNTAGGED, 0.0, True, False)
        assert result("function", options, called(choice, f"[answer] {VALUE}")).reward == 1.0
        assert asked(options, called(choice, "Is it a thirsty woman?")) == "thirsty woman?"


def test_a_choice_that_the_gym_does_not_have() -> None:
    assert refused(result("turtle", FIXED, called("search", "Is it loud?")))
    assert refused(result("search", FIXED, called("action", "hello")))
    for options in (EVAL, TRAIN):
        assert asked(options, called("search", "Is it loud?")) == "Is it loud?"
        heard = asked(options, called("search", "Where?"), gym="intention")
        assert heard == "[search] Where?"
        assert asked(options, called("search", "Air!"), gym="persuade") == "[search] Air!"
        assert told(result("search", options, called("action", "hello"))) == UNREADABLE


def test_a_choice_that_nobody_has() -> None:
    call = called("reply", "Where is it?")
    for gym in ("function", "search", "tau", "travel"):  # told that it has no form
        assert refused(result(gym, FIXED, call))
        for options in (EVAL, TRAIN):
            if gym == "tau":
                options = {**options, "tau_first_message": "live"}
            assert told(result(gym, options, call)) == UNTAGGED
    for gym, heard in (  # taken as words
        ("turtle", "it?"),
        ("telepathy", "it?"),
        ("intention", "Where is it?"),
        ("persuade", "Where is it?"),
    ):
        assert refused(result(gym, FIXED, call))
        assert asked(EVAL, call, gym=gym) == asked(TRAIN, call, gym=gym) == heard


def test_the_tag_of_the_same_choice() -> None:
    for options in (FIXED, EVAL, TRAIN):
        assert result("function", options, called("answer", f"[answer] {VALUE}")).reward == 1.0
        assert asked(options, called("action", "[action] Is it loud?")) == "Is it loud?"
    capital = called("answer", f"[Answer] {VALUE}")
    assert result("function", FIXED, capital).reward == 1.0
    twice = called("action", "[action] [action] Is it?")
    assert asked(FIXED, twice) == "[action] Is it?"
    for options in (EVAL, TRAIN):
        assert told(result("function", options, capital)) == BROKEN
        assert asked(options, twice) == "[action] Is it?"  # the original takes one off too


def test_the_tag_of_another_choice() -> None:
    call = called("answer", f"[action] {VALUE}")
    assert refused(result("function", FIXED, call))
    for options in (EVAL, TRAIN):
        assert told(result("function", options, call)) == BROKEN
        assert asked(options, called("action", "[answer] A dog.")) == "[answer] A dog."
        one = result("function", options, called("action", "[finish]"))
        assert not one.done


def test_a_number() -> None:
    call = called("answer", float(VALUE))
    assert result("function", FIXED, call).reward == 1.0
    assert result("function", TRAIN, call).reward == 1.0
    assert asked(TRAIN, called("action", 2.0)) == "2.0"
    assert broken_off(result("function", EVAL, call))


@pytest.mark.parametrize(
    ("content", "text"),
    [(None, "None"), ([1, "x"], "[1, 'x']"), ({"a": 1}, "{'a': 1}"), (True, "True")],
    ids=["null", "list", "object", "bool"],
)
def test_what_is_no_text(content: object, text: str) -> None:
    call = called("action", content)
    assert refused(result("turtle", FIXED, call))
    assert asked(TRAIN, call) == text
    assert broken_off(result("turtle", EVAL, call))


@pytest.mark.parametrize("content", ["", "  ", "\n"])
def test_blank_content(content: str) -> None:
    assert refused(result("function", FIXED, called("answer", content)))
    for options in (EVAL, TRAIN):
        assert told(result("function", options, called("answer", content))) == BROKEN
        assert asked(options, called("action", content)) == ""
        _, one = take("search", options, called("search", content))
        assert (told(one), one.private.grading["searches"]) == (EMPTY, 1)


def test_more_than_eight_thousand_characters() -> None:
    call = called("action", "x" * 8001)
    assert refused(result("persuade", FIXED, called("answer", "x" * 8001)))
    assert refused(result("turtle", FIXED, call))
    for options in (EVAL, TRAIN):
        assert asked(options, call) == "x" * 8001


def test_further_keys() -> None:
    for options in (FIXED, EVAL, TRAIN):
        assert result("function", options, called("answer", VALUE, mood="fine")).reward == 1.0


def test_reasoning_inside_content() -> None:
    call = called("action", "<think>my plan</think>Is it loud?")
    assert asked(FIXED, call) == "Is it loud?"
    for options in (EVAL, TRAIN):
        assert asked(options, call) == "<think>my plan</think>Is it loud?"


# Ends, several calls, none ----------------------------------------------------------------------


def test_an_unknown_choice_with_the_tag_of_finish_finishes() -> None:
    for call in (called("x", "[finish]"), called("Finish", " [finish] now")):
        assert refused(result("function", FIXED, call))
        for options in (EVAL, TRAIN):
            assert result("function", options, call).reason is StopReason.AGENT_STOP


def test_the_choice_of_finish_finishes_in_the_trainer_only() -> None:
    call = called("finish", "")
    assert result("turtle", TRAIN, call).reason is StopReason.AGENT_STOP
    assert told(result("function", EVAL, call)) == UNTAGGED
    assert refused(result("turtle", FIXED, call))
    exposed = result("turtle", {"expose_finish": True}, called("finish", "enough"))
    assert exposed.reason is StopReason.AGENT_STOP


def test_missing_arguments() -> None:
    call = jsonio.dumps({"content": f"[answer] {VALUE}"})
    assert refused(result("function", FIXED, call))
    assert result("function", TRAIN, call).reward == 1.0
    assert broken_off(result("function", EVAL, call))


@pytest.mark.parametrize(
    ("options", "heard"),
    [
        (FIXED, None),
        ({"multi_call": "first"}, "one"),
        ({"multi_call": "last_reward"}, "one"),
        ({"multi_call": "last_reward", "phase": "train"}, "three"),
        ({**EVAL, "multi_call": "reject"}, None),
        (EVAL, "one"),
        (TRAIN, "three"),
        ({**TRAIN, "multi_call": "first"}, "one"),
    ],
)
def test_several_calls(options: Mapping[str, Any], heard: str | None) -> None:
    calls = [called("action", word) for word in ("one", "two", "three")]
    at, one = take("turtle", options, *calls)
    assert [request.agent_text for request in at.person.heard] == ([heard] if heard else [])
    assert one.valid is (heard is not None)
    assert at.env.snapshot()["turns"] == 1
    written = FORMAT.parse(AgentMove("\n".join(calls)), at.env.spec)
    assert written.content == (heard or "")


@COMPAT
@pytest.mark.parametrize("text", ["Is it loud?", '{"choice": "action", "cont'])
def test_no_call(options: Mapping[str, Any], text: str) -> None:
    def step(chosen: Mapping[str, Any]) -> StepResult:
        at = table(task_of("turtle"), options=chosen)
        asyncio.run(at.env.reset(at.task, seed=1))
        return asyncio.run(at.env.step(FORMAT.parse(AgentMove(text), at.env.spec)))

    assert refused(step(FIXED))
    assert broken_off(step(options))
    assert refused(step({**options, "no_tool_call": "nudge"}))


@COMPAT
def test_the_originals_tool_has_three_choices(options: Mapping[str, Any]) -> None:
    spec = table(task_of("turtle"), options=options).env.spec
    (tool,) = FORMAT.tool_schema(spec)
    given = tool["function"]["parameters"]["properties"]["choice"]["enum"]
    assert given == ["action", "answer", "search"]
    assert "finish" not in FORMAT.instructions(spec)
    (fixed,) = FORMAT.tool_schema(gym_spec("turtle"))
    assert fixed["function"]["parameters"]["properties"]["choice"]["enum"] == ["action", "answer"]


def test_typed_actions_are_read_by_their_tag_too() -> None:
    answer = AgentAction(Choice.ANSWER, "x")
    assert by_tag(answer) == answer
    assert by_tag(AgentAction(Choice.ACTION, "[answer]x", raw=True)) == answer
    assert by_tag(AgentAction(Choice.FINISH, "")) == AgentAction(Choice.FINISH, "")
    loose = by_tag(AgentAction(Choice.ACTION, " hello ", raw=True))
    assert (loose.content, loose.raw, as_speech(loose)) == ("hello", True, "hello")
    assert as_speech(by_tag(AgentAction(Choice.SEARCH, "hello"))) == "[search] hello"


# Through the driver -----------------------------------------------------------------------------


def episode(options: Mapping[str, Any], messages: Sequence[Any]) -> Episode:
    """Play `function` with a model behind a real endpoint."""
    task = task_of("function")

    async def run(name: str) -> Episode:
        source = make_agent(name)
        agent = source.start(task=task, seed=1, key="e1")
        header = Header(id="e1", run_id="r1", trial=0, seed=3, agent=source.identity)
        user = table(task).person
        try:
            gym = make_gym("function", user=user, options=options)
            assert isinstance(gym, FunctionGym)
            return await run_episode(task, gym, agent, Setup(header, FORMAT))
        finally:
            await source.aclose()

    with StubServer(list(messages)) as server:
        return asyncio.run(run(f"model:openai:stub@{server.url}"))


def native(*arguments: str) -> dict[str, Any]:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": TOOL, "arguments": text}}
        for n, text in enumerate(arguments)
    ]
    return {"content": None, "tool_calls": calls}


def test_native_calls_of_a_model_reach_the_gym_as_it_reads_them() -> None:
    messages = [
        native(called("Answer", VALUE)),
        native(called("search", "test"), called("answer", VALUE)),
        native(called("x", "[finish] \ud800")),
    ]
    fixed = episode(FIXED, messages)
    assert (fixed.outcome.reward, len(fixed.steps)) == (1.0, 1)
    compat = episode(EVAL, messages)
    assert [step.content for step in compat.steps] == [VALUE, "test", "[finish] \ufffd"]
    assert (compat.outcome.reward, compat.stop.reason) == (0.0, StopReason.AGENT_STOP)
    written = episode(EVAL, [called("Answer", VALUE), called("answer", VALUE)])
    assert [step.reward for step in written.steps] == [0.0, 1.0]
