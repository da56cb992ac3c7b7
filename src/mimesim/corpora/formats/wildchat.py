"""WildChat, both releases: real chats with a model, one row each (ODC-BY).

    {"conversation_hash", "model", "conversation": [{"role", "content", "hashed_ip", …}], "language",
     "toxic", "redacted", "hashed_ip", …}

The first release has `conversation_id` and no addresses. What the source says against a text, of
the conversation or of one message, becomes a flag; a person is known by `hashed_ip`. Country,
state, browser and times are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Unfit
from mimesim.corpora.formats.chats import is_chat, plain, read_chat, required
from mimesim.corpora.formats.languages import language_code
from mimesim.corpora.formats.normalized import convert_normalized, identity, is_normalized

INFO = CorpusInfo(
    name="wildchat",
    license="ODC-BY 1.0",
    redistributable="yes",
    training_allowed="yes",
    citation="Zhao et al. (2024), WildChat: 1M ChatGPT Interaction Logs in the Wild, "
    "arXiv 2405.01470",
    moderated=False,
)

_FLAGS = ("toxic", "redacted")
_IDS = ("conversation_hash", "conversation_id")


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    row = required(value, "conversation", "model")
    name = next((identity(row[key]) for key in _IDS if row.get(key)), "")
    if not name:
        raise Unfit("missing_keys", " or ".join(_IDS))
    messages = row["conversation"]
    chat = read_chat(messages, "conversation")
    person = _person(row, messages)
    return [
        HumanDialogue(
            id=f"wildchat/{name}",
            turns=chat.turns,
            source=INFO.name,
            context=chat.system,
            hidden=plain(row, "model"),
            user_key=person,
            group_keys=(person,) if person else (),
            flags=tuple(
                flag for flag in _FLAGS if any(part.get(flag) is True for part in (row, *messages))
            ),
            language=language_code(row.get("language")),
            left_out=chat.left_out,
        )
    ]


def _person(row: Mapping[str, Any], messages: list[Mapping[str, Any]]) -> str:
    found = (part.get("hashed_ip") for part in (row, *messages))
    return next((identity(address) for address in found if address), "")


def _claims(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and is_chat(value.get("conversation"), "role")
        and "toxic" in value
        and any(key in value for key in _IDS)
    )


FORMAT = Format(info=INFO, convert=_convert, claims=_claims)
