"""ThoughtTrace: chats with a model and what the people thought meanwhile (CC BY 4.0).

    {"id": "user1_task1_conversation1", "messages": [{"type": "user", "content", "reasons":
     [{"content", "label"}]}, {"type": "assistant", "content", "reactions": […]}], "task_summary",
     "task_expectation", "survey_answers": [{"age", …}]}

Reasons become the thought of their message, joined by a blank line, reactions that of the reply
they are about. The summary of the task is the goal; `hidden` holds `expectation`, `profile` (the
first entry of the survey) and the labels. Sides must alternate from the person on, with and without
empty messages. Rows of single next turns hold their history as one text with names in front of the
messages; where these alternate up to the person, it becomes turns, and otherwise `earlier`.
Paper: arXiv 2605.20087.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, HumanTurn, Side, Unfit
from mimesim.corpora.formats.chats import fold, joined, plain, required
from mimesim.corpora.formats.normalized import convert_normalized, identity, is_normalized
from mimesim.dialogue.types import Thought

INFO = CorpusInfo(
    name="thoughttrace",
    license="CC BY 4.0",
    redistributable="yes",
    training_allowed="yes",
    citation="Jin et al. (2026), ThoughtTrace, arXiv 2605.20087",
    moderated=False,
)

_SIDES: Mapping[str, Side] = {"user": "user", "assistant": "agent"}
_NOTES: Mapping[Side, str] = {"user": "reasons", "agent": "reactions"}
_PROFILE = ("age", "gender", "education", "occupation", "frequency", "purposes")
_NAMED = re.compile(r"^(User|Assistant): ", re.MULTILINE)
_PERSON = re.compile(r"(?:thoughttrace/)?(user[^_/]+)_")


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    if isinstance(value, Mapping) and "next_user_message" in value:
        return [_next_turn(value)]
    return [_conversation(required(value, "id", "messages"))]


def _conversation(row: Mapping[str, Any]) -> HumanDialogue:
    messages = row["messages"]
    if not isinstance(messages, list):
        raise Unfit("no_conversation", "no conversation here: 'messages' is not a list")
    turns = [_turn(message) for message in messages]
    _check_alternation(turns, "")
    turns = [turn for turn in turns if turn.text.strip()]
    _check_alternation(turns, " once empty messages are left out")
    survey = row.get("survey_answers")
    answers = survey[0] if isinstance(survey, list) and survey else {}
    told = {
        "expectation": _text(row, "task_expectation").strip(),
        "profile": plain(answers, *_PROFILE) if isinstance(answers, Mapping) else {},
        "reason_labels": _labels(messages, "reasons"),
        "reaction_labels": _labels(messages, "reactions"),
        "model": row.get("model_name"),
    }
    person = _person(identity(row["id"]))
    return HumanDialogue(
        id=f"thoughttrace/{identity(row['id'])}",
        turns=tuple(turns),
        source=INFO.name,
        goal=_text(row, "task_summary").strip(),
        hidden=plain(told, *told),
        user_key=person,
        group_keys=(person,) if person else (),
        left_out={"empty_messages": n} if (n := len(messages) - len(turns)) else {},
    )


def _next_turn(row: Mapping[str, Any]) -> HumanDialogue:
    required(row, "id", "history_text", "assistant_reply", "next_user_message")
    person = _person(identity(row["id"]))
    reaction, motivation = _text(row, "reaction").strip(), _text(row, "motivation").strip()
    earlier, history = _history(_text(row, "history_text").strip())
    return HumanDialogue(
        id=identity(row["id"]),
        turns=(
            *history,
            HumanTurn("agent", _text(row, "assistant_reply"), reaction=_thought(reaction)),
            HumanTurn("user", _text(row, "next_user_message"), thought=_thought(motivation)),
        ),
        source=INFO.name,
        earlier=earlier,
        hidden=plain(row, "motivation_labels", "reaction_labels", "model", "stage"),
        user_key=person,
        group_keys=(person,) if person else (),
    )


def _history(text: str) -> tuple[str, list[HumanTurn]]:
    """Return what comes before the person's first message, and the turns from there on."""
    before, *parts = _NAMED.split(text)
    turns = [
        HumanTurn(_SIDES[name.lower()], said)
        for name, said in zip(parts[::2], parts[1::2], strict=True)
    ]
    opening = turns[:1] if turns and turns[0].role == "agent" else []
    rest = turns[len(opening) :]
    sides = ["user", "agent"] * len(rest)
    if before or len(rest) % 2 == 0 or [turn.role for turn in rest] != sides[: len(rest)]:
        return text, []
    return fold(opening), rest


def _turn(message: Any) -> HumanTurn:
    role = message.get("type") if isinstance(message, Mapping) else None
    if not isinstance(role, str):
        raise Unfit("missing_role", "a message has no 'type'")
    if role not in _SIDES:
        raise Unfit("unknown_role", f"the type {role[:40]!r} of a message")
    side = _SIDES[role]
    words = _thought(joined(_text(note, "content") for note in _notes(message, _NOTES[side])))
    text = _text(message, "content")
    return HumanTurn(side, text, **{"thought" if side == "user" else "reaction": words})


def _check_alternation(turns: list[HumanTurn], when: str) -> None:
    sides = [turn.role for turn in turns]
    if not sides or any(side != ("user", "agent")[at % 2] for at, side in enumerate(sides)):
        raise Unfit("not_alternating", f"the sides do not alternate from the person on{when}")


def _notes(message: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = message.get(key)
    notes = found if isinstance(found, list) else []
    return [note for note in notes if isinstance(note, Mapping)]


def _labels(messages: list[Mapping[str, Any]], key: str) -> list[str]:
    labels = [note.get("label") for message in messages for note in _notes(message, key)]
    return [label for label in labels if isinstance(label, str)]


def _text(row: Mapping[str, Any], key: str) -> str:
    found = row.get(key)
    if found is not None and not isinstance(found, str):
        raise Unfit("bad_text", f"{key!r} is of the type {type(found).__name__}")
    return found or ""


def _thought(words: str) -> Thought | None:
    return Thought(words) if words else None


def _person(name: str) -> str:
    found = _PERSON.match(name)
    return found.group(1) if found else ""


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and (
        {"messages", "task_summary"} <= value.keys()
        or {"history_text", "next_user_message"} <= value.keys()
    )


FORMAT = Format(info=INFO, convert=_convert, claims=_claims)
