"""LMSYS-Chat-1M: real chats with 25 models of 2023, under an agreement of its own.

    {"conversation_id", "model", "conversation": [{"role", "content"}], "turn", "language",
     "openai_moderation": [{"categories", "category_scores", "flagged"}], "redacted"}

Unsafe chats are in it, flagged here as `toxic` where the moderation of one message says so. Nobody
may hand the texts on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue
from mimesim.corpora.formats.chats import is_chat, plain, read_chat, required
from mimesim.corpora.formats.languages import language_code
from mimesim.corpora.formats.normalized import convert_normalized, identity, is_normalized

INFO = CorpusInfo(
    name="lmsys",
    license="LMSYS-Chat-1M Dataset License Agreement",
    redistributable="no",
    training_allowed="unknown",
    citation="Zheng et al. (2023), LMSYS-Chat-1M: A Large-Scale Real-World LLM Conversation "
    "Dataset, arXiv 2309.11998",
    moderated=False,
)


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    row = required(value, "conversation_id", "conversation", "model")
    chat = read_chat(row["conversation"], "conversation")
    flags = (("toxic", _is_flagged(row)), ("redacted", row.get("redacted") is True))
    return [
        HumanDialogue(
            id=f"lmsys/{identity(row['conversation_id'])}",
            turns=chat.turns,
            source=INFO.name,
            context=chat.system,
            hidden=plain(row, "model"),
            flags=tuple(name for name, holds in flags if holds),
            language=language_code(row.get("language")),
            left_out=chat.left_out,
        )
    ]


def _is_flagged(row: Mapping[str, Any]) -> bool:
    found = row.get("openai_moderation")
    verdicts = found if isinstance(found, list) else []
    return any(isinstance(one, Mapping) and one.get("flagged") is True for one in verdicts)


def _claims(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and is_chat(value.get("conversation"), "role")
        and {"conversation_id", "model"} <= value.keys()
        and "toxic" not in value
    )


FORMAT = Format(info=INFO, convert=_convert, claims=_claims)
