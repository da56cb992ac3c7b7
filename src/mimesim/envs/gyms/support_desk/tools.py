"""The desk's tools: reading a call, and what the company's system answers to it.

Results are built by rule: match, no match, done or not permitted, plus the values a tool returns.
A change is not permitted while the customer is unverified, against the policy or against the
record; trying it is a violation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mimesim.envs.gyms.support_desk.case import Case
from mimesim.envs.gyms.support_desk.scoring import RESOLUTIONS, Call, canon
from mimesim.errors import DataError
from mimesim.models.structured import parse_object
from mimesim.scenarios.fields import field_name
from mimesim.scenarios.types import Manual, Tool

CLOSE = "close_case"
_CLOSE_SLOTS = ("resolution", "summary")


class BadCall(ValueError):
    """A call that cannot be carried out; the message tells the agent why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the system answers.

    Attributes:
        executed: whether the call was carried out (counts for the procedure).
        matched: identity fields that agreed with the record.
        returned: fields handed back, with their values.
        violation: why the attempt breaks the rules; empty = it does not.
    """

    text: str
    executed: bool
    matched: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    violation: str = ""


def describe_tools(manual: Manual) -> list[dict[str, Any]]:
    """Return the tools as an agent sees them, closing included."""
    tools = [
        {"name": tool.name, "summary": tool.summary, "slots": list(tool.slots)}
        for tool in manual.tools
    ]
    closing = "Closes the case; the last call: " + ", ".join(RESOLUTIONS) + "."
    return [*tools, {"name": CLOSE, "summary": closing, "slots": list(_CLOSE_SLOTS)}]


def read_call(content: str, manual: Manual) -> Call:
    """Read a call: a JSON object with name and arguments, or `name: {json}`.

    Raises:
        BadCall: it cannot be read, names no tool, or holds an argument the tool does not have.
    """
    text = content.strip()
    if text[:4].lower() == "act ":
        text = text[4:].strip()
    name, raw = _name_and_arguments(text)
    known = {tool.name: tool.slots for tool in manual.tools} | {CLOSE: _CLOSE_SLOTS}
    if name not in known:
        raise BadCall(f"there is no tool {name[:40]!r}")
    arguments: dict[str, str] = {}
    for slot, value in raw.items():
        if slot not in known[name]:
            raise BadCall(f"{name} has no argument {str(slot)[:40]!r}")
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise BadCall(f"argument {slot!r} is not a text")
        arguments[slot] = str(value)
    if not any(canon(value) for value in arguments.values()):
        raise BadCall(f"{name} needs an argument: {', '.join(known[name])}")
    if name == CLOSE and canon(arguments.get("resolution", "")) not in RESOLUTIONS:
        raise BadCall(f"resolution is one of {', '.join(RESOLUTIONS)}")
    return Call(name, arguments)


def _name_and_arguments(text: str) -> tuple[str, Mapping[str, Any]]:
    try:
        if text.startswith("{"):
            outer = parse_object(text).value
            name, arguments = outer.get("name"), outer.get("arguments", {})
        else:
            name, _, rest = text.partition(":")
            arguments = parse_object(rest).value
        if isinstance(arguments, str):
            arguments = parse_object(arguments).value
    except DataError:
        raise BadCall("a tool call is JSON with name and arguments") from None
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        raise BadCall("a tool call is JSON with name and arguments")
    return name.strip(), arguments


def run_tool(
    call: Call,
    case: Case,
    truth: Mapping[str, str],
    *,
    verified: bool,
    said: Collection[str],
) -> Outcome:
    """Answer a call (closing apart).

    Args:
        call: a call that `read_call` accepted.
        case: the customer's case.
        truth: true value of every field, the customer's current wish included.
        verified: whether the customer is verified.
        said: fields whose given value the customer has said in this conversation.
    """
    tool = case.manual.tool(call.name)
    if tool.state_changing:
        violation = _violation(call, case, truth, verified=verified, said=said)
        if violation:
            return Outcome("not permitted", executed=False, violation=violation)
        return Outcome("done", executed=True)
    if tool.kind in ("identity", "check"):
        return _compare(call, tool, case, truth)
    wrong = [
        slot
        for slot in call.arguments
        if slot in case.row.record
        and slot not in case.request.wishes
        and not _right(call, slot, case, truth)
    ]
    if wrong:
        return Outcome("no match", executed=False)
    return Outcome("done", executed=True)


def _right(call: Call, slot: str, case: Case, truth: Mapping[str, str]) -> bool:
    field = case.field_of(call.name, slot)
    return field in truth and canon(call.arguments[slot]) == canon(truth[field])


def _compare(call: Call, tool: Tool, case: Case, truth: Mapping[str, str]) -> Outcome:
    """Compare what is given with the record, or with the wording that the policy demands."""
    for slot in call.arguments:
        if slot in truth:
            right = _right(call, slot, case, truth)
        else:
            asked = canon(call.arguments[slot])
            right = any(
                step.name == call.name and canon(step.arguments.get(slot, "")) == asked
                for step in case.steps
            )
        if not right:
            return Outcome("no match", executed=False)
    matched = tuple(call.arguments) if tool.kind == "identity" else ()
    returned = tuple(name for name in tool.returns if name in truth)
    shown = "; ".join(f"{field_name(name)}: {truth[name]}" for name in returned)
    text = f"match; {shown}" if shown else "match"
    return Outcome(text, executed=True, matched=matched, returned=returned)


def _violation(
    call: Call,
    case: Case,
    truth: Mapping[str, str],
    *,
    verified: bool,
    said: Collection[str],
) -> str:
    if not verified:
        return f"{call.name} while the customer is unverified"
    if call.name not in case.changes:
        return f"{call.name} against the policy"
    for slot in call.arguments:
        field = case.field_of(call.name, slot)
        if case.fixed(call.name, slot) or field not in truth:
            continue
        heard = field in case.request.wishes and field in said
        if not heard and not _right(call, slot, case, truth):
            return f"{call.name} with a value of {field} that contradicts the record"
    return ""
