"""Exports: public unless asked, one shape per target, readable by loaders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.export import NO_RESULT, TARGETS, Options, export_rows, thoughts_of
from mimesim.errors import DataError, UnknownNameError


def turn(i: int, role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"i": i, "role": role, "content": content, "tool_calls": [], **more}


def call(name: str, arguments: Any = '{"id":"7"}', owner: str = "agent") -> dict[str, Any]:
    return {"id": "c1", "name": name, "arguments": arguments, "owner": owner, "parse_error": None}


PLAIN: dict[str, Any] = {
    "id": "e1",
    "system": "You are a support agent.",
    "turns": [turn(0, "user", "hi"), turn(1, "agent", "Hello."), turn(2, "user", "thanks")],
    "private": {
        "goal": "ZQX goal",
        "thoughts": [{"turn": 0, "text": "ZQX say hi"}, {"turn": 2, "text": ""}],
    },
}
TOOLS: dict[str, Any] = {
    "id": "e2",
    "system": "You are a support agent.",
    "turns": [
        turn(0, "agent", "Welcome!"),
        turn(1, "user", "where is it"),
        turn(2, "agent", "One moment.", tool_calls=[call("lookup")]),
        turn(3, "tool", '{"eta":"Mon"}', tool_call_id="c1", owner="agent"),
        turn(4, "agent", "It comes on Monday."),
        turn(5, "user", "lost", delivered=False),
    ],
    "private": {"thoughts": [{"turn": 1, "text": "ZQX where"}]},
}


def rows(target: str, *episodes: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return list(export_rows(episodes, target, Options(**options)))


def test_openai_keeps_tools_as_strings() -> None:
    messages = rows("openai", TOOLS)[0]["messages"]
    assert [m["role"] for m in messages] == [
        "system",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert messages[3]["tool_calls"][0]["function"] == {"name": "lookup", "arguments": '{"id":"7"}'}
    assert messages[4]["tool_call_id"] == "c1"
    assert all(isinstance(m["content"], str) for m in messages)
    assert "lost" not in str(messages)


def test_arguments_that_are_no_text_become_text() -> None:
    episode = {
        **TOOLS,
        "turns": [*TOOLS["turns"][:2], turn(2, "agent", "", tool_calls=[call("x", {"a": 1})])],
    }
    function = rows("openai", episode)[0]["messages"][-1]["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == {"a": 1}


def test_user_side_is_flipped_and_public() -> None:
    row = rows("openai-user", PLAIN)[0]
    assert [(m["role"], m["content"]) for m in row["messages"][1:]] == [
        ("user", "Hi! How can I help you today?"),
        ("assistant", "hi"),
        ("user", "Hello."),
        ("assistant", "thanks"),
    ]
    assert row["private"] is False


def test_user_side_with_private_says_so() -> None:
    row = rows("openai-user", PLAIN, with_private=True, user_prompt=lambda e: e["private"]["goal"])[
        0
    ]
    contents = [m["content"] for m in row["messages"]]
    assert contents[0] == "ZQX goal"
    assert contents[2] == "<think>\nZQX say hi\n</think>\n\nhi"
    assert contents[4] == "<think>\n\n</think>\n\nthanks"
    assert row["private"] is True


@pytest.mark.parametrize("target", TARGETS)
def test_public_exports_hold_nothing_private(target: str) -> None:
    assert "ZQX" not in jsonio.dumps(rows(target, PLAIN, TOOLS))


@pytest.mark.parametrize("target", ["openai", "sharegpt"])
def test_agent_rows_hold_nothing_private_even_when_asked(target: str) -> None:
    assert "ZQX" not in jsonio.dumps(rows(target, PLAIN, TOOLS, with_private=True))


def roles(row: dict[str, Any]) -> list[str]:
    return [piece["from"] for piece in row["conversations"]]


def test_sharegpt_starts_with_a_human_and_alternates() -> None:
    plain, tools = rows("sharegpt", PLAIN, TOOLS)
    assert roles(plain) == ["human", "gpt"]
    assert roles(tools) == ["human", "function_call", "observation", "gpt"]
    assert tools["system"] == "You are a support agent.\n\nWelcome!"
    assert json.loads(tools["conversations"][1]["value"]) == {
        "name": "lookup",
        "arguments": {"id": "7"},
    }
    assert tools["conversations"][3]["value"] == "One moment.\n\nIt comes on Monday."


def test_sharegpt_alternates_whatever_the_agent_did() -> None:
    turns = [
        turn(0, "user", "a"),
        turn(1, "user", "b"),
        turn(2, "agent", "text first"),
        turn(3, "agent", "", tool_calls=[call("x"), call("y")]),
        turn(4, "agent", "", tool_calls=[call("z")]),
        turn(5, "tool", "r", owner="agent"),
        turn(6, "user", "c"),
        turn(7, "agent", "end"),
    ]
    row = rows("sharegpt", {**PLAIN, "turns": turns})[0]
    odd, even = ("human", "observation"), ("gpt", "function_call")
    assert all(role in (even if i % 2 else odd) for i, role in enumerate(roles(row)))
    values = [p["value"] for p in row["conversations"]]
    assert NO_RESULT in values
    for piece in row["conversations"]:
        if piece["from"] == "function_call":
            json.loads(piece["value"])
    assert values[-3:] == ["text first", "c", "end"]


@pytest.mark.parametrize("target", TARGETS)
def test_rows_have_the_same_keys_and_load_as_arrow(target: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow.json", reason="pyarrow comes with the extra train")
    made = rows(target, PLAIN, TOOLS)
    assert len({tuple(row) for row in made}) == 1
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(jsonio.dumps(row) + "\n" for row in made), "utf-8")
    assert arrow.read_json(path).num_rows == 2


def test_equal_input_gives_equal_rows() -> None:
    assert rows("openai", PLAIN, TOOLS) == rows("openai", PLAIN, TOOLS)


def test_episodes_without_a_user_message_are_left_out() -> None:
    assert rows("openai", {**PLAIN, "turns": []}) == []


def test_content_that_is_no_text_is_refused() -> None:
    broken = {**PLAIN, "turns": [turn(0, "user", ["parts"])]}  # type: ignore[arg-type]
    with pytest.raises(DataError, match="episode e1"):
        rows("openai", broken)


def test_unknown_target() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'sharegpt'"):
        rows("shargpt", PLAIN)


def test_thoughts_follow_the_delivered_messages() -> None:
    found = [t.reveal() if t else None for t in thoughts_of(PLAIN)]
    assert found == ["ZQX say hi", None]
