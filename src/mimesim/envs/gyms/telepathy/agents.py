"""Agents of the gym `telepathy` that know the table of things, but not which one is meant."""

from __future__ import annotations

from mimesim.dialogue.types import Role
from mimesim.envs.base import AgentMove, AgentView, Task
from mimesim.envs.gyms.telepathy.tasks import Thing, table
from mimesim.envs.turns.agents import move
from mimesim.envs.turns.labels import NO, YES
from mimesim.seeds import generator

_MEANS = {YES: True, NO: False}


class EagerAgent:
    """Guesses one thing of the kind after the other, and asks nothing."""

    def __init__(self, task: Task, seed: int) -> None:
        things, _ = table()
        self._things = [thing for thing in things if thing.kind == task.public["kind"]]
        generator(seed, "guesses").shuffle(self._things)

    async def act(self, view: AgentView) -> AgentMove:
        """Guess the next one; around again where all are through."""
        if not self._things:
            return move("answer", "no idea")
        return move("answer", self._things[view.step % len(self._things)].title)

    async def aclose(self) -> None:
        """Release nothing."""


class PatientAgent:
    """Asks what halves the things that are left, until one is left; Maybe tells it nothing."""

    def __init__(self, task: Task, seed: int) -> None:
        things, _ = table()
        self._left = [thing for thing in things if thing.kind == task.public["kind"]]
        generator(seed, "order").shuffle(self._left)
        self._asked: list[str] = []

    async def act(self, view: AgentView) -> AgentMove:
        """Take in the last answer, then ask or guess."""
        heard = [message.content for message in view.messages if message.role is Role.USER]
        if self._asked and len(heard) == len(self._asked):
            self._learn(self._asked[-1], heard[-1])
        _, attributes = table()
        name = self._question()
        if name and view.steps_left > 1:
            self._asked.append(name)
            return move("action", attributes[name].question)
        return move("answer", self._left.pop(0).title if self._left else "no idea")

    async def aclose(self) -> None:
        """Release nothing."""

    def _learn(self, name: str, label: str) -> None:
        if label in _MEANS:
            self._left = [t for t in self._left if _fits(t, name, meant=_MEANS[label])]

    def _question(self) -> str:
        """Return the attribute whose worse answer leaves fewest things, "" = none parts them."""
        _, attributes = table()
        worst = {
            name: max(
                sum(_fits(thing, name, meant=meant) for thing in self._left)
                for meant in (True, False)
            )
            for name in attributes
            if name not in self._asked
        }
        best = min(worst, key=lambda name: worst[name], default="")
        return best if best and worst[best] < len(self._left) else ""


def _fits(thing: Thing, name: str, *, meant: bool) -> bool:
    """Tell whether `thing` may be meant; what is open for it fits both answers."""
    return thing.attributes.get(name, meant) == meant
