"""What a judge decides about a played behavior: typed verdicts and the question put to it.

A row with a behavior gets five sub-scores, a neutral row three. Numbers are clamped to [0, 1]; what
is no number, missing or not finite is no verdict at all, never 0. The language model sees the
definition, the neighbors as what it is not, the goal and what was said; private thoughts go to it
for the few behaviors that cannot be told without them, and nowhere else. A rule judge answers the
same question from `judges.behavior_rules`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import Role
from mimesim.judges.base import Judge, JudgeRequest, JudgeResult, Skipped
from mimesim.judges.behavior_rules import HELD_OUT, MAIN, rule_answer
from mimesim.judges.behavior_talk import Performance, Said
from mimesim.scenarios import behaviors
from mimesim.scenarios.behaviors.base import neutral_definition

__all__ = [
    "BEHAVIOR",
    "EXHIBITED",
    "NEUTRAL",
    "BehaviorVerdict",
    "NeutralVerdict",
    "Performance",
    "Said",
    "Verdict",
    "judge_performance",
    "question",
]

BEHAVIOR = "behavior"
NEUTRAL = "behavior_neutral"
EXHIBITED = 0.5
"""From this value of `exhibit` (or `cooperative`) on, the behavior counts as shown."""


def _clamped(value: float) -> float:
    return min(1.0, max(0.0, value))


Share = Annotated[
    float,
    Field(allow_inf_nan=False, json_schema_extra={"minimum": 0, "maximum": 1}),
    AfterValidator(_clamped),
]
"""A number that is clamped to [0, 1]; anything but a finite number is refused."""


class BehaviorVerdict(BaseModel):
    """The verdict on a row with a behavior.

    Attributes:
        why: what the scores rest on.
        exhibit: whether it happened, by acts.
        placement: whether it came where it fits; 0 when it did not come.
        naturalness: a person, or a model playing one.
        on_task: whether the own errand was still pursued.
        announced: whether the customer told of the behavior instead of showing it.
    """

    why: str = ""
    exhibit: Share
    placement: Share
    naturalness: Share
    on_task: Share
    announced: bool


class NeutralVerdict(BaseModel):
    """The verdict on a neutral row; see `BehaviorVerdict`."""

    why: str = ""
    cooperative: Share
    naturalness: Share
    on_task: Share


Verdict = BehaviorVerdict | NeutralVerdict


def question(
    performance: Performance, *, seed: int, trial: int = 0
) -> JudgeRequest[BehaviorVerdict] | JudgeRequest[NeutralVerdict]:
    """Return the question that asks for the verdict on `performance`.

    Raises:
        UnknownNameError: no such behavior.
    """
    shown: dict[str, Any] = {"goal": performance.goal, "transcript": _transcript(performance)}
    rules: dict[str, Any] = {
        "rule": lambda inputs: rule_answer(performance, MAIN),
        "held_out": lambda inputs: rule_answer(performance, HELD_OUT),
    }
    if performance.behavior is None:
        shown["definition"] = neutral_definition()
        return JudgeRequest(NEUTRAL, shown, NeutralVerdict, seed=seed, trial=trial, **rules)
    judged = behaviors.judged(behaviors.get(performance.behavior))
    contrasts = [
        {"name": _words(name), "definition": definition, "told": told}
        for name, definition, told in judged.contrasts
    ]
    shown |= {
        "name": _words(judged.name),
        "definition": judged.definition,
        "contrasts": contrasts,
        "pairs": _pairs(performance) if judged.sees_thoughts else [],
    }
    return JudgeRequest(BEHAVIOR, shown, BehaviorVerdict, seed=seed, trial=trial, **rules)


async def judge_performance(
    judge: Judge, performance: Performance, *, seed: int, trial: int = 0
) -> JudgeResult[Any]:
    """Judge once, at the end; where the customer said nothing of their own, nobody is asked.

    Raises:
        InfraError: the judge could not be reached.
        ContextExceeded: the conversation does not fit the judge.
        UnknownNameError: no such behavior.
    """
    if not any(not is_blank(turn.text) for turn in performance.own):
        return Skipped("no_generated_turn")
    return await judge.judge(question(performance, seed=seed, trial=trial))


def _transcript(performance: Performance) -> list[dict[str, Any]]:
    return [
        {
            "role": "customer" if turn.role is Role.USER else "agent",
            "text": turn.text,
            "replayed": turn.replayed,
        }
        for turn in performance.turns
    ]


def _pairs(performance: Performance) -> list[dict[str, str]]:
    """Return what was thought and what was sent, where a thought is known at all."""
    own = [(turn.thought, turn.text) for turn in performance.own]
    if not any(thought for thought, _ in own):
        return []
    return [{"private": t.reveal() if t else "", "sent": text} for t, text in own]


def _words(name: str) -> str:
    return name.replace("_", " ")
