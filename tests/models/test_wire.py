"""Reading answers: what is no answer is damaged, and never the words or the fault of a party."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.models.wire import LONGEST, count_usage, read_chat, read_tokens


def chat(**message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        7,
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [None]},
        {"choices": [{"message": None}]},
        chat(content=5),
        chat(content={"text": "x"}),
        chat(content="x", tool_calls=5),
        chat(content="x", tool_calls={"a": 1}),
        chat(content="x", tool_calls=["x"]),
        chat(content=None, tool_calls=[{"id": "c", "function": "look"}]),
        chat(content="x", reasoning_content={"a": 1}),
        chat(content="x" * (LONGEST + 1)),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_no_answer_is_told_by_value_error(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_chat(answer, None)


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"type": "reasoning", "text": "SECRET"}, True),
        ({"type": "reasoning_text", "text": "SECRET"}, True),
        ({"type": "summary_text", "text": "SECRET"}, True),
        ({"type": "thinking", "text": "SECRET"}, True),
        ({"type": "thinking", "thinking": "SECRET", "signature": "x"}, True),
        ({"type": "thinking", "thinking": [{"type": "text", "text": "SECRET"}]}, True),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "SECRET"}]}, True),
        ({"type": "redacted_thinking", "text": "SECRET"}, True),
        ({"type": "text", "text": "SECRET", "thought": True}, True),
        ({"type": "tool_use", "text": "SECRET"}, False),
        ({"type": "unheard_of", "text": "SECRET"}, False),
        ({"text": "SECRET"}, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("field", [None, "before"])
def test_only_parts_that_are_speech_are_spoken(
    part: dict[str, Any], told: bool, field: str | None
) -> None:
    spoken = [{"type": "text", "text": "Where"}, {"type": "output_text", "text": "?"}]
    read = read_chat(chat(content=[part, *spoken], reasoning_content=field), None)
    assert read.text == "Where?"
    thoughts = ([field] if field else []) + ["SECRET"] * told
    assert (read.reasoning.reveal() if read.reasoning else "") == "\n\n".join(thoughts)


def test_the_longest_text_is_read_whole() -> None:
    assert len(read_chat(chat(content="x" * LONGEST), None).text) == LONGEST


@pytest.mark.parametrize(
    "choice",
    [
        {"token_ids": ["5"]},
        {"token_ids": [True]},
        {"token_ids": [-1]},
        {"token_ids": [5], "logprobs": {"token_logprobs": 5}},
        {"token_ids": [5], "logprobs": {"token_logprobs": [-0.1, -0.2]}},
    ],
    ids=str,
)
def test_token_answers_that_do_not_fit_are_refused(choice: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_tokens({"choices": [choice]})


def test_log_probs_in_another_shape_are_unknown() -> None:
    read = read_tokens({"choices": [{"token_ids": [5], "logprobs": "none"}]})
    assert read is not None
    assert (read.ids, read.logprobs) == ((5,), None)


@pytest.mark.parametrize("reported", ["lots", {"prompt_tokens": -5, "completion_tokens": 1e30}, []])
def test_usage_that_cannot_be_is_unknown(reported: Any) -> None:
    used = count_usage(reported, None)
    assert (used.prompt_tokens, used.completion_tokens, used.cost) == (None, None, None)
    assert used.calls == 1
