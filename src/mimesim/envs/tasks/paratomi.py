"""ParaToMI: false beliefs in paraphrased little stories."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from mimesim.corpora.base import Unfit
from mimesim.envs.base import Task
from mimesim.envs.tasks.answers import Texts, as_list, names, tagged
from mimesim.envs.tasks.base import PACKS, AnswerTask, Row, Score, TaskInfo, right_or_wrong


def _story(value: object) -> object:
    found = as_list(value)
    return " ".join(map(str, found)) if isinstance(found, list) else value


class ParatomiRow(BaseModel):
    """Fields of one row; `story` and `cands` may be lists, or lists kept as text."""

    story: Annotated[str, BeforeValidator(_story)] = Field(min_length=1)
    question: str = Field(min_length=1)
    cands: Texts
    correct_answer: str = Field(min_length=1)
    qType: str = ""


class Paratomi(AnswerTask[ParatomiRow]):
    """The gold place is named, and no other candidate."""

    info = TaskInfo(
        "paratomi",
        "COG",
        "say where somebody will look for a thing",
        "one of the candidates in the answer tag",
        PACKS / "paratomi.jsonl",
    )
    schema = ParatomiRow
    form = "one of the candidates, exactly as it is written"

    def take(self, row: ParatomiRow) -> Row:
        """Check that the gold answer is a candidate that no other one hides in."""
        gold = row.correct_answer.strip()
        others = [c.strip() for c in row.cands if c.strip().casefold() != gold.casefold()]
        if len(others) == len(row.cands):
            raise Unfit("bad_row", "correct_answer is none of cands")
        return Row(
            public={"story": row.story, "question": row.question, "candidates": row.cands},
            hidden={"gold": gold, "wrong": others, "kind": row.qType},
        )

    def grade(self, task: Task, said: str, mode: str) -> Score:
        """Look for the gold answer as a whole word, and for none of the others."""
        inside = tagged(said)
        right = (
            inside is not None
            and names(task.hidden["gold"], inside)
            and not any(names(other, inside) for other in task.hidden["wrong"])
        )
        return right_or_wrong(right, answer=inside)

    def right(self, task: Task) -> str:
        """Return the gold candidate."""
        return str(task.hidden["gold"])


TASK = Paratomi()
