"""From an agent's text to a typed action and back: the tool-call format and the line grammar.

The tool-call format is JSON of the tool `interact_with_env(choice, content)`, native or written
out as plain, fenced or tagged text; the tests are the table of its rules. The line grammar is
for tiny policies: `act ...` is an answer, every other line is said to the user. In the plain format
all that is written is said. What cannot be read
becomes an `AgentAction` with a `problem`; nothing is guessed, and a message with several calls
executes none of them. Gyms in compat mode ask for other readings (`GymSpec.lenient`, `multi_call`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from mimesim import jsonio, prompts
from mimesim.dialogue import thinking
from mimesim.dialogue.types import PublicMessage, Role, ToolCall
from mimesim.envs.base import AgentAction, AgentMove, Choice, GymSpec
from mimesim.errors import DataError
from mimesim.models.structured import balanced_objects, parse_object
from mimesim.registry import unknown_name
from mimesim.users.guards import clean

TOOL = "interact_with_env"
"""Name of the one tool that an agent calls."""
MAX_CONTENT = 8000
"""Longest content of one action, in characters."""
_TAG = re.compile(r"\s*\[\s*(action|answer|search|finish)\s*\]\s*", re.IGNORECASE)
_ORIGINAL = {one.value: one for one in (Choice.ACTION, Choice.ANSWER, Choice.SEARCH)}
"""The choices of the originals' tool; what else they are given they pass on as it is."""
_MEANING = {
    Choice.ACTION: "write to the person you are talking to",
    Choice.ANSWER: "act, or give the final answer",
    Choice.SEARCH: "look something up",
    Choice.FINISH: "end the task",
}


class ActionFormat(Protocol):
    """A way to write actions."""

    name: str

    def instructions(self, spec: GymSpec) -> str:
        """Return what a model must know to write actions of this gym."""
        ...

    def parse(self, move: AgentMove, spec: GymSpec) -> AgentAction:
        """Read the action of `move`; one that is already typed is returned as it is."""
        ...

    def render(self, action: AgentAction) -> str:
        """Write `action` so that `parse` reads it back."""
        ...

    def tool_schema(self, spec: GymSpec) -> tuple[Mapping[str, Any], ...]:
        """Return the tools to offer to a tool-calling model; empty = none."""
        ...


class ToolCallFormat:
    """One JSON tool call per turn (default)."""

    name = "tool-call"

    def instructions(self, spec: GymSpec) -> str:
        """Return the rules of the call and the allowed choices."""
        allowed = [choice.value for choice in _offered(spec)]
        return prompts.render(
            "agent/tool_call", tool=TOOL, choices=", ".join(allowed), choices_list=allowed
        )

    def parse(self, move: AgentMove, spec: GymSpec) -> AgentAction:
        """Read exactly one call from the text; none or several are a problem.

        Reasoning is taken out of the text first, also from inside a call that is written as text;
        in a native call a lenient gym gets it.
        """
        if move.action is not None:
            return _read_again(move.action, spec) if move.action.calls else move.action
        parts = thinking.split(move.text, finish_reason=move.finish_reason)
        found = _calls_in(parts.text)
        if not found:
            return _problem(spec, f"your message holds no call of {TOOL}")
        if len(found) > 1 and spec.multi_call == "reject":
            return _problem(spec, "your message holds several calls; none was carried out")
        return read_arguments(found[_place(spec)], spec)

    def render(self, action: AgentAction) -> str:
        """Write the plain JSON form."""
        return jsonio.dumps({"choice": action.choice.value, "content": action.content})

    def tool_schema(self, spec: GymSpec) -> tuple[Mapping[str, Any], ...]:
        """Return the schema of `interact_with_env` with the gym's own choices."""
        allowed = [choice.value for choice in _offered(spec)]
        meaning = "; ".join(f"{choice.value}: {_MEANING[choice]}" for choice in _offered(spec))
        properties = {
            "choice": {"type": "string", "enum": allowed, "description": meaning},
            "content": {"type": "string", "description": "the text of the choice"},
        }
        parameters = {
            "type": "object",
            "properties": properties,
            "required": ["choice", "content"],
        }
        function = {
            "name": TOOL,
            "description": "Take one step in the task.",
            "parameters": parameters,
        }
        return ({"type": "function", "function": function},)


