"""The gym `telepathy`: find out by yes-or-no questions what a person is thinking of.

A guess that is a name of the thing is right by rule, several guesses at once are wrong by rule;
only what is left goes to the judge, whose words nobody sees. In the original the judge decides on
every guess, and the agent reads its comment (`guess="comment"`, or any compat profile).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import BaseModel, field_validator

from mimesim import prompts
from mimesim.dialogue.stop import StopReason
from mimesim.envs.base import AgentAction, Choice, GymSpec, Task
from mimesim.envs.gyms.telepathy.things import read_hidden
from mimesim.envs.turns.labels import as_label, original_reading, question_in, scripted_label
from mimesim.envs.turns.law import Opening, Question, Turn, TurnGym
from mimesim.errors import ConfigError
from mimesim.judges.base import Judge
from mimesim.users.base import User

SPEC = GymSpec(
    name="telepathy",
    choices=(Choice.ACTION, Choice.ANSWER),
    max_steps=16,
    step_bounds=(0.0, 1.0),
    return_bound=1.0,
    needs_user=True,
    needs_judge=True,
    summary="find out by yes-or-no questions what somebody is thinking of",
    person="person",
)
RIGHT = "Correct, that is it."
WRONG = "Not correct."
_GUESSES = ("auto", "rule", "comment")


class Guess(BaseModel):
    """Whether a guess is right; a yes or no in words is one too."""

    correct: bool

    @field_validator("correct", mode="before")
    @classmethod
    def _in_words(cls, value: Any) -> Any:
        said = value.strip().casefold() if isinstance(value, str) else ""
        return {"yes": True, "no": False}.get(said, value)


class Comment(BaseModel):
    """The original's verdict: right only if it is exactly `Yes`, with words for the agent."""

    correct: str | bool
    comment: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """How many questions were asked, and whether the thing was guessed."""

    asked: int = 0
    solved: bool = False


class TelepathyGym(TurnGym[State]):
    """One episode (single use).

    Options:
        oracle_history: whether who answers reads the earlier questions too.
        guess: `rule` or `comment` (see above); `auto` = by the compat profile.
    """

    SPEC = SPEC
    STATE = State
    OPTIONS: ClassVar[Mapping[str, Any]] = {"oracle_history": False, "guess": "auto"}
    CANNED = "There is nothing to say to that."
    FREE_TEXT = True

    def __init__(
        self, *, user: User, judge: Judge | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(user=user, judge=judge, options=options)
        how = self.options["guess"]
        if how not in _GUESSES:
            raise ConfigError(
                f"gym 'telepathy': 'guess' is {how!r}", expected="one of " + ", ".join(_GUESSES)
            )
        self._comments = how == "comment" or (how == "auto" and self.compat.profile != "")

    def system(self, task: Task) -> str:
        """Return what the agent is told."""
        return prompts.render("envs/telepathy/system")

    async def begin(self, task: Task) -> Opening[State]:
        """Say what kind of thing it is."""
        self._hidden = read_hidden(task)
        return Opening(State(), task.public["intro"])

    async def act(self, state: State, action: AgentAction) -> Turn[State]:
        """Ask, or guess."""
        choice, content = action.choice, action.content
        if self.compat.plain_choices:
            choice, content = original_reading(action)
        if choice is Choice.ANSWER:
            return await self._guess(state, content)
        if not self.compat.plain_choices:
            question_in(content)
        return await self._ask(state, content)

    def succeeded(self, state: State) -> bool:
        """Tell whether it was guessed."""
        return state.solved

    def forbidden(self) -> list[str]:
        """Return its names."""
        return [*self._hidden.names, self._hidden.target]

    def answer(self) -> str:
        """Return its name."""
        return f"It was: {self._hidden.title}."

    async def _ask(self, state: State, text: str) -> Turn[State]:
        reply = await self.ask(
            Question(
                kind="telepathy.oracle",
                text=text,
                script=scripted_label(lambda: self._hidden.label(text), first=not state.asked),
                public={"kind": self.task.public["kind"]},
                private={"target": self._hidden.target},
                history=None if self.options["oracle_history"] else (),
            )
        )
        said = as_label(reply, self.compat)
        return Turn(replace(state, asked=state.asked + 1), reply=said)

    async def _guess(self, state: State, guess: str) -> Turn[State]:
        comment = ""
        if self._comments:
            right, comment = await self._original_verdict(guess)
        else:
            right = self._hidden.named(guess)
            if not right and not self._hidden.several(guess):
                given = self._inputs(guess)
                verdict = await self.decide("telepathy.guess", given, Guess, self._rule)
                right = verdict.correct
        told = f"{RIGHT if right else WRONG} {comment}".strip()
        if not right:
            return Turn(state, told)
        return Turn(replace(state, solved=True), told, reward=1.0, over=StopReason.GOAL_REACHED)

    async def _original_verdict(self, guess: str) -> tuple[bool, str]:
        inputs = {**self._inputs(guess), "comments": True}
        verdict = await self.decide("telepathy.guess", inputs, Comment, self._original_rule)
        return verdict.correct == "Yes", verdict.comment

    def _inputs(self, guess: str) -> dict[str, Any]:
        return {"target": self._hidden.target, "guess": guess, "comments": False}

    def _rule(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {"correct": self._hidden.named(inputs["guess"])}

    def _original_rule(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {"correct": "Yes" if self._hidden.named(inputs["guess"]) else "No"}
