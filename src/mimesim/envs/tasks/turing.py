"""Turing-RL: write a person's next turn so that a judge cannot tell it from the real one.

The judge grades both texts on three criteria and four penalties without knowing which is which; to
look more human than the human is not paid. No part of SOUL: an extra reward task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from mimesim import prompts
from mimesim.envs.base import Observation, Task
from mimesim.envs.tasks.answers import Texts, likeness
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
from mimesim.seeds import derive
from mimesim.stats.texts import words

RUN = 5
EXAMPLES = 3
SHARE = 0.9
FORM_BONUS = 0.1
"""For a reply that is a message and nothing else; the published sum leaves this share open."""
PENALTY = 0.75
CRITERIA = ("immediate_target_score", "human_goal_score", "communication_style_score")
PENALTIES = (
    "source_copy_penalty",
    "assistant_like_penalty",
    "wrong_target_or_role_penalty",
    "unsupported_adversarial_reframing_penalty",
)
_BOUNDS = ((-2.0, 1), (-1.0, 2), (-0.25, 3))
_WORD = re.compile(r"[\w'’]+")
_LABEL = re.compile(
    r"^\s*(?:user|human|me|assistant|ai)\s*:|</?\w+>|^\s*[\"“].*[\"”]\s*$", re.I | re.S
)


class TuringRow(BaseModel):
    """Fields of one row; `response` is what the person really wrote next."""

    history: Texts = Field(min_length=1)
    context: str = Field(min_length=1)
    response: str = Field(min_length=1)
    user_id: str | int = ""


class Seven(BaseModel):
    """Grades of one text, all in [0, 1]."""

    immediate_target_score: float = Field(ge=0, le=1)
    human_goal_score: float = Field(ge=0, le=1)
    communication_style_score: float = Field(ge=0, le=1)
    source_copy_penalty: float = Field(ge=0, le=1)
    assistant_like_penalty: float = Field(ge=0, le=1)
    wrong_target_or_role_penalty: float = Field(ge=0, le=1)
    unsupported_adversarial_reframing_penalty: float = Field(ge=0, le=1)

    def total(self) -> float:
        """Return max(0, criteria - 0.75 penalties)."""
        grades: dict[str, float] = self.model_dump()
        gain, loss = sum(grades[n] for n in CRITERIA), sum(grades[n] for n in PENALTIES)
        return max(0.0, gain - PENALTY * loss)


class Pair(BaseModel):
    """Grades of both texts: fourteen numbers, none may be missing."""

    reasoning: str = ""
    a: Seven
    b: Seven


class Rated(NamedTuple):
    """The rating of 1 to 7 (7 = B is far more human), seen from the generated text as `s`."""

    rating: int
    s: int
    reward: float


class Turing(UserTask[TuringRow]):
    """0.9 x reward + form bonus - length penalty, never below 0."""

    info = TaskInfo(
        "turing",
        "EXTRA",
        "write a person's next turn so that it passes for the real one",
        "one message",
        PACKS / "turing.jsonl",
        sources=("turing_rl",),
        judge_free=False,
        ceiling=0.55,
    )
    schema = TuringRow

    def take(self, row: TuringRow) -> Row:
        """Keep the real turn apart."""
        return Row(
            public={"history": row.history, "context": row.context},
            hidden={"reference": row.response},
            groups=(f"user:{row.user_id}",) if row.user_id != "" else (),
        )

    async def open(self, scene: Scene) -> Opening:
        """Show what the person wrote before, and what is to be answered."""
        system = prompts.render("tasks/turing_person", history=scene.public["history"])
        text = prompts.render("tasks/turing", context=scene.public["context"])
        return Opening(Observation(system=system, first_user=text))

    async def react(self, scene: Scene, said: str) -> Reaction:
        """Let the judge compare the two texts, in an order drawn for this episode."""
        truth = scene.hidden["reference"]
        second = derive(scene.seed, "order", scene.task.id) % 2 == 1
        sources = [*scene.public["history"], scene.public["context"]]

        def rule(inputs: Mapping[str, Any]) -> dict[str, Any]:
            ours, theirs = _graded(likeness(said, truth)), _graded(1.0)
            return {"a": theirs if second else ours, "b": ours if second else theirs}

        verdict = await scene.desk.must(
            JudgeRequest(
                "tasks/turing",
                {
                    **scene.public,
                    "a": truth if second else said,
                    "b": said if second else truth,
                    "copied": copies(said, sources),
                },
                Pair,
                seed=scene.seed,
                rule=rule,
            )
        )
        rated = rate(verdict.a.total(), verdict.b.total(), generated_is_b=second)
        penalty = length_penalty(len(words(said)), len(words(truth)))
        bonus = 0.0 if _LABEL.search(said) else FORM_BONUS
        total = max(0.0, SHARE * rated.reward + bonus - penalty)
        ours = verdict.b if second else verdict.a
        parts = {
            "rating": rated.rating,
            "s": rated.s,
            "turing": rated.reward,
            "bonus": bonus,
            "length_penalty": penalty,
            "order": "BA" if second else "AB",
            **{name: ours.model_dump()[name] for name in PENALTIES},
        }
        return Reaction(score=Score(total, parts))

    def oracle(self, task: Task, turn: int) -> str:
        """Return the real turn: a tie, which is worth half."""
        return str(task.hidden["reference"])


def rate(score_a: float, score_b: float, *, generated_is_b: bool) -> Rated:
    """Return rating, s and reward of two totals; from s = 5 on nothing more is paid."""
    gap = round(score_b - score_a, 9)  # 1.2 - 0.95 is a quarter, whatever the last bit says
    rating = next((r for bound, r in _BOUNDS if gap <= bound), 0)
    if not rating:
        rating = 4 if gap < 0.25 else 5 if gap < 1 else 6 if gap < 2 else 7
    s = rating if generated_is_b else 8 - rating
    return Rated(rating, s, (min(s, 5) - 1) / 6)


def length_penalty(generated: int, human: int) -> float:
    """Return what being shorter than 0.8 or longer than 1.1 times the real text costs, at most .25."""
    ratio = generated / max(human, 1)
    short = max(0.8 - ratio, 0.0) / 0.8 * 0.35
    long = max(ratio - 1.1, 0.0) / 1.1 * 0.15
    return min(0.25, short + long)


def copies(said: str, sources: Sequence[str]) -> list[str]:
    """Return up to three runs of five words and more that stand in a source, longest reach first."""
    own = _WORD.findall(said.casefold())
    known = [f" {' '.join(_WORD.findall(source.casefold()))} " for source in sources]
    found: list[str] = []
    start = 0
    while start + RUN <= len(own) and len(found) < EXAMPLES:
        end = start + RUN
        if not any(_run(own, start, end) in text for text in known):
            start += 1
            continue
        while end < len(own) and any(_run(own, start, end + 1) in text for text in known):
            end += 1
        found.append(" ".join(own[start:end]))
        start = end
    return found


def _run(own: Sequence[str], start: int, end: int) -> str:
    return f" {' '.join(own[start:end])} "


def _graded(share: float) -> dict[str, float]:
    return dict.fromkeys(CRITERIA, round(share, 4)) | dict.fromkeys(PENALTIES, 0.0)


TASK = Turing()
