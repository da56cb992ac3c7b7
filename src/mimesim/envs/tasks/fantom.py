"""FanToM: who knows what in a conversation that people leave and join."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel, Field

from mimesim.corpora.base import Unfit
from mimesim.envs.base import Task
from mimesim.envs.tasks.answers import as_list, names, tagged, token_f1
from mimesim.envs.tasks.base import PACKS, AnswerTask, Row, Score, TaskInfo, right_or_wrong

_CHOICE = re.compile(r"\(?([a-d])\)?\.?")
_YES = re.compile(r" yes[,. ]| knows ")
_NO = re.compile(r" no[,. ]| does not know | doesn't know ")
_POLARITY = {"yes": True, "no": False, "no:long": False}


class FantomRow(BaseModel):
    """Fields of one row; `correct_answer` is an index, a list of names, or yes or no."""

    context: str = Field(min_length=1)
    complete_question: str = Field(min_length=1)
    question_type: str
    correct_answer: int | list[str] | str
    wrong_answer: list[str] | str = ""
    set_id: str | int = ""
    part_id: str | int = ""


class Fantom(AnswerTask[FantomRow]):
    """The rule of the question type decides."""

    info = TaskInfo(
        "fantom",
        "COG",
        "answer who knows or believes what in a conversation with comings and goings",
        "a letter a-d, names, yes or no, in the answer tag",
        PACKS / "fantom.jsonl",
    )
    schema = FantomRow
    form = (
        "what the question asks for and nothing else: the letter of a choice, names, or yes or no"
    )

    def take(self, row: FantomRow) -> Row:
        """Check that the gold answer has the shape of its question type."""
        gold = _gold(row)
        return Row(
            public={"context": row.context, "question": row.complete_question},
            hidden={
                "kind": _kind(row.question_type),
                "gold": gold,
                "wrong": _list(row.wrong_answer),
            },
            groups=(f"set:{row.set_id}",) if row.set_id != "" else (),
        )

    def grade(self, task: Task, said: str, mode: str) -> Score:
        """Apply the rule of the question type."""
        inside, gold = tagged(said), task.hidden["gold"]
        kind = task.hidden["kind"]
        if inside is None:
            return right_or_wrong(False, answer=None)
        if kind == "fact":
            share = token_f1(gold, inside)
            return Score(share, {"answer": inside}, share == 1.0)
        if kind == "choice":
            chosen = _CHOICE.fullmatch(inside.lower())
            right = chosen is not None and "abcd".index(chosen.group(1)) == gold
        elif kind == "list":
            wrong = task.hidden["wrong"]
            right = all(names(n, inside) for n in gold) and not any(names(n, inside) for n in wrong)
        else:
            right = _polarity(inside) is gold
        return right_or_wrong(right, answer=inside)

    def right(self, task: Task) -> str:
        """Write the gold answer."""
        gold = task.hidden["gold"]
        if task.hidden["kind"] == "choice":
            return "abcd"[gold]
        if task.hidden["kind"] == "list":
            return ", ".join(gold)
        return str(gold) if task.hidden["kind"] == "fact" else ("yes" if gold else "no")


def _polarity(text: str) -> bool | None:
    """Return True for yes, False for no, None for neither or both."""
    low = text.lower().strip().strip("'\"")
    yes = low.startswith(("yes", "true")) or _YES.search(low) is not None
    no = low.startswith(("no", "false")) or _NO.search(low) is not None
    return yes if yes != no else None


def _kind(question_type: str) -> str:
    if question_type.startswith("tom:belief:") and question_type.endswith(":multiple-choice"):
        return "choice"
    if question_type.endswith(":list"):
        return "list"
    if question_type.endswith(":binary"):
        return "binary"
    if question_type.startswith("fact"):
        return "fact"
    raise Unfit("unknown_question_type", question_type[:60])


def _gold(row: FantomRow) -> Any:
    kind, answer = _kind(row.question_type), row.correct_answer
    if kind == "choice":
        index = int(answer) if isinstance(answer, int | str) and str(answer).isdigit() else -1
        if index not in range(4):
            raise Unfit("bad_row", "correct_answer: a choice needs an index 0 to 3")
        return index
    if kind == "list":
        people = _list(answer)
        if not people:
            raise Unfit("bad_row", "correct_answer: a list question needs names")
        return people
    if kind == "binary":
        polarity = _POLARITY.get(str(answer).strip().lower())
        if polarity is None:
            raise Unfit("bad_row", "correct_answer: a binary question needs yes or no")
        return polarity
    return str(answer)


def _list(value: Any) -> list[str]:
    if isinstance(value, str):
        found = as_list(value)
        value = found if isinstance(found, list) else value.split(",")
    if not isinstance(value, list):
        return []
    return [name for name in (str(item).strip() for item in value) if name]


TASK = Fantom()
