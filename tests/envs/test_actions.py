"""Typed actions from text: the table of gyms.md 1.3, native calls, the line grammar."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.dialogue.types import Role, ToolCall
from mimesim.envs.actions import (
    MAX_CONTENT,
    TOOL,
    as_message,
    get_format,
    problem_of,
    read_arguments,
    read_tool_calls,
)
from mimesim.envs.base import AgentAction, AgentMove, Choice
from mimesim.envs.gyms.support_desk.full import SPEC
from mimesim.errors import UnknownNameError

EVAL = replace(SPEC, choices=tuple(Choice), lenient=True)
TRAIN = replace(EVAL, phase="train")
CALL = get_format("tool-call")
LINE = get_format("line")


def read(text: str, *, finish_reason: str = "stop") -> AgentAction:
    return CALL.parse(AgentMove(text, finish_reason=finish_reason), SPEC)


def arguments(choice: object, content: object, **more: object) -> AgentAction:
    return read(json.dumps({"choice": choice, "content": content, **more}))


@pytest.mark.parametrize("choice", ["answer", "Answer ", " ANSWER", "aNsWeR\n"])
def test_choice_is_trimmed_and_lowered(choice: str) -> None:
    assert arguments(choice, "x") == AgentAction(Choice.ANSWER, "x")


@pytest.mark.parametrize("choice", ["Answer ", "ANSWER", "reply", "", None, 3])
def test_a_lenient_gym_gets_the_bare_content_of_other_choices(choice: object) -> None:
    bare = AgentAction(Choice.ACTION, "x", raw=True)
    for spec in (EVAL, TRAIN):
        assert read_arguments({"choice": choice, "content": "x"}, spec) == bare
    assert read_arguments({"choice": choice, "content": None}, EVAL).content == "None"


@pytest.mark.parametrize(
    "content",
    ["[answer] H1", "[Answer] H1", "[action] H1", "", " \n", "x" * 8001, "<think>a</think>b"],
)
def test_a_lenient_gym_gets_every_text_as_it_stands(content: str) -> None:
    for spec in (EVAL, TRAIN):
        called = {"choice": "answer", "content": content}
        assert read_arguments(called, spec) == AgentAction(Choice.ANSWER, content)


@pytest.mark.parametrize("content", [225, 225.0, None, True, ["x"], {"a": 1}])
def test_what_is_no_text_becomes_one_in_the_trainer_and_breaks_the_evaluator(
    content: object,
) -> None:
    called = {"choice": "answer", "content": content}
    assert read_arguments(called, TRAIN) == AgentAction(Choice.ANSWER, str(content))
    assert read_arguments(called, EVAL).problem == "content is not a string"


def test_finish_is_a_choice_of_the_trainer() -> None:
    called = {"choice": "finish", "content": "x", "more": 1}
    assert read_arguments(called, TRAIN) == AgentAction(Choice.FINISH, "x", ignored_keys=1)
    bare = AgentAction(Choice.ACTION, "x", ignored_keys=1, raw=True)
    assert read_arguments(called, EVAL) == bare
    assert read_arguments({}, TRAIN) == AgentAction(Choice.ACTION, "", raw=True)
    assert read_arguments({}, EVAL).problem == "the call lacks choice and content"


@pytest.mark.parametrize("choice", ["reply", "", "finish", None, 3])
def test_a_choice_that_the_gym_does_not_have_is_invalid(choice: object) -> None:
    assert arguments(choice, "x").problem


@pytest.mark.parametrize("tag", ["[answer] ", "[ANSWER]", " [ Answer ]  "])
def test_the_tag_of_the_same_choice_is_removed_once(tag: str) -> None:
    assert arguments("answer", f"{tag}H1").content == "H1"
    assert arguments("answer", f"{tag}[answer] H1").content == "[answer] H1"


@pytest.mark.parametrize("tag", ["[action]", "[Search] ", "[finish]"])
def test_the_tag_of_another_choice_is_invalid(tag: str) -> None:
    assert "another choice" in arguments("answer", f"{tag} H1").problem


@pytest.mark.parametrize(
    ("number", "text"), [(225, "225"), (225.0, "225"), (2.5, "2.5"), (-7, "-7"), (1e20, "1e+20")]
)
def test_numbers_become_canonical_strings(number: float, text: str) -> None:
    assert arguments("answer", number).content == text


@pytest.mark.parametrize("content", [None, [], ["x"], {"a": 1}, True, False])
def test_contents_that_are_no_text_are_invalid(content: object) -> None:
    assert arguments("answer", content).problem == "content is not a string"


@pytest.mark.parametrize("content", ["", "  \n", "\u200b", "[answer]", "<think>only this</think>"])
def test_empty_contents_are_invalid(content: str) -> None:
    assert arguments("answer", content).problem == "content is empty"


def test_contents_have_a_longest_length() -> None:
    assert not arguments("action", "x" * MAX_CONTENT).problem
    assert arguments("action", "x" * (MAX_CONTENT + 1)).problem


def test_extra_keys_are_ignored_and_counted() -> None:
    action = arguments("action", "hi", mood="fine", note=1)
    assert (action.content, action.problem, action.ignored_keys) == ("hi", "", 2)


def test_reasoning_inside_content_is_removed() -> None:
    assert arguments("action", "<think>secret plan</think>Hello").content == "Hello"
    called = {"choice": "action", "content": "secret plan</think>Hello"}
    assert read_arguments(called, SPEC).content == "Hello"
    assert read(json.dumps(called)).problem  # written as text, the call itself is reasoning


BODY = '{"choice": "action", "content": "Hello"}'


@pytest.mark.parametrize(
    "text",
    [
        BODY,
        f"```json\n{BODY}\n```",
        f"I greet first.\n{BODY}",
        f"<think>{{not json}} hm</think>\n{BODY}",
        f'<tool_call>\n{{"name": "{TOOL}", "arguments": {BODY}}}\n</tool_call>',
        json.dumps({"name": TOOL, "arguments": BODY}),
        json.dumps({"name": TOOL, "parameters": json.loads(BODY)}),
        "{'choice': 'action', 'content': 'Hello'}",
        "\u007b\u201cchoice\u201d: \u201caction\u201d, \u201ccontent\u201d: \u201cHello\u201d\u007d",
    ],
)
def test_spellings_of_one_call(text: str) -> None:
    assert read(text) == AgentAction(Choice.ACTION, "Hello")


@pytest.mark.parametrize(
    "text",
    ["Hello, how can I help?", "", "[action] Hello", '{"choice": "action", "conte', '{"a": 1}'],
)
def test_a_message_without_a_call_is_nudged(text: str) -> None:
    assert "no call" in read(text).problem


def test_a_call_only_in_reasoning_is_no_call() -> None:
    assert "no call" in read(f"<think>{BODY}</think>").problem


@pytest.mark.parametrize("between", ["\n", " and then ", "</tool_call><tool_call>"])
def test_several_calls_execute_none(between: str) -> None:
    assert "several" in read(f"{BODY}{between}{BODY}").problem


def test_a_call_without_an_argument_is_invalid() -> None:
    assert "content" in read('{"choice": "action"}').problem
    assert "choice and content" in read(json.dumps({"name": TOOL, "arguments": {}})).problem


def native(*bodies: str, name: str = TOOL) -> AgentAction:
    calls = [ToolCall(f"c{i}", name, body, Role.AGENT) for i, body in enumerate(bodies)]
    return read_tool_calls(calls, SPEC)


def test_native_calls() -> None:
    assert native(BODY) == AgentAction(Choice.ACTION, "Hello", "c0")
    assert "several" in native(BODY, BODY).problem
    assert "no call" in native().problem
    assert "only tool" in native(BODY, name="lookup").problem
    assert "not a JSON object" in native("{choice").problem
    assert native("{choice").call_id == "c0"


def test_a_native_call_is_read_again_for_the_gym_that_gets_it() -> None:
    read_before = native('{"choice": "Answer", "content": "[answer] x\\ud800\\u0000"}')
    assert read_before == AgentAction(Choice.ANSWER, "x\ud800\0", "c0")
    again = CALL.parse(AgentMove("", read_before), EVAL)
    assert again == AgentAction(Choice.ACTION, "[answer] x\ufffd\ufffd", "c0", raw=True)
    fixed = AgentAction(Choice.ANSWER, "x\ufffd\ufffd", "c0")
    assert CALL.parse(AgentMove("", read_before), SPEC) == fixed
    assert CALL.parse(AgentMove("", again), TRAIN).calls == read_before.calls


def test_which_of_several_calls_is_read() -> None:
    first, last = (json.dumps({"choice": "action", "content": word}) for word in ("one", "two"))
    for kept, content in (("first", "one"), ("last", "two"), ("reject", "")):
        spec = replace(SPEC, multi_call=kept)  # type: ignore[arg-type]
        assert CALL.parse(AgentMove(f"{first} {last}"), spec).content == content
        assert CALL.parse(AgentMove("", native(first, last)), spec).content == content
        assert CALL.parse(AgentMove("no"), spec).problem
        assert CALL.parse(AgentMove("", native(first)), spec).content == "one"


def test_a_typed_action_passes_unchanged() -> None:
    action = AgentAction(Choice.SEARCH, "policy")
    assert CALL.parse(AgentMove("whatever", action), SPEC) is action
    assert LINE.parse(AgentMove("whatever", action), SPEC) is action


@pytest.mark.parametrize(
    ("line", "choice", "content"),
    [
        ("may i have the order number ?", Choice.ACTION, "may i have the order number ?"),
        ("ask for the zip ?", Choice.ACTION, "for the zip ?"),
        ("act deny order 417", Choice.ANSWER, "act deny order 417"),
        ("ACT deny order 417", Choice.ANSWER, "ACT deny order 417"),
        ("action is needed", Choice.ACTION, "action is needed"),
        ("<think>deny it</think> act deny order 417", Choice.ANSWER, "act deny order 417"),
    ],
)
def test_line_grammar(line: str, choice: Choice, content: str) -> None:
    assert LINE.parse(AgentMove(line), SPEC) == AgentAction(choice, content)


def test_empty_lines_are_invalid() -> None:
    assert LINE.parse(AgentMove(" "), SPEC).problem
    assert LINE.parse(AgentMove("ask "), SPEC).problem


contents = (
    st.text(min_size=1, max_size=60)
    .map(str.strip)
    .filter(
        lambda s: (
            s
            and "<" not in s
            and "[" not in s
            and not problem_of(AgentAction(Choice.ACTION, s), SPEC)
        )
    )
)


@given(st.sampled_from([Choice.ACTION, Choice.ANSWER, Choice.SEARCH]), contents)
def test_tool_calls_round_trip(choice: Choice, content: str) -> None:
    action = AgentAction(choice, content)
    assert read(CALL.render(action)) == action


@given(contents)
def test_lines_round_trip(content: str) -> None:
    said = AgentAction(Choice.ACTION, content)
    assert LINE.parse(AgentMove(LINE.render(said)), SPEC) == said
    done = AgentAction(Choice.ANSWER, f"act {content}")
    assert LINE.parse(AgentMove(LINE.render(done)), SPEC) == done


@given(st.text(max_size=200))
def test_no_text_makes_the_parsers_fail(text: str) -> None:
    for written in (CALL, LINE):
        action = written.parse(AgentMove(text), SPEC)
        assert action.problem or not problem_of(action, SPEC)


def test_the_schema_offers_the_gyms_choices_only() -> None:
    (tool,) = CALL.tool_schema(SPEC)
    parameters = tool["function"]["parameters"]
    assert tool["function"]["name"] == TOOL
    assert parameters["properties"]["choice"]["enum"] == ["action", "answer", "search"]
    assert parameters["required"] == ["choice", "content"]
    assert LINE.tool_schema(SPEC) == ()


def test_instructions_name_the_choices() -> None:
    text = CALL.instructions(SPEC)
    assert "action, answer, search" in text
    assert "finish" not in text
    assert "act" in LINE.instructions(SPEC)


def test_the_public_form_of_an_action() -> None:
    said = as_message(AgentAction(Choice.ACTION, "Hello"), '{"choice": ...}')
    assert (said.content, said.tool_calls) == ("Hello", ())
    done = as_message(AgentAction(Choice.ANSWER, "x: {}", "c7"))
    (call,) = done.tool_calls
    assert (done.content, call.id, call.owner) == ("", "c7", Role.AGENT)
    assert read_arguments(json.loads(call.arguments), SPEC).content == "x: {}"
    unread = as_message(AgentAction(Choice.ACTION, "", problem="no call"), "words")
    assert unread.content == "words"


def test_unknown_format() -> None:
    with pytest.raises(UnknownNameError, match="tool-call"):
        get_format("toolcall")


def test_the_plain_format_says_everything_as_it_stands() -> None:
    plain = get_format("plain")
    for text in ("act now", '{"choice": "answer", "content": "x"}', "ask me"):
        assert plain.parse(AgentMove(text), SPEC) == AgentAction(Choice.ACTION, text)
        assert plain.render(AgentAction(Choice.ACTION, text)) == text
    assert plain.parse(AgentMove("<think>a</think>b"), SPEC).content == "b"
    assert plain.parse(AgentMove("x" * (MAX_CONTENT + 1)), SPEC).problem
    assert plain.tool_schema(SPEC) == ()
