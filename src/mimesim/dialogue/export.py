"""Episodes in the shapes that other tools train on: OpenAI messages, both sides, and ShareGPT.

Works on the JSON form of an episode (`dialogue.episode`). Exports are public: the user's goal and
thoughts go out only when `with_private` is asked for, and such rows say so. All rows of one target
have the same keys, contents and tool arguments are strings, and equal input gives equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import PublicMessage, Role, Thought, ToolCall
from mimesim.dialogue.views import WireMessage, as_agent, as_user
from mimesim.errors import DataError
from mimesim.registry import unknown_name

GENERIC_SYSTEM = "You are a person who writes to an assistant."
"""System text of a user row whose private side stays at home."""

NO_RESULT = "(no result)"
"""ShareGPT wants an observation after every call; this stands for one that never came."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to export.

    Attributes:
        with_private: let the user's private prompt and thoughts out (user rows only).
        user_prompt: renders the private prompt of an episode; needed with `with_private`.
    """

    with_private: bool = False
    user_prompt: Callable[[Mapping[str, Any]], str] | None = None


Episode = Mapping[str, Any]
Row = dict[str, Any]


def export_rows(
    episodes: Iterable[Episode], target: str, options: Options | None = None
) -> Iterator[Row]:
    """Yield one row per episode in which the user was heard; the others have nothing to learn.

    Raises:
        UnknownNameError: no such target.
        DataError: an episode whose contents are not text.
    """
    chosen = options or Options()
    if target not in TARGETS:
        raise unknown_name("export target", target, list(TARGETS))
    for episode in episodes:
        if any(message.role is Role.USER for message in messages_of(episode)):
            yield TARGETS[target](episode, chosen)


def openai(episode: Episode, options: Options) -> Row:
    """Return the agent's side as OpenAI messages."""
    rows = as_agent(messages_of(episode), system=str(episode.get("system") or ""))
    return {"messages": [_openai_message(row) for row in rows]}


def openai_user(episode: Episode, options: Options) -> Row:
    """Return the user's side: roles flipped, greeting seeded, thoughts inline when private.

    The last message is the user's own, since it is what such a row teaches.
    """
    messages = list(messages_of(episode))
    while messages and messages[-1].role is not Role.USER:
        messages.pop()
    system, thoughts = GENERIC_SYSTEM, None
    if options.with_private:
        system = options.user_prompt(episode) if options.user_prompt else GENERIC_SYSTEM
        thoughts = thoughts_of(episode)
    # The view ends on an agent's message; the last word of the user is added by hand.
    ending = PublicMessage(Role.AGENT, "-")
    rows = as_user([*messages, ending], system=system, thoughts=thoughts)[:-1]
    return {
        "messages": [{"role": row.role, "content": row.content} for row in rows],
        "private": options.with_private,
    }


def sharegpt(episode: Episode, options: Options) -> Row:
    """Return the agent's side as ShareGPT turns: starts with a human, alternates, ends with gpt.

    Words beside a tool call join the next words of the same answer, since a call has no place for
    them; an agent's greeting before the first human turn moves into the system text.
    """
    system = str(episode.get("system") or "")
    pieces = _pieces(as_agent(messages_of(episode)))
    greeting = []
    while pieces and pieces[0][0] != "human":
        kind, value = pieces.pop(0)
        greeting += [value] if kind == "gpt" else []
    while pieces and pieces[-1][0] != "gpt":
        pieces.pop()
    return {
        "conversations": [{"from": kind, "value": value} for kind, value in pieces],
        "system": "\n\n".join([*([system] if system else []), *greeting]),
    }


TARGETS: dict[str, Callable[[Episode, Options], Row]] = {
    "openai": openai,
    "openai-user": openai_user,
    "sharegpt": sharegpt,
}
"""Name of a target -> its function."""


def messages_of(episode: Episode) -> tuple[PublicMessage, ...]:
    """Return the delivered public messages of an episode.

    Raises:
        DataError: a content that is not a string.
    """
    where = f"episode {episode.get('id', '?')}"
    found = []
    for turn in episode.get("turns", ()):
        if not isinstance(turn.get("content"), str):
            raise DataError("a content is not text", where=where, expected="strings in turns")
        if turn.get("delivered", True):
            found.append(_message(turn))
    return tuple(found)


def thoughts_of(episode: Episode) -> list[Thought | None]:
    """Return the thought of each delivered user message, None where there is none."""
    private = episode.get("private") or {}
    by_turn = {t["turn"]: t["text"] for t in private.get("thoughts", ()) if t.get("text")}
    heard = [t for t in episode.get("turns", ()) if t.get("delivered", True)]
    return [
        Thought(by_turn[turn["i"]]) if turn.get("i") in by_turn else None
        for turn in heard
        if turn["role"] == Role.USER
    ]


def _message(turn: Mapping[str, Any]) -> PublicMessage:
    owner = turn.get("owner")
    calls = tuple(
        ToolCall(
            id=str(call.get("id", "")),
            name=str(call.get("name", "")),
            arguments=_text(call.get("arguments", "")),
            owner=Role(call.get("owner") or Role.AGENT),
        )
        for call in turn.get("tool_calls") or ()
    )
    return PublicMessage(
        role=Role(turn["role"]),
        content=turn["content"],
        tool_calls=calls,
        tool_call_id=turn.get("tool_call_id"),
        name=turn.get("name"),
        owner=Role(owner) if owner else None,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else jsonio.dumps(value)


def _openai_message(row: WireMessage) -> Row:
    message: Row = {"role": row.role, "content": row.content}
    if row.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in row.tool_calls
        ]
    if row.role == "tool":
        message["tool_call_id"] = row.tool_call_id or ""
    return message


def _pieces(rows: Iterable[WireMessage]) -> list[tuple[str, str]]:
    """Return (from, value) in strict alternation of human|observation and gpt|function_call."""
    pieces: list[tuple[str, str]] = []
    aside: list[str] = []  # words beside a call, waiting for the next words of the answer
    for row in rows:
        if row.role in ("user", "tool"):
            if row.role == "user" and aside:
                _put_answer(pieces, "gpt", "\n\n".join(aside))
                aside = []
            _put_input(pieces, "human" if row.role == "user" else "observation", row.content)
        elif row.tool_calls:
            if pieces and pieces[-1][0] == "gpt":
                aside.append(pieces.pop()[1])
            aside += [] if is_blank(row.content) else [row.content]
            _put_answer(pieces, "function_call", _calls(row.tool_calls))
        else:
            _put_answer(pieces, "gpt", "\n\n".join([*aside, row.content]))
            aside = []
    if aside:
        _put_answer(pieces, "gpt", "\n\n".join(aside))
    return pieces


def _put_input(pieces: list[tuple[str, str]], kind: str, value: str) -> None:
    if pieces and pieces[-1][0] in ("human", "observation"):
        value = f"{pieces.pop()[1]}\n\n{value}"
    pieces.append((kind, value))


def _put_answer(pieces: list[tuple[str, str]], kind: str, value: str) -> None:
    if pieces and pieces[-1][0] == "function_call":
        pieces.append(("observation", NO_RESULT))
    elif pieces and pieces[-1][0] == "gpt":
        value = f"{pieces.pop()[1]}\n\n{value}"
    pieces.append((kind, value))


def _calls(calls: Sequence[ToolCall]) -> str:
    """Return one call as an object, several as a list; arguments stay as they were written."""
    written = [
        f'{{"name": {jsonio.dumps(call.name)}, "arguments": {call.arguments or "{}"}}}'
        for call in calls
    ]
    return written[0] if len(written) == 1 else f"[{', '.join(written)}]"
