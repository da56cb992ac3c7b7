"""The gym `intention`: find out what a vague task leaves open, by asking.

The agent sees the task. The person answers from what it has in mind, a judge says which of the open
details the question asked for; what was asked for is paid, whether or not the person answered. The
person is told one value per detail and nothing of its importance or wording: the original shows its
user model the whole record (`compat`: `intention_user_knowledge` = `full`).

A task:
    public: {"category": text, "task": text}
    hidden: {
        "details": [{"id": whole number or name, each once; "description": text,
                     "importance": 1, 2 or 3; "inquiry": a question that asks for it,
                     "options": [text, ...], may be empty or missing;
                     "answer": text, may be missing: then an option is drawn for each episode,
                     and where there is none the person has no opinion}, ...],
        "cues": {str(id): [[word, ...], ...]}, for every detail,
        "oracle_trace": [["action", question], ...],
        "scenario": {"id", "goal", "meta": {"profile": "asked"}},
    }
    groups: ("tmpl:<name>",), or one per task text where tasks were not made from templates.
    meta: {"source", "license", "schema": 1}; "cues": "derived" where they were not written by hand.

A question asks for a detail, to the scripted person and the rule judge, when it holds all words of
one of the detail's keyword groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mimesim import prompts
from mimesim.dialogue.stop import StopReason
from mimesim.dialogue.types import Reply
from mimesim.envs.base import AgentAction, Choice, GymSpec, Task
from mimesim.envs.gyms.intention import person, scoring
from mimesim.envs.gyms.intention.details import read_details
from mimesim.envs.gyms.intention.verdicts import AnyCoverage, Coverage, counts
from mimesim.envs.packs import holds_string
from mimesim.envs.turns.cues import matches
from mimesim.envs.turns.kind import scripted
from mimesim.envs.turns.law import TurnGym
from mimesim.envs.turns.parts import (
    PARTY_FAILURES,
    BadAction,
    Opening,
    Question,
    Turn,
    as_speech,
)

SPEC = GymSpec(
    name="intention",
    choices=(Choice.ACTION,),
    max_steps=16,
    step_bounds=(0.0, 1.0),
    return_bound=16.0,
    needs_user=True,
    needs_judge=True,
    summary="find out what a vague task leaves open, by asking",
    person="person",
)
MAX_QUESTION = 1000
"""Characters of one question."""
_ORIGINAL_MEMORY = 6
"""Messages that the original shows its user: three exchanges."""
FRIENDLY = (
    "Good that you ask!",
    "Thanks, go on please.",
    "That is a thoughtful question.",
    "You are on a good way.",
    "Happy to go through this with you.",
)
"""What compat says for a user that failed."""


@dataclass(frozen=True, slots=True)
class State:
    """What was asked for.

    Attributes:
        covered: places of the settled details in the task's list.
        counted: how many the judge named; under compat repeated ones count again.
        total: rewards so far.
    """

    covered: tuple[int, ...] = ()
    counted: int = 0
    total: float = 0.0


class IntentionGym(TurnGym[State]):
    """One episode (single use).

    `original_counting`: whether verdicts are read and counted as in the original, which every
    `compat` profile does too.
    """

    SPEC = SPEC
    STATE = State
    OPTIONS: ClassVar[Mapping[str, Any]] = {"original_counting": False}
    FREE_TEXT = True
    BOTH_FLAGS = frozenset({StopReason.MAX_STEPS})

    def system(self, task: Task) -> str:
        """Return what the agent is told."""
        return prompts.render("envs/intention/system")

    async def begin(self, task: Task) -> Opening[State]:
        """Start: the person says what it wants."""
        self._details = read_details(task)
        first = f"{task.public['category']}: {task.public['task']}"
        return Opening(State(), first, scripted(first))

    async def act(self, state: State, action: AgentAction) -> Turn[State]:
        """Put a question to the person, and have the judge say what it asks for."""
        question = self._question(action)
        open_ = [place for place in range(len(self._details)) if place not in state.covered]
        reply = await self._reply(state, question)
        named, dropped = await self._named(question, open_)
        places = [open_[index] for index in named]
        importances = [self._details[place].importance for place in places]
        original = self._original_counting
        pay = scoring.original_reward if original else scoring.step_reward
        reward = pay(importances)
        new = tuple(dict.fromkeys(places))
        after = State(
            (*state.covered, *new), state.counted + len(places), round(state.total + reward, 10)
        )
        left = len(self._details) - len(after.covered)
        return Turn(
            after,
            reply=reply,
            reward=reward,
            over=StopReason.GOAL_REACHED if left == 0 else None,
            grading={
                "covered": [self._details[place].id for place in new],
                "answered": [self._details[p].id for p in new if self._says(reply, p)],
                "dropped": dropped,
                "left": left,
                "normalized": scoring.normalized(
                    after.total, [detail.importance for detail in self._details]
                ),
            },
        )

    def succeeded(self, state: State) -> bool:
        """Tell whether nothing is left open."""
        return len(state.covered) == len(self._details)

    def forbidden(self) -> list[str]:
        """Return the wording of all details, and what is in mind of those not asked for."""
        found = [detail.inquiry for detail in self._details]
        for place, detail in enumerate(self._details):
            if place not in self.state.covered:
                found += [detail.description, self._value(place)]
        return [text for text in found if text]

    def answer(self) -> str:
        """Return how much was settled."""
        return f"{self.state.counted} of {len(self._details)} open details were asked for."

    @property
    def _original_counting(self) -> bool:
        return self.options["original_counting"] or bool(self.compat.profile)

    def _value(self, place: int) -> str:
        """Return what the person has in mind; "" = it has no opinion."""
        detail = self._details[place]
        if detail.answer or not detail.options:
            return detail.answer
        return self.rng("answer", str(detail.id)).choice(detail.options)

    def _says(self, reply: Reply, place: int) -> bool:
        return holds_string(reply.utterance, self._value(place))

    def _question(self, action: AgentAction) -> str:
        if not self.compat.plain_choices:
            if len(action.content) > MAX_QUESTION:
                raise BadAction(f"a question has at most {MAX_QUESTION} characters")
            return action.content
        return as_speech(action)

    async def _reply(self, state: State, question: str) -> Reply:
        known = self.compat.intention_user_knowledge
        values = ["" if known == "none" else self._value(p) for p in range(len(self._details))]
        rng = self.rng("words", len(self.heard()))

        def script(kind: str) -> Reply:
            asked = [p for p, detail in enumerate(self._details) if matches(detail.cue, question)]
            new = any(place not in state.covered for place in asked)
            return person.speak([values[place] for place in asked], kind, first=new, rng=rng)

        history = self.heard()[-_ORIGINAL_MEMORY:] if known == "full" else None
        asked = Question(
            "intention.reply",
            question,
            script,
            public={key: self.task.public[key] for key in ("category", "task")},
            private={"details": self._knowledge(values)},
            history=history,
        )
        try:
            return await self.ask(asked)
        except PARTY_FAILURES:
            if self.compat.error_policy != "zero_reward":
                raise
            return scripted(rng.choice(FRIENDLY))

    def _knowledge(self, values: Sequence[str]) -> list[dict[str, Any]]:
        """Return what the user model is told of the details."""
        if self.compat.intention_user_knowledge == "full":
            return [detail.record() for detail in self._details]
        return [
            {"description": detail.description, "answer": value}
            for detail, value in zip(self._details, values, strict=True)
            if value
        ]

    async def _named(self, question: str, open_: Sequence[int]) -> tuple[list[int], int]:
        """Return the indices into `open_` that the judge named, and how many it made up."""
        left = [self._details[place] for place in open_]
        inputs = {
            "task": self.task.public["task"],
            "question": question,
            "details": [
                {
                    "index": index,
                    "importance": detail.importance,
                    "description": detail.description,
                    "inquiry": detail.inquiry,
                }
                for index, detail in enumerate(left)
            ],
        }

        def rule(asked: Mapping[str, Any]) -> Mapping[str, Any]:
            found = [i for i, detail in enumerate(left) if matches(detail.cue, question)]
            return {"is_task_related": bool(found), "covered": found}

        kind = "intention.coverage"
        if not self._original_counting:
            verdict = await self.decide(kind, inputs, Coverage, rule)
            named = list(dict.fromkeys(verdict.covered))
            related = verdict.is_task_related
        else:
            related, named = await self._original_verdict(kind, inputs, rule)
        inside = [index for index in named if 0 <= index < len(left)]
        return (inside if related else []), len(named) - len(inside)

    async def _original_verdict(
        self, kind: str, inputs: Mapping[str, Any], rule: Any
    ) -> tuple[bool, list[int]]:
        """Return a verdict with its repetitions; one that failed looks like one of nothing."""
        try:
            verdict = await self.decide(kind, inputs, AnyCoverage, rule)
        except PARTY_FAILURES:
            if self.compat.error_policy != "zero_reward":
                raise
            return False, []
        return verdict.is_task_related, [int(v) for v in verdict.covered if counts(v)]


def moves(task: Task) -> list[tuple[str, str]]:
    """Return what a random agent asks, whatever the task."""
    asked = (
        "What is your budget?",
        "When do you need it?",
        "How many people are there?",
        "Which style do you like?",
        "Where should it be?",
        "Can you tell me more about it?",
    )
    return [("action", text) for text in asked]
