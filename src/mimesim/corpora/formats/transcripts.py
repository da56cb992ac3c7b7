"""Lists of messages with all that happened in them: tool calls, results, reasoning of either side.

`chats` reads what two people said; here a conversation stays whole, for episodes. The shapes of
OpenAI, ShareGPT, tau2, verifiers and Inspect are told apart by the keys of each message:

    {"role", "content", "tool_calls": [{"id", "function": {"name", "arguments"}}]}
    {"from": "function_call" | "observation", "value"}
    {"role", "content", "tool_calls": [{"id", "name", "arguments", "requestor"}]}
    {"role", "content": [{"type": "reasoning", …}], "tool_calls": [{"id", "function", "arguments"}]}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from mimesim import jsonio
from mimesim.corpora.base import Unfit
from mimesim.corpora.formats.chats import SIDES, SILENT, SYSTEM, message_of, text_of
from mimesim.dialogue.thinking import is_blank, split
from mimesim.dialogue.types import PublicMessage, Role, Thought, ToolCall

_ROLES = {"user": Role.USER, "agent": Role.AGENT}
_ID = "call_{}"
"""How calls without an id are named, by their place."""


class Transcript(NamedTuple):
    """A conversation taken apart.

    Attributes:
        system: what the agent was told at the start.
        reasoning: place of a message -> what its side thought.
    """

    messages: tuple[PublicMessage, ...]
    system: str
    reasoning: Mapping[int, Thought]


def read_transcript(messages: Any, key: str) -> Transcript:
    """Read a list of messages; those without text and calls are left out.

    Args:
        messages: the value under `key`.
        key: what the list is called, for messages.

    Raises:
        Unfit: as `chats.read_chat`, or `bad_call`.
    """
    if not isinstance(messages, list):
        raise Unfit("no_conversation", f"no conversation here: {key!r} is not a list")
    system: list[str] = []
    found: list[PublicMessage] = []
    reasoning: dict[int, Thought] = {}
    open_calls: list[ToolCall] = []
    for entry in _flat(messages):
        role, content = message_of(entry, key)
        if role in SYSTEM:
            system.append(text_of(content, key, Counter()) or "")
            continue
        if role in SILENT and role != "function_call":
            found.append(_result(entry, content, key, open_calls))
            continue
        if role == "function_call":
            calls = _written_calls(content, len(found))
            message, thought = PublicMessage(Role.AGENT, "", calls), None
        else:
            message, thought = _said(entry, role, content, key)
        message = _with_ids(message, len(found))
        if is_blank(message.content) and not message.tool_calls:
            continue
        open_calls += message.tool_calls
        if thought:
            reasoning[len(found)] = thought
        found.append(message)
    return Transcript(tuple(found), "\n\n".join(filter(None, system)), reasoning)


def _flat(messages: list[Any]) -> Iterator[Any]:
    """Yield the messages; several results in one are taken apart."""
    for entry in messages:
        several = entry.get("tool_messages") if isinstance(entry, Mapping) else None
        yield from several if isinstance(several, list) else [entry]


def _said(
    entry: Mapping[str, Any], role: str, content: Any, key: str
) -> tuple[PublicMessage, Thought | None]:
    parts = content if isinstance(content, list) else []
    told = [
        str(part.get("reasoning", ""))
        for part in parts
        if isinstance(part, Mapping) and part.get("type") == "reasoning"
    ]
    ours = entry.get("raw_data")  # where our own export to tau2 puts a thought
    inner = ours.get("mimesim") if isinstance(ours, Mapping) else None
    kept = inner.get("thought") if isinstance(inner, Mapping) else None
    for text in (entry.get("reasoning_content"), kept):
        told += [text] if isinstance(text, str) and text else []
    taken = split(text_of(content, key, Counter()) or "")
    told += [taken.thought.reveal()] if taken.thought else []
    side = _ROLES[SIDES[role]]
    calls = tuple(_call(call, side) for call in entry.get("tool_calls") or ())
    text = "" if is_blank(taken.text) else taken.text
    return PublicMessage(side, text, calls), Thought("\n\n".join(told)) if told else None


def _call(value: Any, side: Role) -> ToolCall:
    """Read a call in any of the shapes.

    Raises:
        Unfit: `bad_call`, without a name.
    """
    value = value if isinstance(value, Mapping) else {}
    function = value.get("function")
    inner = function if isinstance(function, Mapping) else value
    name = function if isinstance(function, str) else inner.get("name")
    if not isinstance(name, str):
        raise Unfit("bad_call", "a call without a name")
    arguments = value.get("parse_error") or inner.get("arguments") or {}
    text = arguments if isinstance(arguments, str) else jsonio.dumps(arguments)
    owner = {"user": Role.USER, "assistant": Role.AGENT}.get(str(value.get("requestor")), side)
    return ToolCall(str(value.get("id") or ""), name, text, owner)


def _written_calls(content: Any, place: int) -> tuple[ToolCall, ...]:
    """Read the calls of a ShareGPT turn: one object, or a list of them, as JSON text.

    Raises:
        Unfit: `bad_call`.
    """
    try:
        value = jsonio.loads(content) if isinstance(content, str) else content
    except ValueError as error:
        raise Unfit("bad_call", "a call that is no JSON") from error
    return tuple(_call(one, Role.AGENT) for one in (value if isinstance(value, list) else [value]))


def _with_ids(message: PublicMessage, place: int) -> PublicMessage:
    if all(call.id for call in message.tool_calls):
        return message
    calls = tuple(
        replace(call, id=call.id or _ID.format(f"{place}_{number}"))
        for number, call in enumerate(message.tool_calls)
    )
    return replace(message, tool_calls=calls)


def _result(
    entry: Mapping[str, Any], content: Any, key: str, open_calls: list[ToolCall]
) -> PublicMessage:
    """Read the result of a call; without an id it belongs to the oldest call that has none yet."""
    known = entry.get("tool_call_id") or entry.get("id")
    call = next((c for c in open_calls if c.id == known), None) if known else None
    if call is None and not known and open_calls:
        call = open_calls[0]
    if call is not None:
        open_calls.remove(call)
    owner = {"user": Role.USER, "assistant": Role.AGENT}.get(str(entry.get("requestor")))
    return PublicMessage(
        Role.TOOL,
        text_of(content, key, Counter()) or "",
        tool_call_id=str(known) if known else call.id if call else None,
        name=call.name if call else None,
        owner=owner or (call.owner if call else Role.AGENT),
    )
