"""Chat models that follow a script: for tests, examples and offline use; no model, no network.

All are deterministic. `Scripted` with a function, `Echo` and `Replay` answer by what they are
asked, so they give the same answers at any concurrency; a `Scripted` list is used up in the order
of the calls and fits one conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mimesim.dialogue.types import Identity, Usage
from mimesim.errors import CallerError
from mimesim.models.base import ChatMessage, Completion, Sampling

Responder = Callable[[Sequence[ChatMessage], Sampling], "str | Completion"]
"""Answers a request; an exception it raises reaches the caller as it is."""


class Scripted:
    """Answers from a list, in the order of the calls, or from a function of the request.

    Attributes:
        requests: everything that was asked, in order.
    """

    def __init__(
        self, replies: Sequence[str | Completion] | Responder, *, name: str = "scripted:replies"
    ) -> None:
        self.identity = Identity("scripted", name)
        self.requests: list[tuple[tuple[ChatMessage, ...], Sampling]] = []
        self._replies = replies

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        sampling: Sampling,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        response_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Answer `messages`.

        Raises:
            CallerError: the list is used up.
        """
        number = len(self.requests)
        self.requests.append((tuple(messages), sampling))
        return _completion(self._reply(number, messages, sampling), messages)

    async def aclose(self) -> None:
        """Do nothing; there is nothing to release."""

    def _reply(
        self, number: int, messages: Sequence[ChatMessage], sampling: Sampling
    ) -> str | Completion:
        if callable(self._replies):
            return self._replies(messages, sampling)
        if number >= len(self._replies):
            raise CallerError(f"the script has {len(self._replies)} replies and is used up")
        return self._replies[number]


class Echo(Scripted):
    """Answers with the last user message."""

    def __init__(self, *, name: str = "scripted:echo") -> None:
        super().__init__(_last_user_text, name=name)


class Replay(Scripted):
    """Speaks the given turns: the n-th answer of a conversation is `turns[n]`, whoever asks.

    The place in the conversation is the number of assistant messages in the request.
    """

    def __init__(self, turns: Sequence[str], *, name: str = "scripted:replay") -> None:
        spoken = tuple(turns)

        def turn(messages: Sequence[ChatMessage], sampling: Sampling) -> str:
            place = sum(message.role == "assistant" for message in messages)
            if place >= len(spoken):
                raise CallerError(f"turn {place} was asked for, the script has {len(spoken)}")
            return spoken[place]

        super().__init__(turn, name=name)


def _last_user_text(messages: Sequence[ChatMessage], sampling: Sampling) -> str:
    return next((m.content for m in reversed(messages) if m.role == "user"), "")


def _completion(reply: str | Completion, messages: Sequence[ChatMessage]) -> Completion:
    """Count words for tokens and no cost, so that totals of offline runs are not empty."""
    answer = Completion(reply) if isinstance(reply, str) else reply
    if answer.usage != Usage():
        return answer
    asked = sum(len(message.content.split()) for message in messages)
    usage = Usage(asked, len(answer.text.split()), calls=1, cost=0.0)
    return replace(answer, usage=usage)
