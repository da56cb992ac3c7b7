"""Rule judges run the rule that comes with the question."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from mimesim.errors import DataError, EnvError, JudgeError
from mimesim.judges.base import Failed, JudgeRequest, JudgeResult, required
from mimesim.judges.load import make_judge


class Correct(BaseModel):
    """A yes or no."""

    correct: bool


def ask(rule: Any) -> JudgeResult[Correct]:
    """Put one question to the rule judge."""
    request = JudgeRequest(
        "telepathy.guess", {"target": "Lion", "guess": "lion"}, Correct, 0, rule=rule
    )
    return asyncio.run(make_judge("rule").judge(request))


def same(inputs: Mapping[str, Any]) -> dict[str, bool]:
    """Compare without case."""
    return {"correct": inputs["target"].casefold() == inputs["guess"].casefold()}


def test_the_rule_decides() -> None:
    assert required(ask(same)).correct is True
    assert make_judge("rule").identity.kind == "rule"


def test_no_rule_and_a_silent_rule_are_failures_not_scores() -> None:
    assert ask(None) == Failed("no rule for telepathy.guess")
    assert ask(lambda inputs: None) == Failed("the rule cannot decide")


def test_a_rule_that_breaks_its_schema_is_a_fault_of_the_gym() -> None:
    with pytest.raises(EnvError, match="breaks its schema"):
        ask(lambda inputs: {"correct": "yes"})


def _breaks(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    raise ValueError(inputs["target"])


def _refuses(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    raise DataError("a damaged cue: Lion")


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (_breaks, "ValueError"),
        (_refuses, "DataError"),
        (lambda inputs: inputs["gues"], "KeyError"),
        (lambda inputs: 3, "TypeError"),
        (lambda inputs: {"correct": {1}}, "TypeError"),
        (lambda: {"correct": True}, "TypeError"),
    ],
)
def test_a_rule_that_breaks_ends_one_conversation_and_tells_no_text(rule: Any, name: str) -> None:
    with pytest.raises(EnvError, match=f"the rule of telepathy.guess broke: {name}") as caught:
        ask(rule)
    assert "Lion" not in str(caught.value)


def test_a_rule_may_say_itself_that_it_failed() -> None:
    def fails(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        raise JudgeError("no way to tell")

    with pytest.raises(JudgeError, match="no way to tell"):
        ask(fails)


def test_the_held_out_rule_is_another_one() -> None:
    request = JudgeRequest(
        "k",
        {"target": "Lion", "guess": "lion"},
        Correct,
        0,
        rule=same,
        held_out=lambda _: {"correct": False},
    )
    judge = make_judge("rule-heldout")
    assert required(asyncio.run(judge.judge(request))).correct is False
    without = JudgeRequest("k", {}, Correct, 0, rule=same)
    assert asyncio.run(judge.judge(without)) == Failed("no held-out rule for k")
