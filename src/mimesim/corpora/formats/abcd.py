"""ABCD, Action-Based Conversations Dataset: customers of an invented shop and its agents (MIT).

    {"train": [{"convo_id", "scenario": {"personal", "order", "product", "flow", "subflow"},
                "original": [[speaker, text]], "delexed": [{"targets", …}]}], "dev": …, "test": …}

The sample file is a bare list of such rows. The customer is learnt. The scenario (whose order
record keeps `products` as the text it is), the agent's buttons and the words that a pressed button
put on the screen are hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Unfit
from mimesim.corpora.formats.chats import required
from mimesim.corpora.formats.layout import with_part
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized

INFO = CorpusInfo(
    name="abcd",
    license="MIT",
    redistributable="yes",
    training_allowed="yes",
    citation="Chen et al. (2021), Action-Based Conversations Dataset, arXiv 2104.00783",
    moderated=True,
)

_ROLES = {"customer": "user", "agent": "agent", "action": "action"}
_STEP, _BUTTON, _VALUES = 1, 2, 3  # places in the list `targets` of a turn


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    row = value if is_normalized(value) else _normalized(required(value, "convo_id", "original"))
    yield replace(convert_normalized(row, INFO), language="en")


def _normalized(row: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(row["original"], list):
        raise Unfit("no_conversation", "no conversation here: 'original' is not a list")
    return {
        "id": f"abcd/{row['convo_id']}",
        "split": row.get("part"),
        "scenario": row.get("scenario"),
        "turns": [_turn(entry) for entry in row["original"]],
        "actions": _buttons(row.get("delexed")),
    }


def _turn(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, list) or len(entry) != 2:
        raise Unfit("missing_role", "an entry of 'original' is no pair of speaker and text")
    speaker, text = entry
    role = _ROLES.get(speaker.strip().lower()) if isinstance(speaker, str) else None
    if role is None:
        raise Unfit("unknown_role", f"the speaker {str(speaker)[:40]!r} of 'original'")
    return {"role": role, "text": text}


def _buttons(delexed: Any) -> list[dict[str, Any]]:
    """Return the buttons that the agent pressed, in order, with what was filled in."""
    turns = [turn for turn in delexed or () if isinstance(turn, Mapping)]
    targets = [turn.get("targets") for turn in turns]
    return [
        {"button": target[_BUTTON], "values": target[_VALUES]}
        for target in targets
        if isinstance(target, list) and len(target) > _VALUES and target[_STEP] == "take_action"
    ]


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and "convo_id" in value and "original" in value


FORMAT = Format(
    info=INFO,
    convert=_convert,
    claims=_claims,
    gather=with_part,
    files=("abcd_v1.0.json", "abcd_v1.1.json", ".jsonl"),
)
