"""The conformance suite: our judges pass, and broken ones are told what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.dialogue.types import Identity
from mimesim.judges.base import JudgeRequest, Verdict
from mimesim.judges.load import make_judge
from mimesim.judges.rubric import RubricJudge
from mimesim.judges.rule import RuleJudge
from mimesim.models.scripted import Scripted
from mimesim.testing.judge import check_judge


@pytest.mark.parametrize("name", ["rule", "rule-heldout"])
def test_our_judges_pass(name: str) -> None:
    findings = check_judge(make_judge(name))
    assert [finding for finding in findings if not finding.ok] == []
    assert len(findings) == 8


class Constant(RuleJudge):
    """Gives the same to everybody."""

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self.values = values

    async def judge(self, request: JudgeRequest[Any]) -> Any:
        """Decide without reading."""
        fields = request.schema.model_fields
        value = {"why": "it is so", "announced": False, **self.values}
        given = {name: value.get(name, 0.5) for name in fields}
        return Verdict(request.schema.model_construct(**given))


def wrong(judge: Any) -> dict[str, str]:
    return {finding.name: finding.told for finding in check_judge(judge) if not finding.ok}


def test_a_judge_that_tells_nothing_apart_fails() -> None:
    assert wrong(Constant()).keys() == {"told apart", "neutral"}


def test_numbers_out_of_range_and_missing_reasons_are_found() -> None:
    assert "exhibit is 7" in wrong(Constant(exhibit=7.0))["form"]
    assert "do not say why" in wrong(Constant(why=" "))["form"]


def test_prose_is_found_and_nothing_is_raised() -> None:
    prose = RubricJudge(Scripted(lambda messages, sampling: "quite rude"))
    assert {"form", "told apart", "neutral"} <= wrong(prose).keys()


class Raising:
    """Raises whatever it is asked."""

    identity = Identity("llm", "")

    async def judge(self, request: JudgeRequest[Any]) -> Any:
        """Raise."""
        raise RuntimeError("no")

    async def aclose(self) -> None:
        """Do nothing."""


def test_a_judge_that_raises_is_told_so() -> None:
    found = wrong(Raising())
    assert found["form"] == "RuntimeError: no"
    assert "without kind or name" in found["identity"]
