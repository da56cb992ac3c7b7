"""Write a user of your own and let an agent of ours serve it.

A user is made once per conversation from a private scenario. It answers requests with a `Reply`: a
private thought, a public utterance, an action. Nothing else is asked of it; the gym, the limits and
the record are the same for every user.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mimesim.dialogue.stop import UserAction
from mimesim.dialogue.types import Identity, Reply, Thought
from mimesim.rollout.prepare import RunConfig, execute, prepare
from mimesim.users.base import UserRequest


class Laconic:
    """Opens with the goal and answers exactly what was asked, nothing more."""

    def __init__(self, scenario: Mapping[str, Any]) -> None:
        self._goal = str(scenario["goal"])
        self._facts = dict(scenario["facts"])
        self._told: list[str] = []

    async def respond(self, request: UserRequest) -> Reply:
        """Answer from the facts, one clause per field that was asked for."""
        if not request.history:
            return Reply(Thought("Let us see whether they ask."), self._goal)
        asked = [name for name in request.asked_fields if name in self._facts]
        if not asked:
            return Reply(None, "Is it done?")
        self._told += asked
        words = [f"{name.replace('_', ' ')}: {self._facts[name]}" for name in asked]
        return Reply(Thought(f"They asked for {len(asked)}."), "; ".join(words), UserAction.SAY)

    def snapshot(self) -> dict[str, Any]:
        """Return what the conversation has changed."""
        return {"told": list(self._told)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a snapshot, so that a failed step can be tried again."""
        self._told = list(state["told"])


class LaconicUsers:
    """Makes one laconic user per conversation."""

    identity = Identity("scripted", "example:laconic")

    def start(self, scenario: Mapping[str, Any], *, seed: int) -> Laconic:
        """Make the user of one conversation."""
        return Laconic(scenario)

    async def aclose(self) -> None:
        """Release nothing."""


def main() -> None:
    """Run four episodes and show the first."""
    prepared = prepare(RunConfig(agent="scripted:patient", user="scripted:neutral", episodes=4))
    prepared = replace(prepared, cast=replace(prepared.cast, user=LaconicUsers()))
    summary = asyncio.run(execute(prepared))
    for turn in summary.episodes[0].turns:
        said = turn.content or " ".join(call.arguments for call in turn.tool_calls)
        print(f"{turn.role.value:>5}: {said.splitlines()[0]}")
    print(summary.counts.to_json())


if __name__ == "__main__":
    main()
