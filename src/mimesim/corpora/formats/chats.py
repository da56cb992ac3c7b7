"""Lists of messages between a person and a model: the reader that the chat formats share.

    [{"role": "user", "content": "…"}, {"role": "assistant", "content": [{"type": "text", …}]}]
    [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}]

Which of the two it is, the keys of each message tell. Text parts are joined by a line feed; other
parts, tools and messages without text are counted and left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mimesim.corpora.base import OTHER, HumanTurn, Side, Unfit

SIDES: Mapping[str, Side] = {
    "user": "user",
    "human": "user",
    "agent": "agent",
    "assistant": "agent",
    "gpt": "agent",
    "chatgpt": "agent",
}
SYSTEM = ("system", "developer")
SILENT = ("tool", "function", "function_call", "observation")
_LABELS: Mapping[Side, str] = {"user": "You", "agent": "They"}
_KEYS = (("role", "content"), ("from", "value"), ("role", "text"))
_DEEPEST = 64  # levels of a value that is kept


class Chat(NamedTuple):
    """A list of messages taken apart: what was said, what the model was told, what is missing."""

    turns: tuple[HumanTurn, ...]
    system: str
    left_out: Mapping[str, int]


def read_chat(messages: Any, key: str, *, swapped: bool = False) -> Chat:
    """Return the turns of a list of messages, untidied.

    Args:
        messages: the value under `key`.
        key: what the list is called, for messages.
        swapped: whether the person stands on the side that is called assistant.

    Raises:
        Unfit: `no_conversation`, `missing_role`, `unknown_role`, `bad_text`.
    """
    if not isinstance(messages, list):
        raise Unfit("no_conversation", f"no conversation here: {key!r} is not a list")
    counts: Counter[str] = Counter()
    turns, system = [], []
    for message in messages:
        role, content = message_of(message, key)
        text = text_of(content, key, counts)
        if role in SYSTEM:
            system.append(text or "")
        elif role in SILENT or text is None:
            counts["messages_left_out"] += 1
        else:
            side = SIDES[role]
            turns.append(HumanTurn(OTHER[side] if swapped else side, text))
    return Chat(tuple(turns), joined(system), dict(+counts))


def is_chat(messages: Any, role: str) -> bool:
    """Tell whether a value is a list of messages whose first one has the key `role`."""
    if not isinstance(messages, list):
        return False
    return not messages or (isinstance(messages[0], Mapping) and role in messages[0])


def required(value: Any, *keys: str) -> Mapping[str, Any]:
    """Return `value` if it is an object that has all of `keys`.

    Raises:
        Unfit: `missing_keys`, naming them.
    """
    if not isinstance(value, Mapping):
        raise Unfit("missing_keys", f"a {type(value).__name__} instead of an object")
    missing = [key for key in keys if key not in value]
    if missing:
        raise Unfit("missing_keys", ", ".join(missing))
    return value


def fold(turns: Iterable[HumanTurn]) -> str:
    """Return turns as one text, from the side of the person who is learnt."""
    return joined(f"{_LABELS[turn.role]}: {turn.text.strip()}" for turn in turns)


def joined(texts: Iterable[str]) -> str:
    """Join texts by a blank line, leaving out empty ones."""
    return "\n\n".join(text.strip() for text in texts if text.strip())


def stripped(value: Any) -> str:
    """Return a text without the blanks around it; an empty one for whatever is no text."""
    return value.strip() if isinstance(value, str) else ""


def plain(value: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return those of `keys` that hold something, as JSON values."""
    return {key: as_json(value[key]) for key in keys if value.get(key) not in (None, "", [], {})}


def as_json(value: Any, depth: int = 0) -> Any:
    """Return a value of a table or a document as one of JSON: times and bytes become text.

    Raises:
        Unfit: `too_deep`, nested beyond what anything here means; `depth` is that of `value`.
    """
    if depth > _DEEPEST:
        raise Unfit("too_deep", f"values nested more than {_DEEPEST} times")
    if isinstance(value, Mapping):
        return {str(key): as_json(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner, depth + 1) for inner in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def text_of(content: Any, key: str, counts: Counter[str]) -> str | None:
    """Return the text of a message; None = it has none, e.g. a tool call or a picture.

    Parts that are no text are added to `counts` as `parts_left_out`.

    Raises:
        Unfit: `bad_text`, neither text nor a list of parts.
    """
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Unfit("bad_text", f"a text of {key!r} is of the type {type(content).__name__}")
    texts = []
    for part in content:
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            texts.append(text)
        else:
            counts["parts_left_out"] += 1
    return "\n".join(texts) if texts else None


def message_of(message: Any, key: str) -> tuple[str, Any]:
    """Return role, in lower case, and content of one message.

    Raises:
        Unfit: `missing_role`, `unknown_role`.
    """
    if isinstance(message, Mapping):
        for role, text in _KEYS:
            if isinstance(message.get(role), str) and (text in message or role == "from"):
                return _known(message[role], key), message.get(text)
        if isinstance(message.get("role"), str):  # e.g. a tool call without any content
            return _known(message["role"], key), None
    raise Unfit("missing_role", f"an entry of {key!r} has no 'role'")


def _known(role: str, key: str) -> str:
    name = role.strip().lower()
    if name not in SIDES and name not in SYSTEM and name not in SILENT:
        raise Unfit("unknown_role", f"the role {role[:40]!r} of {key!r}")
    return name
