"""What judges would be asked by a suite: how many questions, how long, how many answered already.

Nothing is called and nothing is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import prompts
from mimesim.bench.suites.base import Inputs, Suite
from mimesim.bench.suites.folder import VERDICTS
from mimesim.dialogue.types import Identity
from mimesim.judges.base import Judge, JudgeRequest, JudgeResult, Skipped, T
from mimesim.judges.load import make_judge
from mimesim.judges.stored import FAILED, Stored, Work, judge_key, read

_CHARACTERS = 4
"""Of one token, about."""


@dataclass(frozen=True, slots=True)
class Dry:
    """What one judge would be asked.

    Attributes:
        questions: all of the suite. known: of these answered in the folder already.
        tokens: about so many in the texts of those that are left; answers, and questions that
            follow from one, come on top.
    """

    questions: int
    known: int
    tokens: int

    def to_json(self) -> dict[str, int]:
        """Return JSON values."""
        left = self.questions - self.known
        return {
            "questions": self.questions,
            "answered already": self.known,
            "to ask": left,
            "input tokens, about": self.tokens,
        }


def dry_run(suite: Suite, inputs: Inputs, names: Sequence[str], folder: Path) -> dict[str, Dry]:
    """Return judge -> what it would be asked.

    Raises:
        UsageError: no such judge, the inputs do not fit, or the verdicts are damaged.
    """
    file = folder / VERDICTS
    stored = read(file) if file.exists() else []
    return asyncio.run(_planned(suite, inputs, names, stored))


async def _planned(
    suite: Suite, inputs: Inputs, names: Sequence[str], stored: Sequence[Stored]
) -> dict[str, Dry]:
    found = {}
    for name in names:
        judge = make_judge(name)
        try:
            key = judge_key(judge.identity)
            known = {
                (one.item, one.kind, one.text_key, one.order, one.sample): one
                for one in stored
                if one.judge_key == key and one.state != FAILED
            }
            reader = _Reader(judge)
            works = list(suite.works(inputs, reader))
            left = [work for work in works if not _answered(work, known)]
            for work in left:
                await work.ask()
        finally:
            await judge.aclose()
        found[name] = Dry(len(works), len(works) - len(left), reader.characters // _CHARACTERS)
    return found


def _answered(work: Work, known: dict[Any, Any]) -> bool:
    one = known.get((work.item, work.kind, work.text_key, work.order, work.sample))
    return one is not None and work.checked(one).state != FAILED


class _Reader:
    """Stands for a judge: it counts what it is given and says nothing."""

    def __init__(self, judge: Judge) -> None:
        self.identity: Identity = judge.identity
        self.characters = 0

    async def judge(self, request: JudgeRequest[T]) -> JudgeResult[T]:
        """Count the characters of a question."""
        self.characters += len(prompts.render(f"judge/{request.kind}", **request.inputs))
        return Skipped("not_asked")

    async def aclose(self) -> None:
        """Hold nothing."""
