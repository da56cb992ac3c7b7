"""Mistakes: answer as a learner who has one particular misconception."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, BaseModel, Field

from mimesim.envs.tasks.base import PACKS, Row, TaskInfo
from mimesim.envs.tasks.letter import LetterTask


class MistakesRow(BaseModel):
    """Fields of one row; `TargetOption` is the wrong option that the misconception leads to."""

    QuestionText: str = Field(min_length=1)
    AnswerAText: str
    AnswerBText: str
    AnswerCText: str
    AnswerDText: str
    MisconceptionName: str = Field(min_length=1)
    TargetOption: Literal["A", "B", "C", "D"] = Field(
        validation_alias=AliasChoices("TargetOption", "target_option")
    )


class Mistakes(LetterTask[MistakesRow]):
    """1 for the option of the misconception; the right solution is no answer here."""

    info = TaskInfo(
        "mistakes",
        "ROLE",
        "make the mistake that a learner with this misconception makes",
        "one letter A-D in the answer tag",
        PACKS / "mistakes.jsonl",
    )
    schema = MistakesRow

    def take(self, row: MistakesRow) -> Row:
        """Keep the target apart from the question."""
        options = [row.AnswerAText, row.AnswerBText, row.AnswerCText, row.AnswerDText]
        return Row(
            public={
                "question": row.QuestionText,
                "options": options,
                "misconception": row.MisconceptionName,
            },
            hidden={"gold": row.TargetOption},
            groups=(f"misconception:{row.MisconceptionName}",),
        )


TASK = Mistakes()
