"""Verdicts of a model read as the originals of the gyms read them: as one Python literal.

Only for their compat mode (`json_parser`): it brings back a flaw, in which JSON's own `null`, `true`
and `false` and any word around the object cost the verdict. Nothing is evaluated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from mimesim.dialogue.types import Identity
from mimesim.judges.base import Failed, Judge, JudgeRequest, JudgeResult, Verdict
from mimesim.models.structured import UnreadableError, parse_literal, validate

T = TypeVar("T", bound=BaseModel)

_REASKED = 4


class LiteralJudge:
    """Passes questions on and reads again what came back; the other judge stays its owner's."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    @property
    def identity(self) -> Identity:
        """Who decides."""
        return self._judge.identity

    async def judge(self, request: JudgeRequest[T]) -> JudgeResult[T]:
        """Answer one question; a verdict without a raw text, as a rule's, stays as it is.

        Raises:
            InfraError, ContextExceeded, EnvError: as the other judge.
        """
        result = await self._judge.judge(request)
        if not isinstance(result, Verdict) or not result.raw:
            return result
        try:
            if result.tier == _REASKED:
                raise UnreadableError("the first answer could not be read")
            return replace(result, value=validate(parse_literal(result.raw), request.schema))
        except UnreadableError as error:
            return Failed(
                f"read as a Python literal: {error.what}",
                raw=result.raw,
                attempts=result.attempts,
                usage=result.usage,
            )

    async def aclose(self) -> None:
        """Close the other judge; twice is harmless."""
        await self._judge.aclose()
