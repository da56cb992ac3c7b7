"""What SimulatorArena asks a judge: ratings of the assistant, likeness of the users, traits."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from mimesim import jsonio
from mimesim.bench.suites.questions import Pair, Question, shown
from mimesim.bench.suites.sessions import Session
from mimesim.dialogue.types import Role
from mimesim.envs.tasks.answers import likeness
from mimesim.envs.tasks.arena import Features, Likert
from mimesim.envs.tasks.sim_doc import Rating
from mimesim.errors import DataError
from mimesim.judges.base import Failed
from mimesim.stats.texts import words

INTERACTION = "arena.interaction"
DOCUMENT = "arena.document"
RATE_DOCUMENT = "tasks/sim_doc"
WRITING_LIKE = "tasks/arena_writing"
INTERACTION_LIKE = "tasks/arena_interaction"
TRAITS = "tasks/arena_features"
DOC = "doc"
_COPIED = 0.6
"""Least share of a text's words that the conversation holds."""


class Interaction(BaseModel):
    """How well the assistant served the user, 1 to 10."""

    reason: str = ""
    rating: int = Field(ge=1, le=10)


class Document(BaseModel):
    """The text that the assistant wrote."""

    document: str


def rating_questions(pair: Pair) -> list[Question]:
    """Return what rates the assistant in the simulated conversation."""
    transcript = shown(pair.subject)
    kind = str(pair.person.about.get("task", ""))
    found = [
        Question(
            pair.item,
            INTERACTION,
            {"kind": kind, "transcript": transcript},
            Interaction,
            rule=lambda inputs: {"rating": _taken_up(inputs["transcript"])},
        )
    ]
    if kind == DOC:
        found.append(_document_question(pair, transcript))
    return found


def _document_question(pair: Pair, transcript: list[dict[str, str]]) -> Question:
    """Ask for the text first, then rate it."""

    def rate(found: Document) -> Question | Failed:
        if not _stands_in(found.document, transcript):
            return Failed("the text is not one of the conversation")
        about = pair.person.about
        inputs = {
            "kind": str(about.get("type") or "text"),
            "intent": pair.person.goal,
            "preferences": str(about.get("preferences") or ""),
            "document": found.document,
        }
        wanted = set(words(pair.person.goal))

        def rule(asked: Mapping[str, Any]) -> dict[str, Any]:
            share = len(wanted & set(words(asked["document"]))) / max(1, len(wanted))
            return {"rating": 1 + round(9 * share)}

        return Question(pair.item, RATE_DOCUMENT, inputs, Rating, rule=rule)

    return Question(
        pair.item,
        DOCUMENT,
        {"transcript": transcript},
        Document,
        rule=lambda inputs: {"document": _longest(inputs["transcript"])},
        then=rate,
        later=(RATE_DOCUMENT,),
        verdict=Rating,
    )


def _stands_in(document: str, transcript: Sequence[Mapping[str, str]]) -> bool:
    """Tell whether most words of a text were said; what a judge says of itself mostly was not."""
    told = words(document)
    known = {word for turn in transcript for word in words(turn["text"])}
    return bool(told) and sum(word in known for word in told) >= _COPIED * len(told)


def likeness_questions(pair: Pair) -> list[Question]:
    """Return what compares the two users: how they write, and how they go about it."""
    said, theirs = (" ".join(side.said) for side in (pair.subject, pair.person))
    task = f"sim_{pair.person.about.get('task', '')}"

    def rule(_: Mapping[str, Any]) -> dict[str, Any]:
        return {"similarity_score": 1 + round(4 * likeness(said, theirs))}

    found = []
    for kind, only_user in ((WRITING_LIKE, True), (INTERACTION_LIKE, False)):
        inputs = {
            "task": task,
            "real": shown(pair.person, only_user=only_user),
            "simulated": shown(pair.subject, only_user=only_user),
        }
        found.append(Question(pair.item, kind, inputs, Likert, rule=rule))
    return found


def trait_questions(pair: Pair, traits: Mapping[str, Any]) -> list[Question]:
    """Return what looks for the person's traits in the simulated conversation, if any are known."""
    listed = traits.get(pair.person.task) or traits.get(pair.person.id)
    listed = listed or pair.person.about.get("features")
    if not listed:
        return []
    said, theirs = (" ".join(side.said) for side in (pair.subject, pair.person))
    called = "Match" if likeness(said, theirs) >= 0.5 else "No Match"

    def rule(inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "results": [{"name": f["name"], "classification": called} for f in inputs["features"]]
        }

    inputs = {"simulated": shown(pair.subject), "features": listed}
    return [Question(pair.item, TRAITS, inputs, Features, rule=rule)]


def read_traits(path: str) -> dict[str, list[dict[str, str]]]:
    """Read people's traits, one line per conversation: `{"task": id, "features": [{name, text}]}`.

    Raises:
        DataError: a line of another form.
    """
    found = {}
    for line in jsonio.read_jsonl(path) if path else ():
        value = line.value if isinstance(line.value, Mapping) else {}
        told = value.get("features")
        good = isinstance(told, list) and all(
            isinstance(one, Mapping) and {"name", "text"} <= one.keys() for one in told
        )
        if not good or not isinstance(value.get("task"), str):
            raise DataError(
                "no traits of a person",
                where=f"{path}:{line.number}",
                expected='{"task": id, "features": [{"name", "text"}]}',
            )
        found[value["task"]] = [
            {"group": str(one.get("group", "style")), "name": one["name"], "text": one["text"]}
            for one in told or ()
        ]
    return found


def _taken_up(transcript: Sequence[Mapping[str, str]]) -> int:
    """Return 1 to 10: the mean share of a user message's words that the next reply takes up."""
    shares = []
    for asked, answer in itertools.pairwise(transcript):
        if asked["role"] == "user" and answer["role"] == "assistant":
            wanted = set(words(asked["text"]))
            shares.append(len(wanted & set(words(answer["text"]))) / max(1, len(wanted)))
    return 1 + round(9 * sum(shares) / len(shares)) if shares else 1


def _longest(transcript: Sequence[Mapping[str, str]]) -> str:
    replies = [turn["text"] for turn in transcript if turn["role"] == "assistant"]
    return max(replies, key=len, default="")


def assistant_of(session: Session) -> str:
    """Return whom the person talked to; empty where the source does not say."""
    return str(session.about.get("assistant_model") or "")


def kind_of(session: Session) -> str:
    """Return the difficulty level or the type of document."""
    return str(session.about.get("level") or session.about.get("type") or "")


def words_per_turn(sessions: Sequence[Session]) -> float:
    """Return white-space words per user message, over all messages together."""
    sizes = [len(text.split()) for one in sessions for role, text in one.turns if role is Role.USER]
    return sum(sizes) / len(sizes) if sizes else 0.0
