"""A judge without a model: it runs the rule that comes with the question.

A gym that wants to work offline puts the rule beside the inputs of its question
(`JudgeRequest.rule`), so the gym, not the judge, knows what the rule is. Results are labelled
`rule` and never stand in one table with those of a model. `rule-heldout` is a second one for what
was trained on the first: it shares no cue with it, and few questions bring such a rule.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from mimesim.dialogue.types import Identity
from mimesim.errors import EnvError, EpisodeError
from mimesim.judges.base import Failed, JudgeRequest, JudgeResult, Verdict
from mimesim.models.structured import UnreadableError, validate

T = TypeVar("T", bound=BaseModel)


class RuleJudge:
    """Decides by rules, the same way every time; `held_out` takes the question's second rule."""

    def __init__(self, *, held_out: bool = False) -> None:
        self._held_out = held_out
        self.identity = Identity("rule", "rule-heldout" if held_out else "rule")

    async def judge(self, request: JudgeRequest[T]) -> JudgeResult[T]:
        """Apply the rule of the question; without one, or where it is silent, the result failed.

        Raises:
            EnvError: the rule broke, or answers in another form than it declares; a bug of the
                gym or of its task, which ends one conversation and never a run.
        """
        rule = request.held_out if self._held_out else request.rule
        if rule is None:
            kind = "held-out rule" if self._held_out else "rule"
            return Failed(f"no {kind} for {request.kind}")
        try:
            value = rule(request.inputs)
            if value is None:
                return Failed("the rule cannot decide")
            return Verdict(validate(value, request.schema))
        except UnreadableError as error:
            raise EnvError(f"the rule of {request.kind} breaks its schema: {error}") from error
        except EpisodeError:
            raise
        except Exception as error:  # of any kind; its text may be private
            raise EnvError(f"the rule of {request.kind} broke: {type(error).__name__}") from error

    async def aclose(self) -> None:
        """Do nothing; there is nothing to release."""
