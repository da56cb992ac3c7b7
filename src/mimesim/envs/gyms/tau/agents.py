"""Agents of `tau`: one that hands over at once, and two that read public words in the small shop.

`patient` looks up before it acts and keeps to the policy. `eager` asks for what it needs and acts
at once, whatever the policy says: a start from which there is something to learn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mimesim.dialogue.types import Role
from mimesim.envs.actions import get_format
from mimesim.envs.base import AgentAction, AgentMove, AgentView, Choice, Task, profile_of
from mimesim.envs.gyms.tau import world
from mimesim.envs.gyms.tau.bench import TRANSFER
from mimesim.envs.gyms.tau.calls import spelled, written
from mimesim.envs.gyms.tau.customer import NEEDS, PITY
from mimesim.envs.gyms.tau.domain import Call
from mimesim.envs.gyms.tau.tasks import FORBIDDABLE, WRITES, closing_words
from mimesim.envs.turns.agents import move
from mimesim.seeds import generator

_LINE = get_format("line")
GREETING = "what can i do for you ?"
BYE = "bye ."
ASKS = ("what is the {} ?", "please tell me the {} .")
SPOKEN = {"order": "order number", "zip": "new zip", "name": "name"}
_INTENTS: Mapping[str, re.Pattern[str]] = {
    "cancel": re.compile(r"\bcancel\b|\bcall it off\b"),
    "return": re.compile(r"\breturn\b|\btake this back\b"),
    "exchange": re.compile(r"\bexchange\b|\bin another color\b"),
    "redirect": re.compile(r"\bsent to another zip\b|\bto a new zip\b|\bparcel\b"),
    "move": re.compile(r"\bmoved\b|\blive elsewhere\b"),
    "points": re.compile(r"\bpoints\b|\bcollect\b"),
    "stock": re.compile(r"\bstock\b|\bare left\b"),
    "total": re.compile(r"\btotal\b|\ball together\b"),
}
_VALUES: Mapping[str, re.Pattern[str]] = {
    "order": re.compile(r"\b[123]\d\d\b"),
    "zip": re.compile(r"\b6\d\d\b"),
    "item": re.compile(rf"\b({'|'.join(world.ITEMS)})\b"),
    "color": re.compile(rf"\b({'|'.join(world.COLORS)})\b"),
    "name": re.compile(rf"\b({'|'.join(world.NAMES)})\b"),
}
_LOOK_UPS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("cancel", "return", "redirect", "total"), ("get_order",)),
    "exchange": ("get_order", "get_product"),
    "stock": ("get_product",),
    "points": ("find_user",),
    "move": ("find_user",),
}


class TransferAgent:
    """Hands over to a human at once: what a task of tau-bench is worth to it is its null floor."""

    def __init__(self, task: Task, seed: int) -> None:
        mini = profile_of(task) == world.NAME
        call = Call("transfer", {"reason": "none"}) if mini else Call(TRANSFER, {"summary": "none"})
        self._content = spelled(call) if mini else written(call)

    async def act(self, view: AgentView) -> AgentMove:
        """Hand over."""
        return move("answer", self._content)

    async def aclose(self) -> None:
        """Release nothing."""


class EagerAgent:
    """Asks for what it needs and acts; looks up only what it cannot do without."""

    def __init__(self, task: Task, seed: int) -> None:
        self._seed = seed
        self._found: dict[str, str] = {}
        self._asked_tool = ""
        self._wrote = False

    async def act(self, view: AgentView) -> AgentMove:
        """Choose the next move."""
        self._take(view)
        said = " ".join(
            [
                view.observation.first_user,
                *(m.content for m in view.messages if m.role is Role.USER),
            ]
        )
        intent = next((name for name, cue in _INTENTS.items() if cue.search(said)), "")
        if not intent:
            return self._say(GREETING)
        if said.endswith(PITY):
            return self._say(BYE)
        facts = {key: found[-1] for key, found in _found_in(said).items()}
        missing = [name for name in NEEDS[intent] if name not in facts]
        if missing:
            names = " and the ".join(SPOKEN.get(name, name) for name in missing)
            way = generator(self._seed, view.step).choice(ASKS)
            return self._say(way.format(names))
        return self._serve(intent, facts)

    async def aclose(self) -> None:
        """Release nothing."""

    def _serve(self, intent: str, facts: dict[str, str]) -> AgentMove:
        for tool in self._look_ups(intent):
            if tool not in self._found:
                return self._use(tool, facts)
        if "find_user" in self._found:
            facts["user"] = _word_after("user", self._found["find_user"])
        reason = self._reason(intent, facts)
        if reason:
            return self._say(closing_words(intent, facts, reason=reason))
        if intent in WRITES and not self._wrote:
            self._wrote = True
            return self._use(WRITES[intent], facts)
        return self._say(closing_words(intent, facts, self._value(intent, facts)))

    def _look_ups(self, intent: str) -> tuple[str, ...]:
        return () if intent in FORBIDDABLE else _LOOK_UPS[intent]

    def _reason(self, intent: str, facts: Mapping[str, str]) -> str:
        """Return why the policy forbids it; this agent never asks itself."""
        return ""

    def _value(self, intent: str, facts: Mapping[str, str]) -> str:
        if intent == "total":
            return _word_after("total", self._found["get_order"])
        if intent == "stock":
            return _word_after(facts["color"], self._found["get_product"])
        return _word_after("points", self._found["find_user"]) if intent == "points" else ""

    def _take(self, view: AgentView) -> None:
        last = view.messages[-1] if view.messages else None
        if self._asked_tool and last is not None and last.role is Role.TOOL:
            self._found[self._asked_tool] = last.content
        self._asked_tool = ""

    def _use(self, tool: str, facts: Mapping[str, str]) -> AgentMove:
        self._asked_tool = tool
        names = world.shop().tools[tool].names
        call = Call(tool, {name: facts.get(name, "none") for name in names})
        return _move(Choice.ANSWER, spelled(call))

    def _say(self, words: str) -> AgentMove:
        return _move(Choice.ACTION, words)


class PatientAgent(EagerAgent):
    """Looks up what the policy turns on, before it changes anything."""

    def _look_ups(self, intent: str) -> tuple[str, ...]:
        return _LOOK_UPS[intent]

    def _reason(self, intent: str, facts: Mapping[str, str]) -> str:
        if intent not in FORBIDDABLE or self._wrote:
            return ""
        order = self._found["get_order"]
        status = _word_after(":", order)
        if status != (world.PENDING if intent in ("cancel", "redirect") else world.DELIVERED):
            return status if status in world.REASONS else ""
        if status == world.DELIVERED and int(_word_after(status, order)) > world.RETURN_DAYS:
            return world.LATE
        if intent == "exchange" and _word_after(facts["color"], self._found["get_product"]) == "0":
            return world.OUT
        return ""


def moves(task: Task) -> list[tuple[str, str]]:
    """Return what a random agent does: it talks, looks things up and changes them blindly."""
    talk = [("action", words) for words in ("hello .", ASKS[0].format("order number"))]
    if profile_of(task) != world.NAME:
        return [*talk, ("search", "tools"), ("action", "It is done.")]
    facts = {"order": "104", "item": "lamp", "color": "red", "user": "u1", "zip": "612"}
    facts |= {"name": world.NAMES[0], "reason": "none"}
    calls = [
        Call(tool.name, {name: facts[name] for name in tool.names})
        for tool in world.shop().tools.values()
    ]
    said = [("action", closing_words("cancel", facts)), ("action", "sorry , it is late .")]
    return [*talk, *said, *(("answer", spelled(call)) for call in calls)]


def _found_in(text: str) -> dict[str, list[str]]:
    found = {name: [m.group() for m in cue.finditer(text)] for name, cue in _VALUES.items()}
    return {name: values for name, values in found.items() if values}


def _word_after(word: str, text: str) -> str:
    words = text.split()
    places = [i for i, one in enumerate(words[:-1]) if one == word]
    return words[places[0] + 1] if places else ""


def _move(choice: Choice, content: str) -> AgentMove:
    action = AgentAction(choice, content)
    return AgentMove(_LINE.render(action), action)
