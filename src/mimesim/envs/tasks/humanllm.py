"""HumanLLM: what a person picks next out of twenty things."""

from __future__ import annotations

import re

from pydantic import BaseModel, Field

from mimesim.corpora.base import Unfit
from mimesim.envs.base import Task
from mimesim.envs.tasks.answers import LETTERS, tagged
from mimesim.envs.tasks.base import PACKS, AnswerTask, Row, Score, TaskInfo

TOP = 5
MOST = 20
_RANKING = re.compile(rf"[A-T](?:,[A-T]){{{TOP - 1}}}")
_LISTED = re.compile(r"\s*Candidate\s*1\s*:.*", re.DOTALL)


class HumanllmRow(BaseModel):
    """Fields of one row; `prompt_text` may list the candidates under their numbers."""

    prompt_text: str = Field(min_length=1)
    candidates: list[str] = Field(min_length=TOP, max_length=MOST)
    answer_index: int = Field(ge=0)


class Humanllm(AnswerTask[HumanllmRow]):
    """Reciprocal rank of the true thing among the five named."""

    info = TaskInfo(
        "humanllm",
        "EVAL",
        "name the five things out of twenty that a person most likely picks next",
        "five different capital letters A-T with commas and no blanks in the answer tag",
        PACKS / "humanllm.jsonl",
    )
    schema = HumanllmRow
    form = (
        "the capital letters of exactly five different things, most likely first, "
        "with commas and no blanks between them, such as K,B,T,A,F"
    )

    def take(self, row: HumanllmRow) -> Row:
        """Put letters in the place of the numbers."""
        if row.answer_index >= len(row.candidates):
            raise Unfit("bad_row", "answer_index points at no candidate")
        story = _LISTED.sub("", row.prompt_text)
        return Row(
            public={"prompt": story or row.prompt_text, "options": row.candidates},
            hidden={"gold": row.answer_index},
        )

    def grade(self, task: Task, said: str, mode: str) -> Score:
        """Score 1/rank; hit@5 and top-1 are logged."""
        order = read_ranking(tagged(said), len(task.public["options"]))
        gold = task.hidden["gold"]
        rank = order.index(gold) + 1 if gold in order else 0
        parts = {"answer": order, "hit_at_5": rank > 0, "top_1": rank == 1}
        return Score(1 / rank if rank else 0.0, parts, rank == 1)

    def right(self, task: Task) -> str:
        """Return the true thing first, then any other four."""
        gold = task.hidden["gold"]
        others = [i for i in range(len(task.public["options"])) if i != gold]
        return ",".join(LETTERS[i] for i in [gold, *others[: TOP - 1]])


def read_ranking(inside: str | None, count: int) -> list[int]:
    """Return five different indices below `count`, or nothing when it is not written like that."""
    if inside is None or not _RANKING.fullmatch(inside):
        return []
    order = [LETTERS.index(mark) for mark in inside.split(",")]
    return order if len(set(order)) == TOP and max(order) < count else []


TASK = Humanllm()
