"""The format gate: every way a message can be malformed, on texts and on token records."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mimesim.dialogue.thinking import OPENER, join
from mimesim.dialogue.types import Thought
from mimesim.rollout.tokens import TokenRollout, TurnSpan
from mimesim.train.user_gate import MIN_THOUGHT, format_problem, rollout_problem

END = 99
CLOSE = join(None, "").removeprefix(OPENER).strip()
GOOD = join(Thought("one two three four"), "where is my order")


def words(text: str) -> int:
    return len(text.split())


def problem(text: str, *, thinking: bool = True, cut: bool = False) -> str:
    return format_problem(text, thinking=thinking, cut=cut, tokens=words)


def test_a_thought_and_a_message_pass() -> None:
    assert problem(GOOD) == ""
    assert problem(f"\n{GOOD}\n") == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("where is my order", "malformed"),  # no thought
        (f"{OPENER}one two three four", "malformed"),  # never closed
        (f"one two three four\n{CLOSE}\n\nhi", "malformed"),  # never opened
        (f"hi\n{OPENER}one two three four\n{CLOSE}", "malformed"),  # behind the message
        (f"{GOOD}\n{OPENER}and again it went\n{CLOSE}", "malformed"),  # twice
        (join(Thought("one two three"), "hi"), "short"),
        (join(None, "hi"), "short"),
        (join(Thought("one two three four"), " \n"), "empty"),
        ("", "malformed"),
    ],
)
def test_what_is_wrong_is_named(text: str, expected: str) -> None:
    assert problem(text) == expected


def test_the_bound_counts_tokens() -> None:
    thought = " ".join(["w"] * MIN_THOUGHT)
    assert problem(join(Thought(thought), "hi")) == ""
    assert problem(join(Thought(thought.removesuffix(" w")), "hi")) == "short"


def test_cut_at_the_cap_comes_first() -> None:
    assert problem(GOOD, cut=True) == "cut"
    assert problem("hi", thinking=False, cut=True) == "cut"


def test_without_thinking_a_block_is_out_of_place() -> None:
    assert problem("hi", thinking=False) == ""
    assert problem(GOOD, thinking=False) == "malformed"
    assert problem(" \n", thinking=False) == "empty"


class Codec:
    """Ids are places in a list of texts."""

    end_id = END
    header = 1

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self._texts[i] for i in ids if i != END)

    def prompt_ids(self, messages: object) -> list[int]:
        raise NotImplementedError

    def suffix_ids(self, text: str) -> list[int]:
        raise NotImplementedError

    def note_ids(self, text: str) -> list[int]:
        raise NotImplementedError


def record(*replies: tuple[int, ...]) -> TokenRollout:
    ids: list[int] = []
    spans = []
    for reply in replies:
        ids += [7] if ids else []
        spans.append(TurnSpan(len(ids), len(ids) + len(reply), 1))
        ids += reply
    inside = [0] * len(ids)
    for span in spans:
        inside[span.start : span.end] = [1] * (span.end - span.start)
    return TokenRollout((1,), tuple(ids), tuple(inside), (0.0,) * len(ids), tuple(spans))


def test_one_bad_message_spoils_a_rollout() -> None:
    codec = Codec([GOOD, "hi", *[""] * 6])
    good, bad, cut = (0, END), (1, END), (0,)
    assert rollout_problem(record(good, good), codec, thinking=True, tokens=words) == ""
    assert rollout_problem(record(good, bad), codec, thinking=True, tokens=words) == "malformed"
    assert rollout_problem(record(good, bad, good), codec, thinking=True, tokens=words) != ""
    assert rollout_problem(record(good, cut), codec, thinking=True, tokens=words) == "cut"
