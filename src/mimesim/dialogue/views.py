"""Who sees what of a conversation: public, as the user, as the agent, for the coach.

The rows made here obey the strictest chat grammar: one system message at most,
first; then user and assistant in strict alternation from user; contents are strings, none empty.
Agent-side functions take and return `PublicMessage`s, which have no place for a thought; only the
user's and the coach's views take `Thought`s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mimesim.dialogue.thinking import is_blank, join
from mimesim.dialogue.types import PublicMessage, Role, Thought, ToolCall
from mimesim.errors import CallerError

GREETING = "Hi! How can I help you today?"
"""Seeds a user that speaks first; stands in its prompt only, never in the public transcript."""

TOOL_NOTE = "(The agent looked something up.)"
"""What a user is told of an agent's tool activity when it may know that there was some."""


@dataclass(frozen=True, slots=True)
class WireMessage:
    """One message in wire form. `role` is system, user, assistant or tool."""

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """One user message with the thought behind it: the private form of a transcript line."""

    message: PublicMessage
    thought: Thought | None = None


@dataclass(frozen=True, slots=True)
class CoachView:
    """What a coach may see of turn t: the public past, and the private side of the next message.

    Attributes:
        history: public text up to turn t.
        thought: the user's thought; None = withheld from the coach or not there.
        next_utterance: the user's next message; None = withheld or not there.
        reply: the agent's reply at turn t, corrective style only.
    """

    history: str
    thought: Thought | None = None
    next_utterance: str | None = None
    reply: str | None = None


def public(messages: Iterable[PublicMessage | SpokenTurn]) -> tuple[PublicMessage, ...]:
    """Return the public side of a transcript: thoughts dropped, notes dropped.

    Raises:
        CallerError: a content is not a string, e.g. a thought was put where text belongs.
    """
    spoken = (m.message if isinstance(m, SpokenTurn) else m for m in messages)
    kept = tuple(message for message in spoken if message.role is not Role.NOTE)
    for message in kept:
        if not isinstance(message.content, str):
            raise CallerError(f"{message.role} message holds {type(message.content).__name__}")
    return kept


def as_agent(messages: Iterable[PublicMessage], *, system: str = "") -> tuple[WireMessage, ...]:
    """Return what the agent reads: its own tool traffic kept, that of the user left out."""
    rows = [WireMessage("system", system)] if system else []
    for message in public(messages):
        if message.role is Role.TOOL:
            if message.owner is not Role.USER:
                rows.append(WireMessage("tool", message.content, (), message.tool_call_id))
        elif message.role is Role.AGENT:
            calls = tuple(c for c in message.tool_calls if c.owner is not Role.USER)
            if calls or not is_blank(message.content):
                _add(rows, WireMessage("assistant", message.content, calls))
        elif not is_blank(message.content):
            _add(rows, WireMessage("user", message.content))
    return tuple(rows)


def as_user(
    messages: Iterable[PublicMessage],
    *,
    system: str,
    thoughts: Sequence[Thought | None] | None = None,
    show_agent_tools: bool = False,
) -> tuple[WireMessage, ...]:
    """Return what the simulated user reads: roles flipped, its own thoughts in place.

    Args:
        messages: the public transcript; empty = the user speaks first.
        system: the user's private prompt.
        thoughts: thought of the i-th user message, kept in its history as trained (an absent one
            gives an empty block); None = the user does not think, plain utterances.
        show_agent_tools: say neutrally that there was tool activity instead of hiding it.

    Raises:
        CallerError: the transcript ends with the user's own words, so nothing is to be answered.
    """
    rows = [WireMessage("system", system)]
    own = 0
    for message in public(messages):
        if message.role is Role.USER:
            thought = thoughts[own] if thoughts is not None and own < len(thoughts) else None
            own += 1
            if is_blank(message.content):
                continue
            text = message.content if thoughts is None else join(thought, message.content)
            if rows[-1].role == "system":
                rows.append(WireMessage("user", GREETING))
            _add(rows, WireMessage("assistant", text))
        elif message.role is Role.AGENT:
            if not is_blank(message.content):
                _add(rows, WireMessage("user", message.content))
            elif show_agent_tools and message.tool_calls:
                _add(rows, WireMessage("user", TOOL_NOTE))
    if rows[-1].role == "system":
        rows.append(WireMessage("user", GREETING))
    if rows[-1].role == "assistant":
        raise CallerError("the user has spoken last: there is no message of the agent to answer")
    return tuple(rows)


def for_coach(
    messages: Iterable[PublicMessage],
    *,
    thought: Thought | None = None,
    next_utterance: str | None = None,
    reply: str | None = None,
) -> CoachView:
    """Return what a coach reads at one turn; leave a channel out to withhold it."""
    return CoachView(transcript(messages), thought, next_utterance, reply)


def transcript(messages: Iterable[PublicMessage]) -> str:
    """Return the public words as lines `User: …` and `Agent: …`, tool traffic left out."""
    return "\n".join(
        f"{'User' if m.role is Role.USER else 'Agent'}: {m.content.strip()}"
        for m in public(messages)
        if m.role in (Role.USER, Role.AGENT) and not is_blank(m.content)
    )


def _add(rows: list[WireMessage], row: WireMessage) -> None:
    """Append `row`, joined with the last one by a blank line where the role is the same."""
    last = rows[-1] if rows else None
    if last is None or last.role != row.role or last.tool_calls or row.tool_calls:
        rows.append(row)
    else:
        rows[-1] = WireMessage(row.role, f"{last.content}\n\n{row.content}")
