"""SocSci210: how a person answered a question of a social-science experiment."""

from __future__ import annotations

import math
import re
from typing import Literal

from pydantic import BaseModel, Field, field_validator

from mimesim.corpora.base import Unfit
from mimesim.envs.base import Task
from mimesim.envs.tasks.answers import tagged
from mimesim.envs.tasks.base import PACKS, AnswerTask, Row, Score, TaskInfo

_INTEGER = re.compile(r"[+-]?\d{1,9}")


class SocsciRow(BaseModel):
    """Fields of one row; `response` is what the person answered."""

    prompt_text: str = Field(min_length=1)
    response: float
    r_min: float | None = None
    r_max: float | None = None
    response_type: Literal["ordinal", "binary", "categorical"] = "ordinal"
    study_id: str | int = ""

    @field_validator("response_type", mode="before")
    @classmethod
    def _folded(cls, value: object) -> object:
        return (value.strip().lower() or "ordinal") if isinstance(value, str) else value


class Socsci210(AnswerTask[SocsciRow]):
    """Ordinal closeness, or an exact match where the answers have no order."""

    info = TaskInfo(
        "socsci210",
        "EVAL",
        "answer a survey question as a described person did",
        "one whole number in the answer tag (yes or no where that is asked)",
        PACKS / "socsci210.jsonl",
    )
    schema = SocsciRow
    form = "one whole number, or yes or no where that is asked"

    def take(self, row: SocsciRow) -> Row:
        """Check the numbers and fill in the usual range."""
        low = 0.0 if row.r_min is None else row.r_min
        usual = 1.0 if row.response_type == "binary" else 7.0
        high = usual if row.r_max is None else row.r_max
        if not all(map(math.isfinite, (low, high, row.response))) or high < low:
            raise Unfit("bad_row", "response, r_min, r_max: expected finite numbers in order")
        return Row(
            public={"prompt": row.prompt_text},
            hidden={"gold": row.response, "low": low, "high": high, "kind": row.response_type},
            groups=(f"study:{row.study_id}",) if row.study_id != "" else (),
        )

    def grade(self, task: Task, said: str, mode: str) -> Score:
        """Score closeness on the scale."""
        hidden = task.hidden
        value = read_number(tagged(said), hidden["kind"])
        if value is None:
            return Score(0.0, {"answer": None}, False)
        reward = closeness(value, hidden["gold"], (hidden["low"], hidden["high"]), hidden["kind"])
        return Score(reward, {"answer": value}, reward == 1.0)

    def right(self, task: Task) -> str:
        """Return the person's answer."""
        return str(round(task.hidden["gold"]))


def read_number(inside: str | None, kind: str) -> int | None:
    """Return the whole number that is the answer; yes and no count 1 and 0 in binary questions."""
    if inside is None:
        return None
    if kind == "binary" and inside.lower() in ("yes", "no"):
        return int(inside.lower() == "yes")
    return int(inside) if _INTEGER.fullmatch(inside) else None


def closeness(value: float, gold: float, scale: tuple[float, float], kind: str) -> float:
    """Return 1 - |p - g| / span, p cut to the scale; without order or span an exact match."""
    low, high = scale
    span = high - low
    if kind != "ordinal" or span <= 0:
        return float(value == gold)
    return min(1.0, max(0.0, 1 - abs(min(high, max(low, value)) - gold) / span))


TASK = Socsci210()
