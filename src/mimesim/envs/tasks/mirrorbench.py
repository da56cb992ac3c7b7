"""MirrorBench: hold the user's side of a real conversation; a judge compares the two.

The other side is written anew by a partner that is shown the real conversation; without a model
it repeats the real replies.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from mimesim import prompts
from mimesim.corpora.base import Unfit
from mimesim.envs.base import Observation, Task
from mimesim.envs.tasks.answers import likeness
from mimesim.envs.tasks.base import (
    PACKS,
    POLICY,
    Line,
    Opening,
    Reaction,
    Row,
    Scene,
    Score,
    TaskInfo,
    UserTask,
)
from mimesim.envs.tasks.partner import PartnerRequest
from mimesim.envs.tasks.talk import as_partner, joined, shown
from mimesim.judges.base import JudgeRequest
from mimesim.stats import texts

MESSAGES = 10
"""How much of the real conversation is mirrored."""


class Spoken(BaseModel):
    """One message of the real conversation."""

    role: Literal["user", "assistant"]
    content: str


class MirrorRow(BaseModel):
    """Fields of one row."""

    task_description: str = Field(min_length=1)
    turns: list[Spoken] = Field(min_length=1)


class Likeness(BaseModel):
    """How much the simulated user side is like the real one: style, realism, fit."""

    reason: str = ""
    score: float = Field(ge=0, le=1)


class Mirrorbench(UserTask[MirrorRow]):
    """One judge number for the whole user side; lexical gaps are logged only."""

    info = TaskInfo(
        "mirrorbench",
        "CONV",
        "hold the user's side of a real conversation with an assistant",
        "one message",
        PACKS / "mirrorbench.jsonl",
        judge_free=False,
        needs_partner=True,
        turns=MESSAGES // 2,
    )
    schema = MirrorRow

    def take(self, row: MirrorRow) -> Row:
        """Cut the real conversation to what is mirrored."""
        cut = [(m.role, m.content.strip()) for m in row.turns[:MESSAGES] if m.content.strip()]
        turns = [
            {"role": role, "text": joined([text for _, text in group])}
            for role, group in itertools.groupby(cut, key=lambda turn: turn[0])
        ]
        if turns and turns[-1]["role"] == "assistant":
            turns.pop()
        if not turns:
            raise Unfit("bad_row", "turns: no message of the user")
        return Row(public={"description": row.task_description}, hidden={"turns": turns})

    async def open(self, scene: Scene) -> Opening:
        """Ask for the first message; an assistant that spoke first is repeated."""
        first = scene.hidden["turns"][0]
        said = first["text"] if first["role"] == "assistant" else ""
        return Opening(
            Observation(
                system=prompts.render("tasks/mirrorbench", **scene.public),
                first_user=said or prompts.render("tasks/begin"),
            ),
            (Line("assistant", said),) if said else (),
        )

    async def react(self, scene: Scene, said: str) -> Reaction:
        """Answer, or judge when the real user had no more to say."""
        lines = (*scene.lines, Line(POLICY, said))
        users, replies = _sides(scene.task)
        if scene.turn + 1 >= len(users):
            return Reaction(score=await self._judge(scene, lines, users))
        reply = await scene.desk.hear(
            PartnerRequest(
                prompts.render("tasks/partner/mirror", turns=scene.hidden["turns"]),
                as_partner(lines, start=prompts.render("tasks/partner/begin")),
                scene.seed,
                lambda: replies[scene.turn],
            )
        )
        return Reaction(reply, (Line("assistant", reply),))

    async def _judge(self, scene: Scene, lines: tuple[Line, ...], users: list[str]) -> Score:
        own = joined(scene.spoken(lines[-1].text))
        real = joined(users)

        def rule(inputs: Mapping[str, Any]) -> dict[str, Any]:
            return {"score": round(likeness(own, real), 4)}

        verdict = await scene.desk.must(
            JudgeRequest(
                "tasks/mirrorbench",
                {"real": scene.hidden["turns"], "simulated": shown(lines, "user", "assistant")},
                Likeness,
                seed=scene.seed,
                rule=rule,
            )
        )
        return Score(verdict.score, _gaps(own, real))

    def oracle(self, task: Task, turn: int) -> str:
        """Return what the real user wrote."""
        return _sides(task)[0][turn]


def _sides(task: Task) -> tuple[list[str], list[str]]:
    """Return the real user's messages, and the reply that followed each but the last."""
    turns = task.hidden["turns"]
    users = [turn["text"] for turn in turns if turn["role"] == "user"]
    replies = [turn["text"] for turn in turns if turn["role"] == "assistant"]
    return users, replies[1:] if turns[0]["role"] == "assistant" else replies


def _gaps(own: str, real: str) -> dict[str, float]:
    """Return simulated minus real of the three lexical measures."""
    ours, theirs = texts.words(own), texts.words(real)
    measures = {"mattr": texts.mattr, "hdd": texts.hdd, "yule_k": texts.yule_k}
    return {f"{name}_gap": round(f(ours) - f(theirs), 4) for name, f in measures.items()}


TASK = Mirrorbench()
