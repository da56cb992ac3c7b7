"""Lists of OpenAI messages, one conversation a line: `{"messages": [{"role", "content"}]}`.

`content` is text, nothing, or a list of parts. Texts of system and developer go to `context`, or
nowhere with the option `system = "drop"`; tools and messages without text are left out and
counted. Rows that call their list `conversations`, or their keys `from` and `value`, are read too:
the keys tell, not the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Unfit
from mimesim.corpora.formats.chats import is_chat, read_chat, stripped
from mimesim.corpora.formats.languages import language_code
from mimesim.corpora.formats.normalized import (
    as_outcome,
    convert_normalized,
    identity,
    is_normalized,
    split_of,
)

INFO = CorpusInfo(
    name="openai-messages",
    license="as its owner says",
    redistributable="no",
    training_allowed="unknown",
    citation="the owner of the conversations",
    moderated=False,
)

_LISTS = ("messages", "conversations", "conversation", "turns")
_IDS = ("id", "conversation_id", "conversation_hash")
_PEOPLE = ("user_key", "user_id")


def messages_of(value: Any) -> tuple[str, Any]:
    """Return the list of messages of a row and the key it stands under.

    Raises:
        Unfit: `no_conversation`.
    """
    for key in _LISTS:
        if isinstance(value, Mapping) and isinstance(value.get(key), list):
            return key, value[key]
    raise Unfit("no_conversation", "no conversation here: neither 'messages' nor 'turns'")


def convert_messages(value: Any, info: CorpusInfo, options: Mapping[str, Any]) -> HumanDialogue:
    """Return the dialogue of a row with a list of messages.

    Raises:
        Unfit: no such list, or a message without a known role.
    """
    key, messages = messages_of(value)
    chat = read_chat(messages, key)
    return HumanDialogue(
        id=next((identity(value[name]) for name in _IDS if value.get(name)), ""),
        turns=chat.turns,
        source=info.name,
        topic=stripped(value.get("topic")),
        context="" if options.get("system") == "drop" else chat.system,
        outcome=as_outcome(value.get("outcome")),
        user_key=next((identity(value[name]) for name in _PEOPLE if value.get(name)), ""),
        split=split_of(value.get("split")),
        language=language_code(value.get("language")),
        left_out=chat.left_out,
    )


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        return [convert_normalized(value, INFO)]
    return [convert_messages(value, INFO, options)]


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and any(
        is_chat(value.get(key), "role") for key in ("messages", "conversations")
    )


def raw_messages(value: Any) -> Any:
    """Return the messages of a row with all that is in them; None = it has turns only."""
    if is_normalized(value):
        return None
    told = [{"role": "system", "content": value.get("system")}]
    return [*(told if stripped(value.get("system")) else ()), *messages_of(value)[1]]


FORMAT = Format(
    info=INFO, convert=_convert, claims=_claims, options=("system",), messages=raw_messages
)
