"""The format gate of user RL: a rollout with one malformed message earns nothing.

It stands between the verdict and the advantage, in training only; in evaluation it is logged. Four
tokens of thought are enough, since people's own thoughts are that short in one case out of ten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from mimesim.dialogue.thinking import OPENER, has_tag, is_blank, split
from mimesim.models.base import ChatCodec
from mimesim.rollout.tokens import TokenRollout

Problem = Literal["", "cut", "malformed", "short", "empty"]
"""What is wrong with a message: cut at the cap, tags in disorder, a thought too short, no words."""
MIN_THOUGHT = 4
"""Fewest tokens of a thought."""
_TAG = OPENER.strip()


def format_problem(
    text: str, *, thinking: bool, cut: bool, tokens: Callable[[str], int]
) -> Problem:
    """Return what is wrong with one generated message, "" = nothing.

    Args:
        text: as generated, private block included.
        thinking: whether the policy thinks before it writes; if not, a block is malformed.
        cut: whether the length cap ended it instead of the end token.
        tokens: counts the tokens of a text.
    """
    if cut:
        return "cut"
    if not thinking:
        if has_tag(text):
            return "malformed"
        return "empty" if is_blank(text) else ""
    parts = split(text, thinking=True)
    thought = parts.thought.reveal() if parts.thought is not None else ""
    opened_first = text.lstrip().startswith(_TAG) and text.count(_TAG) == 1
    if not opened_first or parts.thought is None:
        return "malformed"
    if is_blank(parts.text):
        return "empty" if parts.text or not has_open_end(text) else "malformed"
    if not parts.complete:
        return "malformed"
    return "short" if tokens(thought) < MIN_THOUGHT else ""


def has_open_end(text: str) -> bool:
    """Tell whether the private block was never closed."""
    return split(f"{text}.", thinking=True).text == ""


def rollout_problem(
    record: TokenRollout, codec: ChatCodec, *, thinking: bool, tokens: Callable[[str], int]
) -> Problem:
    """Return the first problem of a rollout's messages, "" = all are well-formed."""
    for span in record.spans:
        ids = record.completion_ids[span.start : span.end]
        cut = ids[-1] != codec.end_id
        problem = format_problem(codec.decode(ids), thinking=thinking, cut=cut, tokens=tokens)
        if problem:
            return problem
    return ""
