"""The gym `turtle`: find out by yes-or-no questions what is behind a strange story, then tell it.

A told story is judged point by point, and pays what it is worth more than the best one before. The
agent learns how many points are right, never which; the original lists them (`compat`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

from mimesim import prompts
from mimesim.dialogue.stop import StopReason
from mimesim.envs.base import AgentAction, Choice, GymSpec, Task
from mimesim.envs.gyms.turtle.stories import read_hidden
from mimesim.envs.gyms.turtle.verdicts import loose_scores_of, scores_of
from mimesim.envs.turns.labels import as_label, original_reading, question_in, scripted_label
from mimesim.envs.turns.law import Opening, Question, Turn, TurnGym

SPEC = GymSpec(
    name="turtle",
    choices=(Choice.ACTION, Choice.ANSWER),
    max_steps=16,
    step_bounds=(0.0, 1.0),
    return_bound=1.0,
    needs_user=True,
    needs_judge=True,
    summary="ask yes-or-no questions about a strange story, then tell what is behind it",
    person="storyteller",
)
NOTHING = "None of the points is there yet."
_SOLVED = 1e-9


@dataclass(frozen=True, slots=True)
class State:
    """How many questions were asked, and the worth of the best story so far."""

    asked: int = 0
    best: float = 0.0


class TurtleGym(TurnGym[State]):
    """One episode (single use)."""

    SPEC = SPEC
    STATE = State
    CANNED = "There is nothing to say to that."
    FREE_TEXT = True

    def system(self, task: Task) -> str:
        """Return what the agent is told."""
        return prompts.render("envs/turtle/system")

    async def begin(self, task: Task) -> Opening[State]:
        """Show the title and the strange part of the story."""
        self._hidden = read_hidden(task)
        return Opening(State(), f"{task.public['title']}\n\n{task.public['surface']}")

    async def act(self, state: State, action: AgentAction) -> Turn[State]:
        """Ask, or tell the story."""
        choice, content = action.choice, action.content
        if self.compat.plain_choices:
            choice, content = original_reading(action)
        if choice is Choice.ANSWER:
            return await self._tell(state, content)
        if not self.compat.plain_choices:
            question_in(content)
        return await self._ask(state, content)

    def succeeded(self, state: State) -> bool:
        """Tell whether the whole story was told."""
        return state.best >= 1 - _SOLVED

    def forbidden(self) -> list[str]:
        """Return the story and its points."""
        return [self._hidden.bottom, *(criterion.statement for criterion in self._hidden.criteria)]

    def answer(self) -> str:
        """Return the story."""
        return self._hidden.bottom

    async def _ask(self, state: State, text: str) -> Turn[State]:
        shown = self.task.public
        reply = await self.ask(
            Question(
                kind="turtle.oracle",
                text=text,
                script=scripted_label(lambda: self._hidden.label(text), first=not state.asked),
                public={"title": shown["title"], "surface": shown["surface"]},
                private={"bottom": self._hidden.bottom},
            )
        )
        said = as_label(reply, self.compat)
        return Turn(replace(state, asked=state.asked + 1), reply=said)

    async def _tell(self, state: State, story: str) -> Turn[State]:
        values = await self._judged(story)
        worth = self._worth(values)
        gain = max(0.0, worth - state.best)
        return Turn(
            replace(state, best=max(state.best, worth)),
            self._told(values),
            reward=min(gain, 1.0),
            over=StopReason.GOAL_REACHED if self._whole(worth) else None,
            grading={"values": values, "worth": worth},
        )

    async def _judged(self, story: str) -> list[float]:
        criteria = self._hidden.criteria
        names = tuple(criterion.id for criterion in criteria)
        inputs = {
            "surface": self.task.public["surface"],
            "bottom": self._hidden.bottom,
            "story": story,
            "criteria": [{"id": c.id, "statement": c.statement} for c in criteria],
        }
        kind, rule = "turtle.score", lambda given: self._hidden.verdict(given["story"])
        if self._exact:
            loose = await self.decide(kind, inputs, loose_scores_of(len(names)), rule)
            return loose.values(names)
        return (await self.decide(kind, inputs, scores_of(names), rule)).values(names)

    def _worth(self, values: Sequence[float]) -> float:
        parts = [c.weight * v for c, v in zip(self._hidden.criteria, values, strict=True)]
        if self._exact:
            return reduce(add, parts)  # `sum` rounds less from Python 3.12 on
        return min(1.0, math.fsum(parts))

    def _whole(self, worth: float) -> bool:
        return worth >= (1.0 if self._exact else 1 - _SOLVED)

    @property
    def _exact(self) -> bool:
        """Whether sums, values and the end are the original's: added up in order, unchecked."""
        return self.compat.turtle_tol == "exact"

    def _told(self, values: Sequence[float]) -> str:
        full = [c for c, v in zip(self._hidden.criteria, values, strict=True) if v == 1]
        if self.compat.turtle_feedback == "statements":
            return "\n".join(["What is right:", *(c.statement for c in full)]) if full else NOTHING
        partly = sum(0 < value < 1 for value in values)
        return f"{len(full)} of {len(values)} points fully right, {partly} partly."
