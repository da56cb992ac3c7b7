"""SGD, Schema-Guided Dialogue: people's wording of outlines that a program made (CC BY-SA 4.0).

    [{"dialogue_id", "services": […], "turns": [{"speaker": "USER", "utterance", "frames": […]}]}]

Dialogue numbers repeat in every part, so the part (`train`, `dev`, `test`, the folder's name) is in
the id. What the user wanted in the end, per service, is hidden. Files of schemas are no dialogues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue
from mimesim.corpora.formats.chats import required
from mimesim.corpora.formats.layout import named, speech, with_part
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized

INFO = CorpusInfo(
    name="sgd",
    license="CC BY-SA 4.0",
    redistributable="share-alike",
    training_allowed="yes",
    citation="Rastogi et al. (2020), Towards Scalable Multi-domain Conversational Agents: The "
    "Schema-Guided Dialogue Dataset, arXiv 1909.05855",
    moderated=True,
)

ROLES = {"user": "user", "system": "agent"}
FILES = (*(f"{digit}.json" for digit in range(10)), ".jsonl")
"""Endings of `dialogues_001.json` and of normalized files, not of `schema.json`."""


def framed(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return a dialogue of utterances with frames in the normalized shape; MultiWOZ 2.2 has them too.

    Raises:
        Unfit: as `layout.speech`.
    """
    turns = row["turns"]
    part = row.get("part")
    return {
        "id": named((prefix, part, row["dialogue_id"])),
        "split": part,
        "services": row.get("services"),
        "wanted": _wanted(turns),
        "turns": speech(turns, "turns", speaker="speaker", text="utterance", roles=ROLES),
    }


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    row = value if is_normalized(value) else framed(required(value, "dialogue_id", "turns"), "sgd")
    yield replace(convert_normalized(row, INFO), language="en")


def _wanted(turns: Any) -> dict[str, Any] | None:
    """Return the last slot values per service that the annotated state of the user gives."""
    found: dict[str, Any] = {}
    for turn in turns if isinstance(turns, list) else ():
        frames = turn.get("frames") if isinstance(turn, Mapping) else None
        for frame in frames or ():
            state = frame.get("state") if isinstance(frame, Mapping) else None
            if isinstance(state, Mapping) and state.get("slot_values"):
                found[str(frame.get("service"))] = state["slot_values"]
    return found or None


def _claims(value: Any) -> bool:
    return is_framed(value) and "services" in value


def is_framed(value: Any) -> bool:
    """Tell whether a raw value is a dialogue of utterances with frames, by its keys."""
    turns = value.get("turns") if isinstance(value, Mapping) else None
    if not isinstance(turns, list) or not turns or "dialogue_id" not in value:
        return False
    return isinstance(turns[0], Mapping) and {"speaker", "utterance", "frames"} <= turns[0].keys()


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, gather=with_part, files=FILES)
