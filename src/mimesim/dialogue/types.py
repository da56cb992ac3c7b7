"""The vocabulary of a conversation: messages, thoughts, replies, usage, provenance.

A `Thought` is a type of its own that refuses to become text by accident: it has no `str()` and
its `repr()` hides the words, so an f-string or a log line cannot leak it (design law 1). Agents
receive `PublicMessage`s, which have no field for a thought.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mimesim.dialogue.stop import UserAction


@dataclass(frozen=True, slots=True, repr=False)
class Thought:
    """A user's private thought. Read it with `reveal()`, only where the private side may go."""

    _text: str

    def reveal(self) -> str:
        """Return the words."""
        return self._text

    def __bool__(self) -> bool:
        """Tell whether there are any words."""
        return bool(self._text.strip())

    def __repr__(self) -> str:
        """Show that there is a thought, never which."""
        return f"Thought(<{len(self._text)} characters>)"

    def __str__(self) -> str:
        """Refuse: text of a thought must be asked for by name.

        Raises:
            TypeError: always.
        """
        raise TypeError("a private thought is not text; call reveal() where private text may go")

    def __format__(self, spec: str) -> str:
        """Refuse, as `str()` does."""
        return str(self)


@dataclass(frozen=True, slots=True)
class CoachNote:
    """A coach's note. Allowed in teacher rows and noted warm-start rows only (ruling 4)."""

    text: str
    source: str


class Role(StrEnum):
    """Sides of a public transcript; `assistant` exists only in wire formats."""

    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call; `arguments` is JSON text, `owner` the side that made it."""

    id: str
    name: str
    arguments: str
    owner: Role
    parse_error: str | None = None


@dataclass(frozen=True, slots=True)
class PublicMessage:
    """One message that both sides may see. `content` is always a string."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    owner: Role | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts and cost of calls; None = unknown, never 0 (dollars, tokens)."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    calls: int = 0
    regen_calls: int = 0
    cost: float | None = None
    unknown_cost_calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Add two usages; unknown plus known is known, with the unknown calls counted."""

        def plus(a: Any, b: Any) -> Any:
            return b if a is None else a if b is None else a + b

        return Usage(
            plus(self.prompt_tokens, other.prompt_tokens),
            plus(self.completion_tokens, other.completion_tokens),
            plus(self.reasoning_tokens, other.reasoning_tokens),
            plus(self.cached_tokens, other.cached_tokens),
            self.calls + other.calls,
            self.regen_calls + other.regen_calls,
            plus(self.cost, other.cost),
            self.unknown_cost_calls + other.unknown_cost_calls,
        )


@dataclass(frozen=True, slots=True)
class GuardEvent:
    """A deterministic check that fired on a user's reply; `detail` never holds private text."""

    guard: str
    attempt: int
    action: str
    detail: str = ""
    turn: int = -1


@dataclass(frozen=True, slots=True)
class Draft:
    """A reply that a guard held back; its words are as private as a thought."""

    attempt: int
    text: Thought
    guard: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a user answers: a private thought, a public utterance and an action.

    Attributes:
        wish: the customer's current private wish where it can move (scripted users); it grades
            an episode and is never public.
        raw: the model's raw output, private.
        source: generated, scripted (an authored line, no model call) or human.
        drafts: replies of this turn that were drawn and held back, private.
    """

    thought: Thought | None
    utterance: str
    action: UserAction = UserAction.SAY
    raw: str = field(default="", repr=False)
    finish_reason: str = "stop"
    usage: Usage = Usage()
    attempts: int = 1
    guards: tuple[GuardEvent, ...] = ()
    wish: Mapping[str, Any] = field(default_factory=dict, repr=False)
    source: str = "generated"
    drafts: tuple[Draft, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """Who spoke: enough to name user, agent, judge or coach beside every number.

    Attributes:
        kind: llm, scripted, rule, human, http, callable or policy.
        name: the name used at the door, e.g. `scripted:realistic`.
        prompt_hash: fingerprint of the prompt templates used, or, in an episode, of the whole prompt
            that its user was given; empty for code.
        sampling: temperature and the like.
    """

    kind: str
    name: str
    model: str = ""
    endpoint_host: str = ""
    revision: str = ""
    prompt_hash: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
