"""IAI MovieBot: people who talk to a program that recommends films (Apache-2.0).

[{"conversation_id", "agent", "user", "conversation": [{"participant": "USER", "utterance",
  "dialogue_acts": […]}]}]
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
    name="moviebot",
    license="Apache-2.0",
    redistributable="yes",
    training_allowed="yes",
    citation="Afzali et al. (2023), UserSimCRS: A User Simulation Toolkit for Evaluating "
    "Conversational Recommender Systems, arXiv 2301.05544",
    moderated=False,
)

_ROLES = {"user": "user", "agent": "agent"}


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    row = value if is_normalized(value) else _normalized(value)
    yield replace(convert_normalized(row, INFO), language="en")


def _normalized(value: Any) -> dict[str, Any]:
    row = required(value, "conversation_id", "conversation")
    name = str(row["conversation_id"]).strip().strip('"')  # ids were quoted once too often
    return {
        "id": f"moviebot/{name}",
        "turns": speech(
            row["conversation"],
            "conversation",
            speaker="participant",
            text="utterance",
            roles=_ROLES,
        ),
    }


def _claims(value: Any) -> bool:
    talk = value.get("conversation") if isinstance(value, Mapping) else None
    if not isinstance(talk, list) or "conversation_id" not in value:
        return False
    return bool(talk) and isinstance(talk[0], Mapping) and "participant" in talk[0]


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, files=(".json", ".jsonl"))
