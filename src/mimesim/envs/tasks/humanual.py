"""Humanual: write what this person really wrote; six tasks of one shape.

A judge compares the reply with the true one on six sides; a reply much shorter than a long true
one is paid in proportion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from mimesim import prompts
from mimesim.envs.base import Observation, Task
from mimesim.envs.tasks.answers import as_list, likeness
from mimesim.envs.tasks.base import (
    PACKS,
    Opening,
    Reaction,
    Row,
    Scene,
    Score,
    TaskInfo,
    UserTask,
)
from mimesim.judges.base import JudgeRequest
from mimesim.stats.texts import words

SIDES = ("stance", "emotion", "belief", "value", "goal", "communication")
_LONG = 20
_ENOUGH = 0.3


def _prompt(value: Any) -> Any:
    """Return the text of a prompt that may be a list of messages, or such a list as text."""
    found = as_list(value)
    if not isinstance(found, list):
        return value
    return "\n".join(str(m.get("content", "")) for m in found if isinstance(m, Mapping))


class HumanualRow(BaseModel):
    """Fields of one row; `completion` is what the person wrote."""

    prompt: Annotated[str, BeforeValidator(_prompt)] = Field(min_length=1)
    persona: str = ""
    completion: str = Field(min_length=1)


class Alignment(BaseModel):
    """How far the reply agrees with the true one, side by side."""

    reason: str = ""
    stance: float = Field(ge=0, le=1)
    emotion: float = Field(ge=0, le=1)
    belief: float = Field(ge=0, le=1)
    value: float = Field(ge=0, le=1)
    goal: float = Field(ge=0, le=1)
    communication: float = Field(ge=0, le=1)

    def mean(self) -> float:
        """Return the mean of the six."""
        return sum(self.sides().values()) / len(SIDES)

    def sides(self) -> dict[str, float]:
        """Return the six grades by name."""
        return {name: float(grade) for name, grade in self.model_dump(include=set(SIDES)).items()}


class Humanual(UserTask[HumanualRow]):
    """One of the six: the kind of text differs, the rest does not."""

    schema = HumanualRow

    def __init__(self, kind: str, axis: str, what: str) -> None:
        self._what = what
        self.info = TaskInfo(
            f"humanual_{kind}",
            axis,
            f"write {what} that a described person wrote",
            "the text alone",
            PACKS / f"humanual_{kind}.jsonl",
            judge_free=False,
        )

    def take(self, row: HumanualRow) -> Row:
        """Keep the true text apart."""
        return Row(
            public={"what": self._what, "persona": row.persona.strip(), "prompt": row.prompt},
            hidden={"reference": row.completion},
            groups=(f"person:{row.persona[:200]}",) if row.persona.strip() else (),
        )

    async def open(self, scene: Scene) -> Opening:
        """Show the person and what is to be answered."""
        system = prompts.render("tasks/humanual_person", **scene.public)
        text = prompts.render("tasks/humanual", **scene.public)
        return Opening(Observation(system=system, first_user=text))

    async def react(self, scene: Scene, said: str) -> Reaction:
        """Let the judge compare, then weigh by length."""
        truth = scene.hidden["reference"]

        def rule(inputs: Mapping[str, Any]) -> dict[str, Any]:
            return dict.fromkeys(SIDES, round(likeness(inputs["reply"], inputs["truth"]), 4))

        verdict = await scene.desk.must(
            JudgeRequest(
                "tasks/humanual",
                {"prompt": scene.public["prompt"], "truth": truth, "reply": said},
                Alignment,
                seed=scene.seed,
                rule=rule,
            )
        )
        factor = length_factor(len(words(said)), len(words(truth)))
        parts = {**verdict.sides(), "length_factor": factor}
        return Reaction(score=Score(verdict.mean() * factor, parts))

    def oracle(self, task: Task, turn: int) -> str:
        """Return the true text."""
        return str(task.hidden["reference"])


def length_factor(generated: int, reference: int) -> float:
    """Return min(1, generated / (0.3 reference)) for references of 20 words and more, else 1."""
    return min(1.0, generated / (_ENOUGH * reference)) if reference >= _LONG else 1.0


BOOK = Humanual("book", "ROLE", "the book review")
CHAT = Humanual("chat", "CONV", "the chat message")
EMAIL = Humanual("email", "ROLE", "the email")
NEWS = Humanual("news", "ROLE", "the comment on a news item")
OPINION = Humanual("opinion", "ROLE", "the opinion")
POLITICS = Humanual("politics", "ROLE", "the comment on a political question")
