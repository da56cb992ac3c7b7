"""Taskmaster 1 to 4: task dialogues after written instructions (CC BY 4.0).

    [{"conversation_id", "instruction_id", "utterances": [{"index", "speaker": "USER", "text"}]}]
    [{"conversation_id", "vertical", "scenario", "instructions", "utterances": [{"speaker": "user"}]}]

The first shape is that of 1 and 2, the second that of 3 and 4. Many were written by one person who
played both sides. Dialogues after the same instructions stay together in a split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue
from mimesim.corpora.formats.chats import required
from mimesim.corpora.formats.layout import speech
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized

INFO = CorpusInfo(
    name="taskmaster",
    license="CC BY 4.0",
    redistributable="yes",
    training_allowed="yes",
    citation="Byrne et al. (2019), Taskmaster-1: Toward a Realistic and Diverse Dialog Dataset, "
    "arXiv 1909.05358, and its successors; part 4: arXiv 2403.10704",
    moderated=True,
)

_ROLES = {"user": "user", "assistant": "agent"}
_KEPT = ("instruction_id", "vertical", "scenario", "instructions")
_GROUPS = ("instruction_id", "instructions", "scenario")


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    row = value if is_normalized(value) else _normalized(value)
    dialogue = convert_normalized(row, INFO)
    shared = next((str(row[key]) for key in _GROUPS if row.get(key)), "")
    yield replace(dialogue, group_keys=(shared,) if shared else (), language="en")


def _normalized(value: Any) -> dict[str, Any]:
    row = required(value, "conversation_id", "utterances")
    utterances = row["utterances"]
    return {
        "id": f"taskmaster/{row['conversation_id']}",
        **{key: row[key] for key in _KEPT if row.get(key)},
        "turns": speech(utterances, "utterances", speaker="speaker", text="text", roles=_ROLES),
    }


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and {"conversation_id", "utterances"} <= value.keys()


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, files=(".json", ".jsonl"))
