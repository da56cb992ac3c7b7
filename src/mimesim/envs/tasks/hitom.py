"""HiToM: where somebody thinks that somebody thinks a thing is."""

from __future__ import annotations

import re

from pydantic import BaseModel, Field

from mimesim.corpora.base import Unfit
from mimesim.envs.base import Task
from mimesim.envs.tasks.answers import LETTERS, letter
from mimesim.envs.tasks.base import PACKS, AnswerTask, Row, Score, TaskInfo, right_or_wrong

_NEXT = re.compile(r",\s+(?=[A-Z]\. )")


class HitomRow(BaseModel):
    """Fields of one row; `choices` is "A. x, B. y, ..." and `correct_answer` the text of one."""

    story: str = Field(min_length=1)
    question: str = Field(min_length=1)
    choices: str
    correct_answer: str
    question_order: int | str = ""
    story_length: int | str = ""
    deception: bool | int | str = ""
    set_id: int | str = ""


class Hitom(AnswerTask[HitomRow]):
    """The chosen letter's text must be the gold text."""

    info = TaskInfo(
        "hitom",
        "COG",
        "say where one person thinks that another thinks a thing is",
        "one letter in the answer tag",
        PACKS / "hitom.jsonl",
    )
    schema = HitomRow
    form = "one letter"

    def take(self, row: HitomRow) -> Row:
        """Read the options; the gold text must be one of them."""
        options = parse_options(row.choices)
        gold = row.correct_answer.strip()
        if gold not in options.values():
            raise Unfit("bad_row", "correct_answer is none of the choices")
        return Row(
            public={"story": row.story, "question": row.question, "options": options},
            hidden={"gold": gold, "order": str(row.question_order)},
            groups=(f"set:{row.set_id}",) if row.set_id != "" else (),
        )

    def grade(self, task: Task, said: str, mode: str) -> Score:
        """Compare texts, for two letters may stand for the same place."""
        options = task.public["options"]
        chosen = letter(said, "".join(options))
        return right_or_wrong(options.get(chosen) == task.hidden["gold"], answer=chosen)

    def right(self, task: Task) -> str:
        """Return the letter of the gold text."""
        options: dict[str, str] = task.public["options"]
        return next(mark for mark, text in options.items() if text == task.hidden["gold"])


def parse_options(choices: str) -> dict[str, str]:
    """Read "A. x, B. y, ..."; an option may itself hold commas.

    Raises:
        Unfit: an entry without a letter, or letters out of order.
    """
    parts = [part.partition(". ") for part in _NEXT.split(choices.strip())]
    found = {mark.strip(): text.strip() for mark, dot, text in parts if dot}
    if len(found) != len(parts) or "".join(found) != LETTERS[: len(found)]:
        raise Unfit("bad_row", "choices: expected 'A. x, B. y, ...'")
    return found


TASK = Hitom()
