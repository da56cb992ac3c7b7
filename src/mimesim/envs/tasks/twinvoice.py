"""TwinVoice: which reply a person would write, known from earlier posts."""

from __future__ import annotations

from pydantic import AliasChoices, BaseModel, Field

from mimesim.corpora.base import Unfit
from mimesim.envs.tasks.answers import LETTERS, Texts
from mimesim.envs.tasks.base import PACKS, Row, TaskInfo
from mimesim.envs.tasks.letter import LetterTask


class TwinvoiceRow(BaseModel):
    """Fields of one row; `answer_idx` counts from 0."""

    conversation_history: Texts = Field(
        validation_alias=AliasChoices("conversation_history", "history"), min_length=1
    )
    anchor_post: str = Field(min_length=1)
    answer_choices: Texts = Field(
        validation_alias=AliasChoices("answer_choices", "choices"), min_length=2, max_length=4
    )
    answer_idx: int = Field(ge=0)
    dimension: str = ""


class Twinvoice(LetterTask[TwinvoiceRow]):
    """Letter equality."""

    info = TaskInfo(
        "twinvoice",
        "ROLE",
        "tell which reply a person would write from what they wrote before",
        "one letter A-D in the answer tag",
        PACKS / "twinvoice.jsonl",
    )
    schema = TwinvoiceRow

    def take(self, row: TwinvoiceRow) -> Row:
        """Check that the index points at a choice."""
        if row.answer_idx >= len(row.answer_choices):
            raise Unfit("bad_row", "answer_idx points at no choice")
        return Row(
            public={
                "history": row.conversation_history,
                "post": row.anchor_post,
                "options": row.answer_choices,
            },
            hidden={"gold": LETTERS[row.answer_idx], "dimension": row.dimension},
        )


TASK = Twinvoice()
