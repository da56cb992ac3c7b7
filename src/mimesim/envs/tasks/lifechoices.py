"""LifeChoices: which way a character of a novel goes at a turning point."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mimesim.dialogue.thinking import split
from mimesim.envs.base import Task
from mimesim.envs.tasks.answers import Texts, as_object
from mimesim.envs.tasks.base import PACKS, Row, Score, TaskInfo
from mimesim.envs.tasks.letter import LetterTask, same_letter

_LOOSE = (
    re.compile(r"<ANSWER>\s*\(?([A-D])\b"),
    re.compile(r"\bANSWER\s*(?:IS|:|=)\s*\(?([A-D])\b"),
    re.compile(r"\b(?:OPTION|CHOICE)\s*:?\s*\(?([A-D])\b"),
    re.compile(r"\bCHOOSES?\s+\(?([A-D])\b"),
    re.compile(r"^\W*([A-D])\W*$", re.MULTILINE),
    re.compile(r"\(([A-D])\)"),
    re.compile(r"\b([A-D])[.):]"),
    re.compile(r"([A-D])"),
)
"""What the public code's habit of guessing amounts to: the last pattern takes any letter at all."""


class Choice(BaseModel):
    """The question of a row."""

    scenario: str = Field(alias="Scenario")
    question: str = Field(alias="Question", min_length=1)
    options: Texts = Field(alias="Options", min_length=4, max_length=4)
    correct: Literal["A", "B", "C", "D"] = Field(alias="Correct Answer")


class LifechoicesRow(BaseModel):
    """Fields of one row; `input_text` is what happened before."""

    model_config = ConfigDict(populate_by_name=True)

    character_name: str = Field(min_length=1)
    input_text: str
    book: str = ""
    choice: Annotated[Choice, BeforeValidator(as_object)] = Field(alias="Multiple Choice Question")


class Lifechoices(LetterTask[LifechoicesRow]):
    """Letter equality; `compat` reads letters as loosely as the public code does."""

    info = TaskInfo(
        "lifechoices",
        "ROLE",
        "decide as a character would at a turning point of the story",
        "one letter A-D in the answer tag",
        PACKS / "lifechoices.jsonl",
        modes=("fixed", "compat"),
    )
    schema = LifechoicesRow

    def take(self, row: LifechoicesRow) -> Row:
        """Keep the real decision apart."""
        return Row(
            public={
                "character": row.character_name,
                "before": row.input_text,
                "scenario": row.choice.scenario,
                "question": row.choice.question,
                "options": row.choice.options,
            },
            hidden={"gold": row.choice.correct},
            groups=(f"character:{row.book}/{row.character_name}",),
        )

    def grade(self, task: Task, said: str, mode: str) -> Score:
        """Compare letters."""
        if mode == "compat":
            return same_letter(task, loose_letter(said))
        return super().grade(task, said, mode)


def loose_letter(said: str) -> str | None:
    """Return the first letter A-D that any pattern finds in the upper-cased reply."""
    text = split(said).text.upper()
    found = (pattern.search(text) for pattern in _LOOSE)
    return next((match.group(1) for match in found if match), None)


TASK = Lifechoices()
