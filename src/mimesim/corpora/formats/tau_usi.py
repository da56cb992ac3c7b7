"""tau-USI: what 451 people said as customers in the tasks of tau-bench; for scores only.

    {"airline_0_ann2": {"task_id", "instance_id", "agent_id", "conversation": [{"role", "content"}],
     "survey": {"field": {"question", "answer"}}, "reward", "keep"}}
    {"results": [{"domain", "task_index", "run", "conversation", "survey", "reward"}]}    of models

Its terms are stated in two ways that contradict each other; the stricter one counts here: no
training of any kind. Sessions that are not to be kept are left out, and so are messages that work
the page rather than say something. All sessions of one task are one group; which of them it is
(batch of people, run of a model), the end of its key or the field `run` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mimesim.corpora import places
from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, HumanTurn, Record, Unfit
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

_KEY = re.compile(r"((?:airline|retail)_\d+)(?:_(?:ann)?(\d+))?")
_MARKS = ("\\tau ", "\\reward")
_PANES = ("<|canvas|>", "<|highlight|>", "<|survey|>")
_STOP = "/stop"


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    session = required(_with_key(value), "instance_id", "conversation", "reward")
    if session.get("keep") is False:
        raise Unfit("not_kept", "the source marks the session as not to be kept")
    chat = read_chat(session["conversation"], "conversation")
    turns = tuple(turn for turn in chat.turns if not _works_the_page(turn))
    left_out = len(chat.turns) - len(turns)
    name = identity(session["instance_id"])
    task, number = _task(name)
    run = session.get("run", number)
    return [
        HumanDialogue(
            id=f"tau-usi/{name}" if run == number else f"tau-usi/{name}/{run}",
            turns=turns,
            source=INFO.name,
            outcome={
                "task": task,
                "trial": run - 1 if isinstance(run, int) and run > 0 else number - 1,
                "reward": session["reward"],
                "survey": _answers(session.get("survey")),
                **({"simulated": True} if session.get("simulated") is True else {}),
            },
            group_keys=(task,),
            left_out={**chat.left_out, **({"page_messages": left_out} if left_out else {})},
        )
    ]


def _gather(records: Iterator[Record]) -> Iterator[Record]:
    """Yield one session each: entries of a model's file, and those that only their key names."""
    for record in records:
        value = record.value
        entries = value.get("results") if isinstance(value, Mapping) else None
        if isinstance(entries, list):
            for number, entry in enumerate(entries, start=1):
                told = {**entry, "simulated": True} if isinstance(entry, Mapping) else entry
                yield Record(f"{record.where}#{number}", told)
        elif isinstance(value, Mapping) and _KEY.fullmatch(places.entry(record.where)):
            yield Record(record.where, {**value, "instance_id": places.entry(record.where)})
        else:
            yield record


def _with_key(value: Any) -> Any:
    """Return the session with its key, where only its domain and number are there."""
    if isinstance(value, Mapping) and {"domain", "task_index"} <= value.keys():
        return {"instance_id": f"{value['domain']}_{value['task_index']}", **value}
    return value


def _task(name: str) -> tuple[str, int]:
    """Return task and number of the session of a key: `airline_0_ann2` is airline_0, the second."""
    found = _KEY.fullmatch(name)
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


FORMAT = Format(
    info=INFO, convert=_convert, claims=_claims, gather=_gather, files=(".json", ".jsonl")
)
