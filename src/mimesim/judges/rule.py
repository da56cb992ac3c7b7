"""A judge without a model: it runs the rule that comes with the question.

A gym that wants to work offline puts the rule beside the inputs of its question
(`JudgeRequest.rule`), so the gym, not the judge, knows what the rule is. Results are labelled
`rule` and never stand in one table with those of a model.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from mimesim.dialogue.types import Identity
from mimesim.errors import EnvError
from mimesim.judges.base import Failed, JudgeRequest, JudgeResult, Verdict
from mimesim.models.structured import UnreadableError, validate

T = TypeVar("T", bound=BaseModel)


class RuleJudge:
    """Decides by rules, the same way every time."""

    def __init__(self) -> None:
        self.identity = Identity("rule", "rule")

    async def judge(self, request: JudgeRequest[T]) -> JudgeResult[T]:
        """Apply the rule of the question; without one, or where it is silent, the result failed.

        Raises:
            EnvError: the rule answers in another form than it declares, a bug of the gym.
        """
        if request.rule is None:
            return Failed(f"no rule for {request.kind}")
        value = request.rule(request.inputs)
        if value is None:
            return Failed("the rule cannot decide")
        try:
            return Verdict(validate(value, request.schema))
        except UnreadableError as error:
            raise EnvError(f"the rule of {request.kind} breaks its schema: {error}") from error

    async def aclose(self) -> None:
        """Do nothing; there is nothing to release."""
