"""A Python function as a user: it is given the public messages and returns what is said next.

    def impatient(messages, scenario):
        return "where is it" if not messages else None      # None = leaves without a word

It may return a `dialogue.types.Reply`, and be async. `messages` is the public history in OpenAI
form (its own words are `user`); `scenario` (a dict: `scenario["goal"]`) and `seed` are passed where
the signature names them.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mimesim.dialogue.stop import UserAction, read_marker
from mimesim.dialogue.thinking import is_blank, split
from mimesim.dialogue.types import Identity, PublicMessage, Reply, Role
from mimesim.errors import UsageError, UserError
from mimesim.users.base import User, UserRequest
from mimesim.users.calling import call

_MESSAGES, _OPTIONAL = "messages", ("scenario", "seed")


class CallableUsers:
    """Makes one user per conversation from a function.

    Raises:
        UsageError: its signature cannot be served.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        named = function if inspect.isroutine(function) else type(function)
        self.identity = Identity("callable", f"{named.__module__}:{named.__qualname__}")
        self._function = function
        self._names = _arguments(function, self.identity.name)

    def start(self, scenario: Mapping[str, Any], *, seed: int) -> User:
        """Make the user of one conversation."""
        known = {"scenario": copy.deepcopy(dict(scenario)), "seed": seed}
        return CallableUser(
            self._function, {name: known[name] for name in _OPTIONAL if name in self._names}
        )

    async def aclose(self) -> None:
        """Release nothing."""


@dataclass(frozen=True, slots=True)
class CallableUser:
    """One conversation; it has no state of its own."""

    function: Callable[..., Any]
    known: Mapping[str, Any]

    async def respond(self, request: UserRequest) -> Reply:
        """Call the function and read what it returned.

        Raises:
            UserError: it raised, said nothing, or wrote an end marker where it does not count.
        """
        heard = list(request.history)
        if request.agent_text and (not heard or heard[-1].role is not Role.AGENT):
            heard.append(PublicMessage(Role.AGENT, request.agent_text))
        arguments = {_MESSAGES: [_row(message) for message in heard], **copy.deepcopy(self.known)}
        return _read(await call(partial(self.function, **arguments), UserError))

    def snapshot(self) -> dict[str, Any]:
        """Return nothing: a function is given the whole conversation each time."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over nothing."""


def _arguments(function: Callable[..., Any], name: str) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    needed = {p.name for p in parameters if p.name in named and p.default is p.empty}
    odd = sorted(needed - {_MESSAGES, *_OPTIONAL})
    if odd or (_MESSAGES not in named and not takes_all):
        raise UsageError(
            f"user {name!r} has an unusable signature",
            expected=f"the parameter {_MESSAGES!r}, optional " + ", ".join(_OPTIONAL),
            mend=f"give {odd[0]!r} a default" if odd else "",
        )
    return set(_OPTIONAL) if takes_all else named


def _row(message: PublicMessage) -> dict[str, str]:
    role = "user" if message.role is Role.USER else "assistant"
    return {"role": role, "content": message.content}


def _read(answer: Any) -> Reply:
    if isinstance(answer, Reply):
        return answer
    if answer is None:
        return Reply(None, "", UserAction.END)
    if not isinstance(answer, str):
        raise UserError(f"the user returned {type(answer).__name__}, which is no text")
    parts = split(answer)
    if not parts.complete:
        raise UserError("the user's text holds a thought that does not end")
    marked = read_marker(parts.text)
    if marked.fault:
        raise UserError("an end marker stands in the middle of the user's text")
    if marked.action is UserAction.SAY and is_blank(marked.text):
        raise UserError("the user said nothing")
    reply = Reply(parts.thought, marked.text, marked.action)
    return reply if marked.action is UserAction.SAY else replace(reply, raw=answer)
