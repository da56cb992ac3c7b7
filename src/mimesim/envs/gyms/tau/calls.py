"""Reading a call of a tool: JSON, a name before JSON, or the words of the line grammar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim import jsonio
from mimesim.envs.gyms.tau.domain import Call, Tool
from mimesim.envs.turns.law import BadAction
from mimesim.errors import DataError
from mimesim.models.structured import parse_object

RESPOND = "respond"
"""Name under which the originals talk to the customer; no tool here."""
_ACT = "act "
_FORM = 'write {"name": ..., "arguments": {...}}, or a name, a colon and the arguments as JSON'


def read_call(content: str, tools: Mapping[str, Tool]) -> Call:
    """Read a call strictly.

    Args:
        content: `{"name": ..., "arguments": {...}}`, `name: {...}`, or after the word `act` also
            `name argument value argument value`.
        tools: by name.

    Raises:
        BadAction: it cannot be read, or does not fit the tool.
    """
    text = content.strip()
    text = text[len(_ACT) :].strip() if _acts(text) else text
    if is_short(content):
        return _fitting(_from_words(text, tools), tools)
    name, arguments = _name_and_arguments(text)
    if isinstance(arguments, str):
        arguments = _object(arguments)
    if not isinstance(arguments, dict):
        raise BadAction(f"the arguments are no JSON object; {_FORM}")
    return _fitting(Call(name, arguments), tools)


def is_short(content: str) -> bool:
    """Tell whether a call is written in the words of the line grammar."""
    return _acts(content.strip()) and "{" not in content


def read_call_as_userrl(content: str, tools: Mapping[str, Tool]) -> Call:
    """Read a call as the original does: `respond` is one, and arguments are left to the tool.

    Raises:
        BadAction: it cannot be read, or there is no such tool.
    """
    name, arguments = _name_and_arguments(content.strip())
    if not isinstance(arguments, dict):
        raise BadAction(f"this is no call of a tool; {_FORM}")
    if name != RESPOND and name not in tools:
        raise BadAction(f"there is no tool {name[:40]!r}")
    if name == RESPOND and not isinstance(arguments.get("content"), str):
        raise BadAction(f"{RESPOND} needs content")
    return Call(name, arguments)


def spelled(call: Call) -> str:
    """Return a call in the line grammar; its values must be texts without line breaks."""
    parts = [f"{name} {value}" for name, value in call.arguments.items()]
    return " ".join([f"{_ACT}{call.tool}", *parts])


def written(call: Call) -> str:
    """Return a call as JSON."""
    return jsonio.dumps(call.to_json())


def _acts(text: str) -> bool:
    return text[: len(_ACT)].lower() == _ACT


def _name_and_arguments(text: str) -> tuple[str, Any]:
    if text.startswith("{"):
        value = _object(text)
        name = value.get("name")
        if not isinstance(name, str):
            raise BadAction(f"the call names no tool; {_FORM}")
        return name.strip(), value.get("arguments")
    name, colon, rest = text.partition(":")
    if not colon:
        raise BadAction(f"this is no call of a tool; {_FORM}")
    return name.strip(), _object(rest)


def _object(text: str) -> dict[str, Any]:
    """Read JSON that stands alone; what would have to be mended or searched for is refused."""
    try:
        found = parse_object(text.strip())
    except DataError as error:
        raise BadAction(f"the JSON of the call cannot be read; {_FORM}") from error
    if found.tier != 1:
        raise BadAction(f"the JSON of the call cannot be read; {_FORM}")
    return found.value


def _from_words(text: str, tools: Mapping[str, Tool]) -> Call:
    name, *words = text.split() or [""]
    if name not in tools:
        raise BadAction(f"there is no tool {name[:40]!r}")
    known = tools[name].names
    arguments: dict[str, str] = {}
    at = ""
    for word in words:
        if word in known and word not in arguments and (not at or arguments[at]):
            at = word
            arguments[at] = ""
        elif not at:
            raise BadAction(f"{name} has no argument {word[:40]!r}")
        else:
            arguments[at] = f"{arguments[at]} {word}".strip()
    empty = [key for key, value in arguments.items() if not value]
    if empty:
        raise BadAction(f"the argument {empty[0]!r} has no value")
    return Call(name, arguments)


def _fitting(call: Call, tools: Mapping[str, Tool]) -> Call:
    if call.tool not in tools:
        raise BadAction(f"there is no tool {call.tool[:40]!r}")
    tool = tools[call.tool]
    unknown = [name for name in call.arguments if name not in tool.names]
    if unknown:
        raise BadAction(f"{call.tool} has no argument {unknown[0][:40]!r}")
    missing = [name for name in tool.required if name not in call.arguments]
    if missing:
        raise BadAction(f"{call.tool} needs the argument {missing[0]!r}")
    return call
