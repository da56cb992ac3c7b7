"""STAR: task dialogues in which the user got instructions that the other side never saw (MIT).

    {"DialogueID", "CompletionLevel", "Events": [{"Agent": "UserGuide", "Action": "instruct", "Text"},
     {"Agent": "User", "Action": "utter", "Text"}, {"Agent": "Wizard", "Action": "pick_suggestion",
     "Text"}], "Scenario": {"Domains", "UserTask", "Happy", "MultiTask"}, "UserQuestionnaire": […]}

One file per dialogue. Instructions are hidden, without their counter; dialogues that share the text
of one stay together in a split, and those without any are for training. Only complete ones count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Unfit
from mimesim.corpora.formats.chats import required
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized
from mimesim.corpora.formats.sgd import FILES

INFO = CorpusInfo(
    name="star",
    license="MIT",
    redistributable="yes",
    training_allowed="yes",
    citation="Mosig et al. (2020), STAR: A Schema-Guided Dialog Dataset for Transfer Learning, "
    "arXiv 2010.11853",
    moderated=True,
)

_SPOKEN = {
    ("UserGuide", "instruct"): "director",
    ("User", "utter"): "user",
    ("Wizard", "utter"): "agent",
    ("Wizard", "pick_suggestion"): "agent",
}
_COUNTER = re.compile(r"\s*\[instruction \d+ of \d+\]\s*$")


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        dialogue = convert_normalized(value, INFO)
    else:
        row = required(value, "DialogueID", "CompletionLevel", "Events", "Scenario")
        dialogue = convert_normalized(_normalized(row), INFO)
    instructions = [
        {**note, "text": _COUNTER.sub("", note["text"])}
        for note in dialogue.hidden.get("director", ())
    ]
    texts = tuple(dict.fromkeys(note["text"] for note in instructions))
    yield replace(
        dialogue,
        hidden={**dialogue.hidden, **({"director": instructions} if instructions else {})},
        group_keys=texts,
        split=dialogue.split if texts else "train",
        language="en",
    )


def _normalized(row: Mapping[str, Any]) -> dict[str, Any]:
    level = row["CompletionLevel"]
    if level != "Complete":
        raise Unfit("incomplete", f"the completion level is {str(level)[:40]!r}")
    events, scenario = row["Events"], row["Scenario"]
    if not isinstance(events, list) or not isinstance(scenario, Mapping):
        raise Unfit("no_conversation", "'Events' is not a list or 'Scenario' not an object")
    return {
        "id": f"star/{row['DialogueID']}",
        "goal": scenario.get("UserTask"),
        "happy": scenario.get("Happy"),
        "multitask": scenario.get("MultiTask"),
        "domains": scenario.get("Domains"),
        "worker": row.get("AnonymizedUserWorkerID"),
        "outcome": _answers(row.get("UserQuestionnaire")),
        "turns": [turn for turn in map(_turn, events) if turn],
    }


def _turn(event: Any) -> dict[str, Any] | None:
    """Return what was said or instructed; None = a query, a choice or another event."""
    if not isinstance(event, Mapping) or "Agent" not in event or "Action" not in event:
        raise Unfit("missing_role", "an entry of 'Events' has no 'Agent' or no 'Action'")
    role = _SPOKEN.get((event["Agent"], event["Action"]))
    return {"role": role, "text": event.get("Text")} if role else None


def _answers(questions: Any) -> dict[str, Any]:
    return {
        str(entry["Question"]): entry.get("Answer")
        for entry in questions or ()
        if isinstance(entry, Mapping) and "Question" in entry
    }


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and {"DialogueID", "Events", "Scenario"} <= value.keys()


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, splits_lists=False, files=FILES)
