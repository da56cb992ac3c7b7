"""What a foreign agent may return, read as one move: text, message, messages, parts, objects.

Contents become strings here or are refused by name; no placeholder ever stands in for what has no
text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim.dialogue import thinking
from mimesim.dialogue.types import PublicMessage, Role, ToolCall
from mimesim.envs.actions import read_tool_calls
from mimesim.envs.base import AgentAction, AgentEnd, AgentMove, Choice, GymSpec
from mimesim.envs.load import NO_GYM
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
    if isinstance(answer, AgentEnd):
        return _ending(answer, spec)
    if spec.name == NO_GYM:
        return _talk(answer)
    if isinstance(answer, list) and answer and all(_is_message(entry) for entry in answer):
        spoken = [m for m in answer if m.get("role") == "assistant" and _says_something(m)]
        answer = spoken[-1] if spoken else None
    content, calls = _content_and_calls(answer)
    parts = thinking.split_agent(_plain(content))
    if calls:
        return AgentMove(parts.text, action=read_tool_calls(calls, spec), reasoning=parts.reasoning)
    return AgentMove(parts.text, reasoning=parts.reasoning)


def _ending(answer: AgentEnd, spec: GymSpec) -> AgentMove:
    """Read the end that an agent declares; it is a field, so no text of it can be taken for one."""
    if spec.name != NO_GYM:
        raise AgentError(f"the agent ended the conversation, and gym {spec.name!r} has its own end")
    text = thinking.split_agent(_plain(answer.text)).text.strip()
    if thinking.is_blank(text):
        raise AgentError("the agent ended the conversation without last words")
    return AgentMove(text, action=AgentAction(Choice.ACTION, text, ends=True))


def _talk(answer: Any) -> AgentMove:
    """Read an answer where there is nothing to act on: its calls went to tools of the agent's own.

    Everything it says is heard as one message, calls and results are its activity; the record has
    all of it in order. Of a list that repeats the conversation, what follows the user's last words
    is the answer.
    """
    several = isinstance(answer, list) and answer and all(_is_message(entry) for entry in answer)
    messages: list[Any] = answer if several else [answer]
    heard = [place for place, m in enumerate(messages) if several and m.get("role") == "user"]
    said, done, reasoning = [], [], []
    for message in messages[heard[-1] + 1 if heard else 0 :]:
        role = message.get("role") if several else "assistant"
        if role == "tool":
            done.append(_tool_result(message))
        elif role == "assistant":
            content, calls = _content_and_calls(message)
            parts = thinking.split_agent(_plain(content))
            words = [] if thinking.is_blank(parts.text) else [parts.text]
            said += words
            reasoning += [parts.reasoning] if parts.reasoning else []
            done += [PublicMessage(Role.AGENT, text) for text in words]
            done += [PublicMessage(Role.AGENT, "", calls)] if calls else []
    spoken = [place for place, m in enumerate(done) if m.role is Role.AGENT and m.content]
    return AgentMove(
        "\n\n".join(said),
        reasoning="\n\n".join(reasoning),
        activity=tuple(m for place, m in enumerate(done) if place not in spoken[-1:]),
        last=said[-1] if len(said) > 1 else None,
    )


def _tool_result(message: Mapping[str, Any]) -> PublicMessage:
    known, name = message.get("tool_call_id"), message.get("name")
    return PublicMessage(
        Role.TOOL,
        _plain(message.get("content")),
        tool_call_id=None if known is None else str(known),
        name=None if name is None else str(name),
        owner=Role.AGENT,
    )


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
