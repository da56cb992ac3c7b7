"""Token records in the shapes of verl: one agent loop's output, and rows for the noted teacher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mimesim.errors import CallerError
from mimesim.rollout.tokens import TokenRollout
from mimesim.train.teacher import Branch, NotedTurn, branches
from mimesim.train.verl_plugin.term import TEACHER

TURNS = "mimesim_noted_turns"
"""Key of `extra_fields` under which the noted turns travel to the teacher."""


def loop_output(
    rollout: TokenRollout, *, reward: float, turns: Sequence[NotedTurn] = ()
) -> dict[str, Any]:
    """Return the fields of verl's `AgentLoopOutput` for one conversation, metrics left out."""
    return {
        "prompt_ids": list(rollout.prompt_ids),
        "response_ids": list(rollout.completion_ids),
        "response_mask": list(rollout.env_mask),
        "response_logprobs": list(rollout.logprobs),
        "reward_score": reward,
        "num_turns": len(rollout.spans),
        "extra_fields": {TURNS: list(turns), "teacher": TEACHER},
    }


def teacher_rows(
    prompt: Sequence[int], response: Sequence[int], turns: Sequence[NotedTurn]
) -> list[tuple[Branch, list[int]]]:
    """Return every noted reply with the ids that a server is to score.

    Raises:
        CallerError: a span lies outside the response.
    """
    return [
        (branch, [*branch.prefix, *branch.note, *branch.header, *branch.reply])
        for branch in branches([prompt], [response], [turns])
    ]


def teacher_columns(
    found: Sequence[Branch], scores: Sequence[Sequence[float]], *, prompt: int, response: int
) -> list[list[float]]:
    """Return (prompt + response, 3): noted, placebo and kind, for the field `teacher_logprobs`.

    verl reads a row of that field as it reads the student's log-probs: what stands at a place
    is about the token after it.

    Args:
        found: the noted replies.
        scores: log-probs of each reply's tokens.
        prompt: tokens of the prompt.
        response: tokens of the response.

    Raises:
        CallerError: a reply and its scores differ in length.
    """
    columns = [[0.0, 0.0, 0.0] for _ in range(prompt + response)]
    for branch, values in zip(found, scores, strict=True):
        if len(values) != len(branch.reply):
            raise CallerError(f"{len(values)} scores for {len(branch.reply)} tokens")
        for offset, value in enumerate(values):
            place = columns[prompt + branch.start + offset - 1]
            place[int(branch.placebo)] = value
            place[2] += 1.0
    return columns
