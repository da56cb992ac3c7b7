"""What a foreign agent may return, read as one move: text, message, messages, parts, objects.

Contents become strings here or are refused by name; no placeholder ever stands in for what has no
text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim.dialogue import thinking
from mimesim.dialogue.types import Role, ToolCall
from mimesim.envs.actions import read_tool_calls
from mimesim.envs.base import AgentAction, AgentMove, GymSpec
from mimesim.errors import AgentError

_TEXT_PARTS = ("text", "output_text", "input_text")


def read_answer(answer: Any, spec: GymSpec) -> AgentMove:
    """Read what a callable returned: text, message, messages, parts, or an object with content.

    Raises:
        AgentError: it holds no text and no call, but something else.
    """
    if isinstance(answer, AgentMove):
        return answer
    if isinstance(answer, AgentAction):
        return AgentMove(answer.content, action=answer)
    if isinstance(answer, list) and answer and all(_is_message(entry) for entry in answer):
        spoken = [m for m in answer if m.get("role") == "assistant" and _says_something(m)]
        answer = spoken[-1] if spoken else None
    content, calls = _content_and_calls(answer)
    parts = thinking.split_agent(_plain(content))
    if calls:
        return AgentMove(parts.text, action=read_tool_calls(calls, spec), reasoning=parts.reasoning)
    return AgentMove(parts.text, reasoning=parts.reasoning)


def _is_message(entry: Any) -> bool:
    return isinstance(entry, Mapping) and "role" in entry


def _says_something(message: Mapping[str, Any]) -> bool:
    return bool(message.get("content") or message.get("tool_calls"))


def _content_and_calls(answer: Any) -> tuple[Any, tuple[ToolCall, ...]]:
    if answer is None or isinstance(answer, str | list):
        return answer, ()
    if isinstance(answer, Mapping):
        return answer.get("content"), _calls(answer.get("tool_calls"))
    try:
        content = answer.content
    except AttributeError:
        raise AgentError(f"the agent returned {type(answer).__name__}, which is no text") from None
    return content, ()


def _calls(value: Any) -> tuple[ToolCall, ...]:
    found = []
    for entry in value or ():
        function = entry.get("function", {}) if isinstance(entry, Mapping) else {}
        name, arguments = function.get("name"), function.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, str):
            raise AgentError("the agent returned a tool call without name and arguments")
        found.append(ToolCall(str(entry.get("id", "call")), name, arguments, Role.AGENT))
    return tuple(found)


def _plain(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise AgentError(f"the agent's content is {type(content).__name__}, which is no text")
    words = [part if isinstance(part, str) else _part_text(part) for part in content]
    text = "\n".join(word for word in words if word is not None)
    if not text and content:
        raise AgentError(f"{_part_kind(content[0])} content without text")
    return text


def _part_text(part: Any) -> str | None:
    if isinstance(part, Mapping) and part.get("type") in _TEXT_PARTS:
        return str(part.get("text", ""))
    return None


def _part_kind(part: Any) -> str:
    kind = str(part.get("type", "unknown")) if isinstance(part, Mapping) else type(part).__name__
    return kind.removeprefix("input_").removeprefix("output_").removesuffix("_url")