class LineFormat:
    """One line per turn: `act ...` is an answer, anything else is said to the user.

    The content of an answer is the whole line, `act` included, as the compact grammar has it.
    """

    name = "line"

    def instructions(self, spec: GymSpec) -> str:
        """Return the two rules of the grammar."""
        return prompts.render("agent/line")

    def parse(self, move: AgentMove, spec: GymSpec) -> AgentAction:
        """Read the line; its first word tells the choice."""
        if move.action is not None:
            return move.action
        text = thinking.split(move.text, finish_reason=move.finish_reason).text.strip()
        head, _, rest = text.partition(" ")
        if head.lower() == "act":
            return _normalize(Choice.ANSWER.value, text, spec)
        return _normalize(Choice.ACTION.value, rest if head.lower() == "ask" else text, spec)

    def render(self, action: AgentAction) -> str:
        """Write the line; `ask` is put before words that would be read as something else."""
        first = action.content.partition(" ")[0].lower()
        if action.choice is Choice.ANSWER:
            return action.content if first == "act" else f"act {action.content}"
        return f"ask {action.content}" if first in ("act", "ask") else action.content

    def tool_schema(self, spec: GymSpec) -> tuple[Mapping[str, Any], ...]:
        """Return no tools."""
        return ()


class PlainFormat:
    """No actions: the whole message is said to the user (conversations without a gym)."""

    name = "plain"

    def instructions(self, spec: GymSpec) -> str:
        """Return the one rule."""
        return prompts.render("agent/plain")

    def parse(self, move: AgentMove, spec: GymSpec) -> AgentAction:
        """Take the public text as it stands."""
        if move.action is not None:
            return move.action
        text = thinking.split(move.text, finish_reason=move.finish_reason).text.strip()
        action = AgentAction(Choice.ACTION, text)
        reason = problem_of(action, spec)
        return _problem(spec, reason) if reason else action

    def render(self, action: AgentAction) -> str:
        """Write the words."""
        return action.content

    def tool_schema(self, spec: GymSpec) -> tuple[Mapping[str, Any], ...]:
        """Return no tools."""
        return ()


_FORMATS: dict[str, ActionFormat] = {
    f.name: f for f in (ToolCallFormat(), LineFormat(), PlainFormat())
}


def get_format(name: str) -> ActionFormat:
    """Return the action format called `name`: `tool-call`, `line` or `plain`.

    Raises:
        UnknownNameError: no such format.
    """
    if name not in _FORMATS:
        raise unknown_name("action format", name, sorted(_FORMATS))
    return _FORMATS[name]


def read_tool_calls(calls: Sequence[ToolCall], spec: GymSpec) -> AgentAction:
    """Read the native tool calls of one message; exactly one is allowed, see `GymSpec.multi_call`."""
    return replace(_read_native(calls, spec), calls=tuple(calls))


def _read_again(action: AgentAction, spec: GymSpec) -> AgentAction:
    """Read an action's native calls as its gym does, without characters that no file can hold."""
    again = read_tool_calls(action.calls, spec)
    return replace(again, content=clean(again.content)[0])


def _read_native(calls: Sequence[ToolCall], spec: GymSpec) -> AgentAction:
    if not calls or (len(calls) > 1 and spec.multi_call == "reject"):
        told = "no call" if not calls else "several calls; none was carried out"
        return _problem(spec, f"your message holds {told}")
    call = calls[_place(spec)]
    if call.name != TOOL:
        return _problem(spec, f"the only tool is {TOOL}", call.id)
    try:
        arguments = parse_object(call.arguments).value
    except DataError:
        return _problem(spec, "the arguments of the call are not a JSON object", call.id)
    return read_arguments(arguments, spec, call_id=call.id)


def read_arguments(
    arguments: Mapping[str, Any], spec: GymSpec, *, call_id: str | None = None
) -> AgentAction:
    """Read the two arguments of one call; for a lenient gym as the original of it reads them."""
    if spec.lenient:
        return _as_original(arguments, spec, call_id)
    missing = [key for key in ("choice", "content") if key not in arguments]
    if missing:
        return _problem(spec, f"the call lacks {' and '.join(missing)}", call_id)
    choice, content = arguments["choice"], arguments["content"]
    if not isinstance(choice, str):
        return _problem(spec, "choice is not a string", call_id)
    if isinstance(content, int | float) and not isinstance(content, bool):
        content = _number(content)
    if not isinstance(content, str):
        return _problem(spec, "content is not a string", call_id)
    return _normalize(choice, content, spec, call_id=call_id, ignored=len(arguments) - 2)


