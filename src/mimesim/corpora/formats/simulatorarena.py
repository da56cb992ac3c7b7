"""SimulatorArena: people at work with a model on a document or a mathematics problem (MIT).

    {"user_queries": ["…"], "ai_responses": ["…"], "model", "document_type", "intent",
     "bullet_points": ["…"], "bullet_points_responses": ["…"], "overall_interaction_rating", …}
    {"user_queries": ["…"], "ai_responses": ["…"], "model", "level", "type", "overall_rating",
     "problem_1_correctness", "problem_2_correctness", "math_expertise", "why_ask_tutor", …}

A query that is a list (it holds a picture) is left out and counted. What the person wrote about
themselves and their task beforehand is hidden, the ratings are the outcome. For measurements only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, HumanTurn, Side, Unfit
from mimesim.corpora.formats.chats import required, stripped
from mimesim.corpora.formats.normalized import convert_normalized, identity, is_normalized

INFO = CorpusInfo(
    name="simulatorarena",
    license="MIT",
    redistributable="yes",
    training_allowed="yes",
    citation="SimulatorArena (2025), arXiv 2510.05444",
    moderated=True,
    evaluation_only=True,
)

_DOCUMENT = {
    "overall_interaction_rating": "interaction_rating",
    "overall_document_rating": "document_rating",
    "strength": "strength",
    "weakness": "weakness",
    "why_stop": "why_stop",
}
_MATH = {
    "overall_rating": "interaction_rating",
    "problem_1_correctness": "problem_1_correctness",
    "problem_2_correctness": "problem_2_correctness",
    "strength_weakness": "feedback",
    "why_stop": "why_stop",
}
_PROFILE = {
    "math_expertise": "math_expertise",
    "why_ask_tutor": "why_ask_tutor",
    "turk_initial_solution": "initial_solution",
}


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    row = required(value, "user_queries", "ai_responses", "model")
    told = _document(row) if "document_type" in row else _mathematics(row)
    turns, left_out = _turns(row)
    person = identity(row.get("workerId"))
    return [
        HumanDialogue(
            id="",
            turns=turns,
            source=INFO.name,
            user_key=person,
            group_keys=(person,) if person else (),
            left_out={"messages_left_out": left_out} if left_out else {},
            **told,
        )
    ]


def _document(row: Mapping[str, Any]) -> dict[str, Any]:
    asked, said = row.get("bullet_points") or (), row.get("bullet_points_responses") or ()
    background = [{"q": q, "a": a} for q, a in zip(asked, said, strict=False)]
    hidden = {
        "task": "doc",
        "assistant_model": row["model"],
        "type": row["document_type"],
        "profile": {"background": background},
    }
    return {
        "goal": stripped(row.get("intent")),
        "hidden": hidden,
        "outcome": _renamed(row, _DOCUMENT),
    }


def _mathematics(row: Mapping[str, Any]) -> dict[str, Any]:
    hidden = {
        "task": "math",
        "assistant_model": row["model"],
        "level": row.get("level"),
        "type": row.get("type"),
        "profile": _renamed(row, _PROFILE),
    }
    return {"hidden": hidden, "outcome": _renamed(row, _MATH)}


def _renamed(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {new: row[old] for old, new in names.items() if row.get(old) is not None}


def _turns(row: Mapping[str, Any]) -> tuple[tuple[HumanTurn, ...], int]:
    """Return queries and replies in turn, and how many of them are not text."""
    queries, replies = row["user_queries"], row["ai_responses"]
    if not isinstance(queries, list) or not isinstance(replies, list):
        raise Unfit("no_conversation", "no conversation here: queries and replies are no lists")
    turns, left_out = [], 0
    for pair in itertools.zip_longest(queries, replies, fillvalue=""):
        sides: tuple[Side, Side] = ("user", "agent")
        for side, text in zip(sides, pair, strict=True):
            if isinstance(text, str):
                turns.append(HumanTurn(side, text))
            else:
                left_out += 1
    return tuple(turns), left_out


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and {"user_queries", "ai_responses"} <= value.keys()


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, files=(".json", ".jsonl"))
