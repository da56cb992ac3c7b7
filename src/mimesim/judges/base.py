"""The judge protocol: a typed question, and a verdict, a failure or a refusal, never a made-up score.

A judge reads public text only; the thoughts that the judge of some behaviors may read are the one
exception, made in `judges.behavior`. Only a `Verdict` holds a value; what could not be read or was
refused keeps its raw text, is left out of every mean and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, Field

from mimesim.dialogue.types import Identity, Usage
from mimesim.errors import JudgeError

T = TypeVar("T", bound=BaseModel)
Rule = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
"""Inputs -> the verdict as JSON values, or None where the rule is silent."""


class Prose(BaseModel):
    """The schema of a question whose answer is free text, e.g. a comparison to be read later."""

    text: str = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class JudgeRequest(Generic[T]):
    """One question to a judge.

    Attributes:
        kind: what is asked, e.g. `desk.honesty`; names the prompt template `judge/<kind>`.
        inputs: what the judge may read, JSON values; public text only.
        schema: pydantic model of the verdict; ranges and labels belong into it.
        seed: seed of this call.
        trial: repetition of the same question; separates cached answers.
        rule: what a rule judge answers from the same inputs; None = rules cannot decide.
        held_out: the same of a second rule judge, which shares no cue with the first; it scores
            what was trained on the first.
        take: which JSON object counts where a reply holds several.
    """

    kind: str
    inputs: Mapping[str, Any]
    schema: type[T]
    seed: int
    trial: int = 0
    rule: Rule | None = field(default=None, compare=False)
    held_out: Rule | None = field(default=None, compare=False)
    take: Literal["first", "last"] = "first"


@dataclass(frozen=True, slots=True)
class Verdict(Generic[T]):
    """A value, how it was read (`models.structured` tiers) and what it cost; `raw` is private."""

    value: T
    raw: str = ""
    attempts: int = 1
    tier: int = 0
    usage: Usage = field(default_factory=Usage)
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """No value could be read after all attempts; may be asked again later. `raw` is private."""

    reason: str
    raw: str = ""
    attempts: int = 1
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Skipped:
    """The judge refused (`refused`), or was not asked at all (`invalid_transcript`, ...)."""

    reason: str
    raw: str = ""
    attempts: int = 0
    usage: Usage = field(default_factory=Usage)


JudgeResult = Verdict[T] | Failed | Skipped
"""What comes back; only a `Verdict` is a number."""


class Judge(Protocol):
    """Reads and decides."""

    @property
    def identity(self) -> Identity:
        """Who decides."""
        ...

    async def judge(self, request: JudgeRequest[T]) -> JudgeResult[T]:
        """Answer one question.

        Raises:
            InfraError: the model could not be reached after all retries.
            ContextExceeded: the question does not fit; `party` is judge.
        """
        ...

    async def aclose(self) -> None:
        """Release what the judge holds; twice is harmless."""
        ...


def required(result: JudgeResult[T]) -> T:
    """Return the value of a verdict that the caller cannot do without.

    Raises:
        JudgeError: there is none.
    """
    if isinstance(result, Verdict):
        return result.value
    raise JudgeError(
        f"no verdict: {result.reason}", retryable=True, attempts=max(1, result.attempts)
    )
