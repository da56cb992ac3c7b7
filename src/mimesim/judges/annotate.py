"""Which behaviors occur where in a conversation: typed labels, by rules or by a language model.

It reads what was said and nothing else: no thought, no record, no scenario, so people and
simulators are labelled alike. A label on a message that is not the customer's, or of a behavior that
does not exist, makes the whole answer unreadable; it is asked for again, then failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, model_validator

from mimesim import seeds
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import Role
from mimesim.judges.base import Judge, JudgeRequest, JudgeResult, Skipped
from mimesim.judges.behavior import Share
from mimesim.judges.behavior_rules import HELD_OUT, MAIN, findings
from mimesim.judges.behavior_talk import Performance, Said
from mimesim.scenarios import behaviors

ANNOTATE = "annotate"
LEAST = 0.6
"""From this strength on a rule's signs become a label: a single small cue is not enough."""


class Label(BaseModel):
    """One behavior that shows in a conversation.

    Attributes:
        behavior: its id.
        turns: indices of the customer's messages in which it shows.
        why: what it rests on; of rules, the cue.
    """

    behavior: str
    turns: list[int] = Field(min_length=1)
    confidence: Share
    why: str = ""


class Labels(BaseModel):
    """All behaviors of a conversation; an empty list is a verdict, too."""

    labels: list[Label]

    def names(self) -> frozenset[str]:
        """Return the ids that occur."""
        return frozenset(label.behavior for label in self.labels)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation to label; `turns` are (role, text) in order."""

    id: str
    turns: tuple[tuple[Role, str], ...]

    @property
    def key(self) -> str:
        """The fingerprint of what was said, so that labels of another text are not taken over."""
        return seeds.fingerprint("\x1e".join(f"{role}\x1f{text}" for role, text in self.turns))


def question(dialogue: Dialogue, *, seed: int, trial: int = 0) -> JudgeRequest[Labels]:
    """Return the question that asks for the labels of `dialogue`."""
    known = {one.id: one for one in behaviors.everything()}
    own = {i for i, (role, _) in enumerate(dialogue.turns) if role is Role.USER}

    class Checked(Labels):
        """The labels of exactly this conversation."""

        @model_validator(mode="after")
        def _possible(self) -> Checked:
            for label in self.labels:
                if label.behavior not in known:
                    raise ValueError("behavior must be one of " + ", ".join(known))
                if not own.issuperset(label.turns):
                    raise ValueError("turns must be numbers of the customer's messages")
            if len(self.names()) < len(self.labels):
                raise ValueError("a behavior has one entry with all its turns")
            return self

    inputs = {
        "transcript": [
            {"turn": i, "role": "customer" if role is Role.USER else "agent", "text": text}
            for i, (role, text) in enumerate(dialogue.turns)
        ],
        "behaviors": [
            {"id": b.id, "name": b.name.replace("_", " "), "definition": b.definition}
            for b in known.values()
        ],
        "contrasts": _contrasts(known),
    }
    return JudgeRequest(
        ANNOTATE,
        inputs,
        Checked,
        seed=seed,
        trial=trial,
        rule=lambda _: _by_rule(dialogue, MAIN),
        held_out=lambda _: _by_rule(dialogue, HELD_OUT),
    )


async def annotate(judge: Judge, dialogue: Dialogue, *, seed: int) -> JudgeResult[Labels]:
    """Label one conversation; where the customer says nothing, nobody is asked.

    Raises:
        InfraError: the judge could not be reached.
        ContextExceeded: the conversation does not fit the judge.
    """
    if not any(role is Role.USER and not is_blank(text) for role, text in dialogue.turns):
        return Skipped("no_customer_turn")
    return await judge.judge(question(dialogue, seed=seeds.derive(seed, ANNOTATE, dialogue.id)))


def _contrasts(known: Mapping[str, behaviors.Behavior]) -> Sequence[Mapping[str, str]]:
    pairs: dict[frozenset[str], dict[str, str]] = {}
    for one in known.values():
        for other, told in one.described.contrasts.items():
            pairs.setdefault(
                frozenset((one.id, other)), {"ids": f"{one.id} or {other}", "told": told}
            )
    return list(pairs.values())


def _by_rule(dialogue: Dialogue, judge: str) -> Mapping[str, Any]:
    turns = tuple(Said(role, text) for role, text in dialogue.turns)
    found = findings(Performance(None, "", turns), judge)
    return {
        "labels": [
            {
                "behavior": one.behavior,
                "turns": list(one.turns),
                "confidence": round(one.strength, 4),
                "why": one.why,
            }
            for one in found
            if one.strength >= LEAST
        ]
    }
