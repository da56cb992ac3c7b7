"""Lists of messages: both pairs of keys, parts, roles, and the swapped side."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.corpora.base import HumanTurn, Unfit
from mimesim.corpora.formats.chats import fold, plain, read_chat, required


def test_both_pairs_of_keys_give_the_same_turns() -> None:
    openai = [
        {"role": "developer", "content": "Be short."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "yes?"},
    ]
    shared = [
        {"from": "system", "value": "Be short."},
        {"from": "human", "value": "hi"},
        {"from": "gpt", "value": "yes?"},
    ]
    found = read_chat(openai, "messages")
    assert found == read_chat(shared, "conversations")
    assert found.turns == (HumanTurn("user", "hi"), HumanTurn("agent", "yes?"))
    assert found.system == "Be short."
    assert found.left_out == {}


def test_parts_are_joined_and_the_rest_is_counted() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "this"}, picture, "and that"]},
        {"role": "user", "content": [picture]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "assistant", "tool_calls": [{"id": "2"}]},
        {"role": "tool", "content": "42", "tool_call_id": "1"},
        {"role": "assistant", "content": ""},
    ]
    found = read_chat(messages, "messages")
    assert found.turns == (HumanTurn("user", "this\nand that"), HumanTurn("agent", ""))
    assert found.left_out == {"parts_left_out": 2, "messages_left_out": 4}


def test_the_person_may_be_called_assistant() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    found = read_chat(messages, "messages", swapped=True)
    assert found.turns == (HumanTurn("agent", "a"), HumanTurn("user", "b"))


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (None, "no_conversation"),
        ([1], "missing_role"),
        ([{"content": "x"}], "missing_role"),
        ([{"role": None, "content": "x"}], "missing_role"),
        ([{"role": "narrator", "content": "x"}], "unknown_role"),
        ([{"role": "user", "content": {"text": "x"}}], "bad_text"),
    ],
)
def test_damage_has_a_reason(messages: Any, reason: str) -> None:
    with pytest.raises(Unfit) as caught:
        read_chat(messages, "messages")
    assert caught.value.reason == reason


def test_small_parts() -> None:
    assert fold([HumanTurn("user", " hi "), HumanTurn("agent", "yo")]) == "You: hi\n\nThey: yo"
    assert plain({"a": 0, "b": "", "c": None, "d": [], "e": False}, "a", "b", "c", "d", "e") == {
        "a": 0,
        "e": False,
    }
    with pytest.raises(Unfit, match="b, c"):
        required({"a": 1}, "a", "b", "c")
    with pytest.raises(Unfit, match="list instead of an object"):
        required([], "a")
