"""ThoughtTrace: thoughts on their turns, alternation checked twice, what is hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.corpora.base import HumanTurn, Unfit
from mimesim.corpora.formats.thoughttrace import FORMAT
from mimesim.dialogue.types import Thought


def note(content: Any, label: str = "task_motivation") -> dict[str, Any]:
    return {"content": content, "timestamp": "2026-01-01T00:00:00Z", "label": label}


def message(kind: str, content: Any, *notes: dict[str, Any]) -> dict[str, Any]:
    key = "reasons" if kind == "user" else "reactions"
    return {"id": 1, "type": kind, "content": content, key: list(notes)}


def row(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "id": "user7_task2_conversation1",
        "messages": list(messages),
        "model_name": "M",
        "model_provider": "P",
        "task_summary": "Find a name for a cat.",
        "task_expectation": "Several funny names please.",
        "survey_answers": [
            {"age": "30", "gender": "", "education": None, "frequency": "4", "extra": "x"}
        ],
        **fields,
    }


CHAT = row(
    message("user", "name for a cat?", note("my kid wants one"), note(" "), note("and soon")),
    message("assistant", "Biscuit!", note("too common", "partial_satisfaction")),
    message("user", "another"),
    message("assistant", "Pixel."),
)


def test_a_conversation() -> None:
    (found,) = FORMAT.convert(CHAT, {})
    assert found.id == "thoughttrace/user7_task2_conversation1"
    assert found.turns == (
        HumanTurn("user", "name for a cat?", thought=Thought("my kid wants one\n\nand soon")),
        HumanTurn("agent", "Biscuit!", reaction=Thought("too common")),
        HumanTurn("user", "another"),
        HumanTurn("agent", "Pixel."),
    )
    assert found.goal == "Find a name for a cat."
    assert found.hidden["expectation"] == "Several funny names please."
    assert found.hidden["profile"] == {"age": "30", "frequency": "4"}
    assert found.hidden["reaction_labels"] == ["partial_satisfaction"]
    assert (found.user_key, found.group_keys) == ("user7", ("user7",))
    assert FORMAT.claims(CHAT)


def test_an_empty_survey_and_nothing_noted() -> None:
    bare = row(message("user", "hi"), survey_answers=[], task_expectation=None)
    del bare["messages"][0]["reasons"]
    (found,) = FORMAT.convert({**bare, "id": "other"}, {})
    assert "profile" not in found.hidden
    assert "expectation" not in found.hidden
    assert found.turns == (HumanTurn("user", "hi"),)
    assert found.group_keys == ()


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "not_alternating"),
        ([message("assistant", "hi"), message("user", "hi")], "not_alternating"),
        ([message("user", "a"), message("user", "b")], "not_alternating"),
        (
            [message("user", "a"), message("assistant", " "), message("user", "b")],
            "not_alternating",
        ),
        ([message("user", ""), message("assistant", "b")], "not_alternating"),
        ([message("user", None)], "not_alternating"),
        ([message("system", "a")], "unknown_role"),
        ([{"content": "a"}], "missing_role"),
        ([message("user", 3)], "bad_text"),
    ],
)
def test_what_is_no_conversation_of_this_kind(messages: list[Any], reason: str) -> None:
    with pytest.raises(Unfit) as caught:
        list(FORMAT.convert(row(*messages), {}))
    assert caught.value.reason == reason


def test_empty_messages_at_the_end_are_skipped() -> None:
    (found,) = FORMAT.convert(row(message("user", "a"), message("assistant", "")), {})
    assert found.turns == (HumanTurn("user", "a"),)
    assert found.left_out == {"empty_messages": 1}


def test_a_single_next_turn() -> None:
    value = {
        "id": "thoughttrace/user7_task2_conversation1/1",
        "history_text": "User: name for a cat?",
        "assistant_reply": "Biscuit!",
        "reaction": "too common",
        "reaction_labels": ["partial_satisfaction"],
        "motivation": "want a pun",
        "motivation_labels": ["content_expectation"],
        "next_user_message": "something with a pun",
        "stage": "middle",
        "model": "M",
    }
    (found,) = FORMAT.convert(value, {})
    pair = (
        HumanTurn("agent", "Biscuit!", reaction=Thought("too common")),
        HumanTurn("user", "something with a pun", thought=Thought("want a pun")),
    )
    assert found.turns == (HumanTurn("user", "name for a cat?"), *pair)
    assert found.earlier == ""
    cut = "Assistant: Rex?\n\nUser: no dog\n\nplease\nAssistant: I see.\nUser: name for a cat?"
    (found,) = FORMAT.convert({**value, "history_text": cut}, {})
    assert found.earlier == "They: Rex?"
    assert [turn.text.strip() for turn in found.turns[:3]] == [
        "no dog\n\nplease",
        "I see.",
        "name for a cat?",
    ]
    for unclear in ("hm\nUser: a", "User: a\nUser: b", "User: a\nAssistant: b", "a", ""):
        (found,) = FORMAT.convert({**value, "history_text": unclear}, {})
        assert (found.earlier, found.turns) == (unclear, pair)
    assert found.group_keys == ("user7",)
    assert FORMAT.claims(value)
    with pytest.raises(Unfit, match="history_text"):
        list(FORMAT.convert({"id": "x", "next_user_message": "y"}, {}))


def test_genuine_files(test_data: Path) -> None:
    folder = test_data / "thoughttrace"
    lines = jsonio.read_jsonl(folder / "ThoughtTrace_examples.jsonl")
    whole = [one for line in lines for one in FORMAT.convert(line.value, {})]
    turns = [turn for one in whole for turn in one.turns]
    assert len(whole) == 20
    assert sum(turn.role == "user" for turn in turns) == 164
    assert sum(bool(turn.thought) for turn in turns) == 154
    assert sum(bool(turn.reaction) for turn in turns) == 156
    assert sum("profile" not in one.hidden for one in whole) == 2
    lines = jsonio.read_jsonl(folder / "thought_next_turn.jsonl")
    single = [one for line in lines for one in FORMAT.convert(line.value, {})]
    assert len(single) == 142
    assert all(one.turns[-2].reaction and one.turns[-1].thought for one in single)
    assert all(one.turns[0].role == "user" for one in single)
    assert sum(bool(one.earlier) for one in single) == 7
    talks = {one.id.rpartition("/")[0] for one in single}
    assert len(talks) == 136
    assert len(talks & {one.id for one in whole}) == 7
