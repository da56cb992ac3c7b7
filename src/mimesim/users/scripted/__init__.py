"""Scripted customers: `make("realistic")` for the door name `scripted:realistic`.

The scenario's profile decides which script plays: `compact` has a script of its own, `asked` means
that the gym brings one with every question, everything else is played by the full one. All know the
same kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mimesim.dialogue.types import Identity
from mimesim.errors import ConfigError
from mimesim.registry import Registry, unknown_name
from mimesim.users.base import User, UserSource
from mimesim.users.scripted.kinds import KINDS

__all__ = ["KINDS", "ScriptedSource", "make"]

_SCRIPTS = Registry(
    "script",
    {
        "asked": "mimesim.users.scripted.asked:AskedUser",
        "compact": "mimesim.users.scripted.compact:CompactUser",
        "full": "mimesim.users.scripted.full:FullUser",
    },
)


@dataclass(frozen=True, slots=True)
class ScriptedSource:
    """A kind of scripted customer; `kind` is one of `KINDS`."""

    kind: str

    @property
    def identity(self) -> Identity:
        """Who this is, for records."""
        return Identity(kind="scripted", name=f"scripted:{self.kind}")

    def start(self, scenario: Mapping[str, Any], *, seed: int) -> User:
        """Make the customer of one conversation.

        Raises:
            DataError: a damaged scenario.
        """
        profile = (scenario.get("meta") or {}).get("profile")
        script = profile if profile in ("compact", "asked") else "full"
        return cast(User, _SCRIPTS.load(script)(scenario, kind=self.kind, seed=seed))

    async def aclose(self) -> None:
        """Release nothing."""


def make(name: str, *, options: Mapping[str, Any] | None = None) -> UserSource:
    """Make the scripted customer called `name` (cooperative, realistic, B3, heldout-2, ...).

    Raises:
        UnknownNameError: no such kind; names the closest.
        ConfigError: options were given, and there are none.
    """
    if name not in KINDS:
        raise unknown_name("scripted user", name, list(KINDS))
    if options:
        raise ConfigError(
            f"user 'scripted:{name}' has no option {next(iter(options))!r}", expected="no options"
        )
    return ScriptedSource(name)
