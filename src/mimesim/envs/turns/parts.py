"""What a gym says and asks in a turn, and the small things that all turn-taking gyms need for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mimesim.dialogue.stop import Party, StopReason
from mimesim.dialogue.types import PublicMessage, Reply
from mimesim.envs.base import AgentAction, GymSpec
from mimesim.envs.packs import holds_string
from mimesim.users.base import Script

S = TypeVar("S")


class BadAction(Exception):
    """The content of an action cannot be used here; the words tell the agent why."""


@dataclass(frozen=True, slots=True)
class Turn(Generic[S]):
    """What an action did.

    Attributes:
        state: to be committed.
        feedback: what the environment tells the agent; "" = nothing.
        reply: of the user, whose words the agent reads before the feedback.
        reward: of this step.
        over: why the episode ends by the gym's own rule, None = it goes on.
        by: whose doing that is.
        grading: bookkeeping for logs, never seen by the agent.
    """

    state: S
    feedback: str = ""
    reply: Reply | None = None
    reward: float = 0.0
    over: StopReason | None = None
    by: Party = Party.AGENT
    grading: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Opening(Generic[S]):
    """How an episode starts: the state, what the agent reads first, and the user's reply if any."""

    state: S
    first: str
    reply: Reply | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What a gym asks its user.

    Attributes:
        kind: e.g. `turtle.oracle`; names the prompt `user/kinds/<kind>` of model-backed users.
        text: the agent's words, "" when the user opens.
        script: what a scripted person answers.
        public: what the agent knows too. private: what only this user may know.
        history: the words so far; None = all of them.
        may_end: whether the user can leave.
    """

    kind: str
    text: str
    script: Script
    public: Mapping[str, Any] = field(default_factory=dict)
    private: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[PublicMessage, ...] | None = None
    may_end: bool = False


def invalid_text(reason: str, spec: GymSpec) -> str:
    """Return what an agent is told whose action was not valid."""
    allowed = ", ".join(choice.value for choice in spec.choices)
    return f"Not a valid step: {reason}. Choices here: {allowed}."


def leaks(texts: list[str], forbidden: list[str], own: list[str]) -> list[str]:
    """Return the forbidden strings that stand in `texts`; what the agent wrote itself is exempt."""
    return [
        secret
        for secret in forbidden
        if any(holds_string(text, secret) for text in texts)
        and not any(holds_string(text, secret) for text in own)
    ]


def tagged(action: AgentAction) -> str:
    """Return an action as the originals pass it on: `[choice] content`, the tag never twice."""
    tag = f"[{action.choice.value}]"
    return action.content if action.content.startswith(tag) else f"{tag} {action.content}"