def problem_of(action: AgentAction, spec: GymSpec) -> str:
    """Tell why a gym must not execute `action`; empty = it may."""
    if action.problem:
        return action.problem
    if action.choice not in spec.choices:
        return f"{action.choice.value!r} is not a choice here"
    if thinking.is_blank(action.content):
        return "content is empty"
    if len(action.content) > MAX_CONTENT:
        return f"content is longer than {MAX_CONTENT} characters"
    return ""


def as_message(action: AgentAction, text: str = "") -> PublicMessage:
    """Return the agent's message of the public transcript.

    Args:
        action: what was read; words to the user become content, the rest a tool call.
        text: the public text as written, kept when the action could not be read.
    """
    if action.problem:
        return PublicMessage(Role.AGENT, text or action.content)
    if action.choice is Choice.ACTION:
        return PublicMessage(Role.AGENT, action.content)
    arguments = jsonio.dumps({"choice": action.choice.value, "content": action.content})
    call = ToolCall(action.call_id or "call", TOOL, arguments, Role.AGENT)
    return PublicMessage(Role.AGENT, "", tool_calls=(call,))


def _as_original(arguments: Mapping[str, Any], spec: GymSpec, call_id: str | None) -> AgentAction:
    """Read a call as the originals do: nothing is mended, and all that is text is passed on.

    The trainer makes text of everything and knows `finish`; the evaluator breaks off where it needs
    a text and has none.
    """
    trainer = spec.phase == "train"
    missing = [key for key in ("choice", "content") if key not in arguments]
    if missing and not trainer:
        return _problem(spec, f"the call lacks {' and '.join(missing)}", call_id)
    choice, content = str(arguments.get("choice", "")), arguments.get("content", "")
    known = _ORIGINAL.get(choice)
    if known is not None and not trainer and not isinstance(content, str):
        return _problem(spec, "content is not a string", call_id)
    text = str(content)
    ignored = len(arguments) - 2 + len(missing)
    if trainer and choice == Choice.FINISH.value:
        return AgentAction(Choice.FINISH, text, call_id, ignored_keys=ignored)
    if known is None:
        return AgentAction(Choice.ACTION, text, call_id, ignored_keys=ignored, raw=True)
    return AgentAction(known, text, call_id, ignored_keys=ignored)


def _offered(spec: GymSpec) -> tuple[Choice, ...]:
    """Return the choices that an agent is told of; the originals do not name `finish`."""
    if not spec.lenient:
        return spec.choices
    return tuple(choice for choice in spec.choices if choice is not Choice.FINISH)


def _place(spec: GymSpec) -> int:
    return -1 if spec.multi_call == "last" else 0


def _normalize(
    choice: str, content: str, spec: GymSpec, *, call_id: str | None = None, ignored: int = 0
) -> AgentAction:
    name = choice.strip().lower()
    if name not in {allowed.value for allowed in spec.choices}:
        return _problem(spec, f"{choice[:40]!r} is not a choice here", call_id)
    content = thinking.split(content).text.strip()
    tag = _TAG.match(content)
    if tag is not None:
        if tag.group(1).lower() != name:
            return _problem(spec, "content begins with the tag of another choice", call_id)
        content = content[tag.end() :]
    action = AgentAction(Choice(name), content, call_id, ignored_keys=ignored)
    reason = problem_of(action, spec)
    return _problem(spec, reason, call_id) if reason else action


def _problem(spec: GymSpec, reason: str, call_id: str | None = None) -> AgentAction:
    return AgentAction(spec.choices[0], "", call_id, problem=reason)


def _number(value: int | float) -> str | None:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def _calls_in(text: str) -> list[Mapping[str, Any]]:
    """Return the arguments of every call written in `text`."""
    found: list[Mapping[str, Any]] = []
    for piece in balanced_objects(text) or [text]:
        try:
            call = _as_call(parse_object(piece).value)
        except DataError:
            continue
        if call is not None:
            found.append(call)
    return found


def _as_call(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if value.get("name") == TOOL:
        arguments = value.get("arguments", value.get("parameters"))
        if isinstance(arguments, str):
            return parse_object(arguments).value
        return arguments if isinstance(arguments, Mapping) else {}
    return value if "choice" in value else None
