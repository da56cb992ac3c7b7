"""tau-USI: what 451 people said as customers in the tasks of tau-bench; for scores only.

    {"airline_0_ann2": {"task_id", "instance_id", "agent_id", "conversation": [{"role", "content"}],
     "survey": {"field": {"question", "answer"}}, "reward", "keep"}}

Its terms are stated in two ways that contradict each other; the stricter one counts here: no
training of any kind. Sessions that are not to be kept are left out, and so are messages that work
the page rather than say something. The three sessions of one task are one group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, HumanTurn, Unfit
from mimesim.corpora.formats.chats import read_chat, required
from mimesim.corpora.formats.normalized import convert_normalized, identity, is_normalized

INFO = CorpusInfo(
    name="tau-usi",
    license="conflicting: CC BY-NC 4.0; gate: research and evaluation only, no training",
    redistributable="no",
    training_allowed="no",
    citation="tau-USI (2026), arXiv 2603.11245, data set cmu-lti/tau-usi",
    moderated=True,
    evaluation_only=True,
)

_BATCH = re.compile(r"(.+?)(?:_ann(\d+))?")
_MARKS = ("\\tau ", "\\reward")
_PANES = ("<|canvas|>", "<|highlight|>", "<|survey|>")
_STOP = "/stop"


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    session = required(value, "instance_id", "conversation", "reward")
    if session.get("keep") is False:
        raise Unfit("not_kept", "the source marks the session as not to be kept")
    chat = read_chat(session["conversation"], "conversation")
    turns = tuple(turn for turn in chat.turns if not _works_the_page(turn))
    left_out = len(chat.turns) - len(turns)
    name = identity(session["instance_id"])
    task, batch = _task(name)
    return [
        HumanDialogue(
            id=f"tau-usi/{name}",
            turns=turns,
            source=INFO.name,
            hidden={"task": task, "batch": batch},
            outcome={"reward": session["reward"], "survey": _answers(session.get("survey"))},
            group_keys=(task,),
            left_out={**chat.left_out, **({"page_messages": left_out} if left_out else {})},
        )
    ]


def _task(name: str) -> tuple[str, int]:
    """Return the task and the batch of an instance: `airline_0_ann2` is task airline_0, batch 2."""
    found = _BATCH.fullmatch(name)
    return (found.group(1), int(found.group(2) or 1)) if found else (name, 1)


def _works_the_page(turn: HumanTurn) -> bool:
    text = turn.text.strip()
    return (
        text == _STOP
        or text.startswith((*_MARKS, _MARKS[0].strip() + "\n"))
        or any(pane in text for pane in _PANES)
    )


def _answers(survey: Any) -> dict[str, Any]:
    fields = survey.items() if isinstance(survey, Mapping) else ()
    return {key: one.get("answer") if isinstance(one, Mapping) else one for key, one in fields}


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and {"instance_id", "conversation", "survey"} <= value.keys()


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, files=(".json", ".jsonl"))
