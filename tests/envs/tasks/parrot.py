"""A task as somebody outside would write it."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from mimesim.envs.base import Observation, Task
from mimesim.envs.tasks.base import Opening, Reaction, Row, Scene, Score, TaskInfo, UserTask


class ParrotRow(BaseModel):
    """Fields of one row."""

    word: str


class Parrot(UserTask[ParrotRow]):
    """Say the word."""

    info = TaskInfo("parrot", "EXTRA", "say the word", "one word", Path("parrot.jsonl"))
    schema = ParrotRow

    def take(self, row: ParrotRow) -> Row:
        return Row(public={"word": row.word}, hidden={})

    async def open(self, scene: Scene) -> Opening:
        return Opening(Observation(system="Repeat.", first_user=scene.public["word"]))

    async def react(self, scene: Scene, said: str) -> Reaction:
        return Reaction(score=Score(float(said == scene.public["word"])))

    def oracle(self, task: Task, turn: int) -> str:
        return str(task.public["word"])


TASK = Parrot()
