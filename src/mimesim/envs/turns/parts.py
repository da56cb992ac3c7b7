"""What a gym says and asks in a turn, and the small things that all turn-taking gyms need for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from mimesim.dialogue.stop import Party, StopReason
from mimesim.dialogue.types import PublicMessage, Reply
from mimesim.envs.base import AgentAction, Choice, GymSpec
from mimesim.envs.packs import holds_string
from mimesim.errors import ContextExceeded, InfraError, JudgeError, UserError
from mimesim.users.base import Script

S = TypeVar("S")

PARTY_FAILURES = (UserError, JudgeError, InfraError, ContextExceeded)
"""What user and judge fail with: a missing step, and 0 where compat says so (`error_policy`)."""


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


class Notes(list[str]):
    """What compat did in a step that a record should not hide."""

    @contextmanager
    def failing(self, note: str) -> Iterator[None]:
        """Note a failure of a party, for steps that go on without it."""
        try:
            yield
        except PARTY_FAILURES:
            self.append(note)
            raise

    def on(self, grading: Mapping[str, Any]) -> dict[str, Any]:
        """Return the bookkeeping of a step with the notes."""
        return {**grading, "compat": "; ".join(self)} if self else dict(grading)


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
    if action.raw or action.content.startswith(tag):
        return action.content
    return f"{tag} {action.content}"


def by_tag(action: AgentAction) -> AgentAction:
    """Return an action as the originals read it: by the tag in front, which is taken off.

    Without a tag it is `raw`, whatever choice the agent thought to make.
    """
    text = tagged(action).strip()
    for choice in Choice:
        tag = f"[{choice.value}]"
        if text.startswith(tag):
            rest = text.removeprefix(tag).strip()
            return replace(action, choice=choice, content=rest, raw=False)
    return replace(action, choice=Choice.ACTION, content=text, raw=True)


def as_speech(action: AgentAction) -> str:
    """Return what of an action the originals say to a person: all of it but two of the tags."""
    return tagged(action) if action.choice is Choice.SEARCH else action.content
