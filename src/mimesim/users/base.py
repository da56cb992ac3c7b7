"""The user protocol: one user object per conversation, private thought and public words apart.

A gym hands the user a `UserRequest`; the user answers with a `Reply`. A user never sees the
agent's reasoning or tool traffic, a gym never hands a thought to the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from mimesim.dialogue.types import Identity, PublicMessage, Reply

Script = Callable[[str], Reply]
"""Kind of scripted person (`neutral`, `realistic`, `B3`, ...) -> what such a person answers."""


@dataclass(frozen=True, slots=True)
class UserRequest:
    """What a user is asked.

    Attributes:
        kind: e.g. `desk.customer`, `turtle.oracle`.
        history: the public transcript so far, agent reasoning removed; empty = speak first.
        agent_text: the agent's last message ("" when the user opens).
        private: what only this user may know, by kind (one preference, a hidden target, ...).
        seed: seed of this call, derived from the episode's.
        script: what scripted people answer; the gym knows it, as it knows the rule of a judge.
        may_end: whether the user can leave the conversation with this reply.
        as_is: read the reply of a model as the originals of the gyms do (their compat mode).
    """

    kind: str
    history: tuple[PublicMessage, ...]
    agent_text: str
    seed: int
    public: Mapping[str, Any] = field(default_factory=dict)
    private: Mapping[str, Any] = field(default_factory=dict)
    asked_fields: tuple[str, ...] = ()
    script: Script | None = field(default=None, compare=False, repr=False)
    may_end: bool = True
    as_is: bool = False


class User(Protocol):
    """One person in one conversation (single use)."""

    async def respond(self, request: UserRequest) -> Reply:
        """Answer.

        Raises:
            UserError: the contract was broken after all redraws.
            InfraError: the model behind the user could not be reached.
        """
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return the user's whole state as JSON values."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state from `snapshot`."""
        ...


@runtime_checkable
class Prompted(Protocol):
    """A user that is told who it is by a prompt: records name the prompt it was really given."""

    @property
    def prompt_hash(self) -> str:
        """Fingerprint of the whole private prompt, the scenario included."""
        ...


@runtime_checkable
class UserSource(Protocol):
    """A kind of user, e.g. `scripted:realistic`: makes one `User` per conversation."""

    @property
    def identity(self) -> Identity:
        """Who this user is, for records."""
        ...

    def start(self, scenario: Mapping[str, Any], *, seed: int) -> User:
        """Make the user of one conversation.

        Args:
            scenario: the task's `hidden.scenario` (see `scenarios.types.Scenario`).
            seed: the episode's user seed.
        """
        ...

    async def aclose(self) -> None:
        """Release what the users share."""
        ...
