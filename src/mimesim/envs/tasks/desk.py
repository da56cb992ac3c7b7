"""Judge and partner of one episode, with what they cost and what was asked.

A verdict that cannot be had is missing data: a task either cannot do without it (`must`), and the
episode is a judge failure, or leaves that part out of its mean (`may`). It is never a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from mimesim.dialogue.types import Usage
from mimesim.envs.tasks.partner import Partner, PartnerRequest
from mimesim.errors import CallerError
from mimesim.judges.base import Judge, JudgeRequest, JudgeResult, Verdict, required

T = TypeVar("T", bound=BaseModel)


@dataclass(slots=True)
class Desk:
    """Who judges and who answers; counts usage over failed attempts too.

    Attributes:
        verdicts: one entry per question of the turn, for the record; private.
    """

    judge: Judge | None = None
    partner: Partner | None = None
    judge_usage: Usage = field(default_factory=Usage)
    partner_usage: Usage = field(default_factory=Usage)
    verdicts: list[Mapping[str, Any]] = field(default_factory=list)

    async def may(self, request: JudgeRequest[T]) -> T | None:
        """Return a verdict, or None when there is none.

        Raises:
            InfraError, ContextExceeded: the judge could not be reached or asked.
        """
        result = await self._ask(request)
        return result.value if isinstance(result, Verdict) else None

    async def must(self, request: JudgeRequest[T]) -> T:
        """Return a verdict.

        Raises:
            JudgeError: there is none.
            InfraError, ContextExceeded: the judge could not be reached or asked.
        """
        return required(await self._ask(request))

    async def hear(self, request: PartnerRequest) -> str:
        """Return what the partner says.

        Raises:
            InfraError: it could not be reached, or stayed silent.
        """
        if self.partner is None:
            raise CallerError("this task needs a partner")
        reply = await self.partner.reply(request)
        self.partner_usage += reply.usage
        return reply.text

    async def _ask(self, request: JudgeRequest[T]) -> JudgeResult[T]:
        if self.judge is None:
            raise CallerError("this task needs a judge")
        result = await self.judge.judge(request)
        self.judge_usage += result.usage
        entry: dict[str, Any] = {"kind": request.kind, "judge": self.judge.identity.name}
        if isinstance(result, Verdict):
            entry |= {"value": result.value.model_dump(mode="json"), "tier": result.tier}
        else:
            entry |= {"failed": result.reason}
        self.verdicts.append(entry)
        return result
