"""Two protocols for language models: chat in text, and tokens in and out.

`ChatModel` answers messages (API endpoints, local models, scripted ones). `TokenModel` continues
token ids and keeps a cache per conversation; it is what a trained policy speaks through. Neither
loads torch or a network client by itself; `models.load` turns a door name into an object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mimesim.dialogue.types import Identity, Thought, ToolCall, Usage


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message on the wire. `role` is system, user, assistant or tool."""

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling arguments of one call; None = the model's own default.

    Attributes:
        temperature: 0 = greedy.
        max_tokens: cap on generated tokens of this call.
        seed: sent where the back-end supports it.
        thinking: whether the model is asked to reason first; None = say nothing about it.
        ends: token ids that end a reply of a token model, beside its own end token.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int = 512
    seed: int | None = None
    stop: tuple[str, ...] = ()
    thinking: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished chat call.

    Attributes:
        text: raw visible text as the model wrote it, reasoning tags included.
        reasoning: out-of-band `reasoning_content`, if the endpoint has such a field.
        finish_reason: stop, length, tool_calls or content_filter.
        cached: answered from the cache (costs nothing).
    """

    text: str
    finish_reason: str = "stop"
    reasoning: Thought | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    cached: bool = False
    latency_s: float = 0.0


class ChatModel(Protocol):
    """A model that answers messages."""

    @property
    def identity(self) -> Identity:
        """Who answers."""
        ...

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
            InfraError: transport trouble after all retries inside the wall-clock budget.
            ContextExceeded: the prompt does not fit.
            EnvironmentFault: wrong key, unknown model, bad template (not retried).
        """
        ...

    async def aclose(self) -> None:
        """Release connections and memory; twice is harmless."""
        ...


@dataclass(frozen=True, slots=True)
class Continuation:
    """Sampled tokens of one turn. `logprobs` are of the sampling distribution, same length.

    Attributes:
        ids: sampled token ids, the stop token included when it was sampled.
        finish_reason: stop (stop token sampled) or length.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    finish_reason: str


class TokenSession(Protocol):
    """One conversation with a `TokenModel`: append-only, never re-tokenised."""

    async def extend(self, new_ids: Sequence[int], sampling: Sampling) -> Continuation:
        """Append `new_ids` to the context and sample one reply, which joins the context too."""
        ...

    def close(self) -> None:
        """Leave the model; twice is harmless."""
        ...


class TokenModel(Protocol):
    """A model that continues token ids."""

    @property
    def identity(self) -> Identity:
        """Who answers."""
        ...

    @property
    def codec(self) -> ChatCodec:
        """Its chat template in ids."""
        ...

    def session(self, key: str) -> TokenSession:
        """Open a conversation; `key` orders rows of a batch, so results do not depend on timing."""
        ...


class ServedTokens(TokenModel, Protocol):
    """A token model behind connections."""

    async def aclose(self) -> None:
        """Close the connections; twice is harmless."""
        ...


class ChatCodec(Protocol):
    """Between messages and token ids of one model: its template, cut once, never rebuilt.

    `header` is the number of tokens of the assistant header that ends `prompt_ids` and
    `suffix_ids`; `closing` of those that close the user message before it. `opening` is the special
    token that begins a message, if one does.
    """

    end_id: int
    opening: int | None
    header: int
    closing: int

    def prompt_ids(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Return the ids of the messages with the assistant header at the end."""
        ...

    def suffix_ids(self, text: str) -> list[int]:
        """Return what follows a closed assistant turn: separator, user message, header."""
        ...

    def note_ids(self, text: str) -> list[int]:
        """Return the ids of one more user message, to be put right before a header."""
        ...

    def inline_ids(self, text: str) -> list[int]:
        """Return the ids of more words of a user message, to be put right before its closing."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of sampled ids without special tokens."""
        ...
