"""Users by path: `tests.support.faulty:make` fails at the opening of every third scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim.dialogue.types import Identity, Reply, Thought
from mimesim.errors import UserError
from mimesim.users.base import User, UserRequest


class Faulty:
    """Says one line, or fails for good."""

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails

    async def respond(self, request: UserRequest) -> Reply:
        """Answer or fail."""
        if self.fails:
            raise UserError("out of order")
        return Reply(Thought("hidden"), "please refund the clock")

    def snapshot(self) -> dict[str, Any]:
        """Keep nothing."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Keep nothing."""


class Source:
    """Makes them; the last digit of the order number decides."""

    identity = Identity("scripted", "faulty")

    def start(self, scenario: Mapping[str, Any], *, seed: int) -> User:
        """Make one."""
        return Faulty(fails=int(scenario["facts"]["order"]) % 3 == 0)

    async def aclose(self) -> None:
        """Release nothing."""


def make(rest: str, *, options: Mapping[str, Any] | None = None) -> Source:
    """Make the source."""
    return Source()
