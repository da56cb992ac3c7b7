"""Social-R1: reasoning about people, multiple choice with any number of options."""

from __future__ import annotations

import re

from pydantic import BaseModel, Field

from mimesim.corpora.base import Unfit
from mimesim.envs.tasks.answers import LETTERS
from mimesim.envs.tasks.base import PACKS, Row, TaskInfo
from mimesim.envs.tasks.letter import LetterTask

_GOLD = re.compile(r"\s*\(?([A-Z])(?![A-Za-z])")


class SocialRow(BaseModel):
    """Fields of one row; the gold letter stands alone or in front of the gold text."""

    prompt_text: str = Field(min_length=1)
    answer_letter: str = ""
    answer_text: str = ""


class SocialR1(LetterTask[SocialRow]):
    """Letter equality."""

    info = TaskInfo(
        "social_r1",
        "COG",
        "answer a question about people's minds and manners",
        "one letter in the answer tag",
        PACKS / "social_r1.jsonl",
    )
    schema = SocialRow
    form = "the letter of one option"
    letters = LETTERS

    def take(self, row: SocialRow) -> Row:
        """Find the gold letter."""
        found = _GOLD.match(row.answer_letter.upper()) or _GOLD.match(row.answer_text)
        if found is None:
            raise Unfit("bad_row", "answer_letter and answer_text hold no letter")
        return Row(public={"prompt": row.prompt_text}, hidden={"gold": found.group(1)})


TASK = SocialR1()
