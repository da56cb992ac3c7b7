"""Agents written for the compact desk: eager, patient, oracle, and the imperfect demonstrator.

All but the oracle read public text only: the policy line and what the customer said. They keep
the last value that the customer stated of each field, read by the phrase bank of the profile.
"""

from __future__ import annotations

import random
import re
from functools import cache

from mimesim.dialogue.types import Role
from mimesim.envs.base import AgentMove, AgentView, Task
from mimesim.scenarios.compact import (
    REQUIRED,
    VALUES,
    FinalAction,
    ask_line,
    read_policy,
    right_action,
)
from mimesim.seeds import generator
from mimesim.users.scripted.compact import phrase_bank

_PRESSURE = ("claim", "persist")


@cache
def _patterns(bank: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return (key, pattern) of every phrase that carries a fact or pressure, longest first."""
    found: list[tuple[str, str]] = []
    for key, lines in phrase_bank(bank).items():
        if key in VALUES or key in REQUIRED or key in _PRESSURE:
            found += [(key, line) for line in lines]
    found.sort(key=lambda entry: -len(entry[1]))
    compiled = []
    for key, line in found:
        body = re.escape(line).replace(r"\{v\}", "(?P<v>.+)")
        body = re.sub(r"\\\{\w\\\}", ".+", body)
        compiled.append((key, re.compile(body)))
    return tuple(compiled)


def _read_clause(clause: str) -> tuple[str, str] | None:
    for bank in ("main", "heldout"):
        for key, pattern in _patterns(bank):
            match = pattern.fullmatch(clause)
            if match is None:
                continue
            if key not in VALUES:
                return key, ""
            if match["v"] in VALUES[key]:
                return key, match["v"]
    return None


class Reading:
    """What a careful reader knows from the public transcript."""

    def __init__(self, view: AgentView) -> None:
        self.policy = read_policy(view.observation.system)
        self.intent: str | None = None
        self.latest: dict[str, str] = {}
        self.first: dict[str, str] = {}
        self.pressed = False
        self._read(view.observation.first_user)
        for message in view.messages:
            if message.role is Role.USER:
                self._read(message.content)

    def _read(self, text: str) -> None:
        for clause in text.split(" . "):
            slot = self._changed_slot(clause)
            if slot is not None:
                self.latest[slot[0]] = slot[1]
                continue
            found = _read_clause(clause)
            if found is None:
                continue
            key, value = found
            if key in REQUIRED:
                self.intent = key
            elif key in _PRESSURE:
                self.pressed = True
            else:
                self.latest[key] = value
                self.first.setdefault(key, value)

    def _changed_slot(self, clause: str) -> tuple[str, str] | None:
        """Read a change of mind: its value tells which field it is about."""
        for bank in ("main", "heldout"):
            for line in phrase_bank(bank)["change"]:
                pattern = re.escape(line).replace(r"\{v\}", "(.+)")
                match = re.fullmatch(pattern, clause)
                for field in ("method", "size", "zip"):
                    if match and match[1] in VALUES[field]:
                        return field, match[1]
        return None

    def missing(self) -> list[str]:
        """Return what was not said yet: the request first, else its fields."""
        if self.intent is None:
            return ["intent"]
        return [f for f in REQUIRED[self.intent] if f not in self.latest]


class PatientAgent:
    """Asks until it has every field, then acts by the policy on the latest values."""

    def __init__(self, task: Task, seed: int) -> None:
        self._rng = generator(seed, "patient")

    async def act(self, view: AgentView) -> AgentMove:
        """Ask for what is missing; act when nothing is, or when one step is left."""
        reading = Reading(view)
        missing = reading.missing()
        if missing and view.steps_left > 1:
            return AgentMove(ask_line(missing[:3], self._rng))
        return AgentMove(_act(reading, self._rng).line())

    async def aclose(self) -> None:
        """Release nothing."""


class EagerAgent:
    """Asks once for everything, then acts on whatever it has, assuming the rest."""

    def __init__(self, task: Task, seed: int) -> None:
        self._rng = generator(seed, "eager")

    async def act(self, view: AgentView) -> AgentMove:
        """Ask in the first step if anything is missing; else act."""
        reading = Reading(view)
        missing = reading.missing()
        if missing and view.step == 0:
            fields = ["intent", "order"] if missing == ["intent"] else missing
            return AgentMove(ask_line(fields, self._rng))
        return AgentMove(_act(reading, self._rng).line())

    async def aclose(self) -> None:
        """Release nothing."""


class OracleAgent:
    """Knows the hidden scenario: acts at once on the customer's original wish."""

    def __init__(self, task: Task, seed: int) -> None:
        scenario = task.scenario
        policy = read_policy(task.public["policy"])
        self._line = right_action(policy, scenario["meta"]["intent"], scenario["facts"]).line()

    async def act(self, view: AgentView) -> AgentMove:
        """Act."""
        return AgentMove(self._line)

    async def aclose(self) -> None:
        """Release nothing."""


class DemonstratorAgent:
    """Imperfect demonstrations for the warm start.

    Guesses missing fields, uses stale values, caves to pressure, grants wrongly, asks one thing
    at a time: enough to learn the task from, with everything left for RL to improve.
    """

    guess, stale, cave, grant, single, redundant = 0.35, 0.5, 0.4, 0.05, 0.7, 0.1

    def __init__(self, task: Task, seed: int) -> None:
        self._rng = generator(seed, "demonstrator")

    async def act(self, view: AgentView) -> AgentMove:
        """Make the next move, faults included."""
        rng, reading = self._rng, Reading(view)
        if reading.intent is None:
            if rng.random() >= 0.15:
                return AgentMove(ask_line(rng.choice((["intent"], ["intent", "order"])), rng))
            reading.intent = rng.choice(tuple(REQUIRED))
        missing = reading.missing()
        if missing and rng.random() > self.guess:
            rng.shuffle(missing)
            return AgentMove(ask_line(missing[:1] if rng.random() < self.single else missing, rng))
        if not missing and rng.random() < self.redundant:
            return AgentMove(ask_line([rng.choice(REQUIRED[reading.intent])], rng))
        stale = {f: v for f, v in reading.first.items() if rng.random() < self.stale}
        reading.latest.update(stale)
        action = _act(reading, rng)
        caves = (reading.pressed and rng.random() < self.cave) or rng.random() < self.grant
        if action.kind == "deny" and caves:
            kind = reading.intent
            slot = reading.latest.get({"refund": "method", "exchange": "size"}.get(kind, ""))
            action = FinalAction(kind, action.order, slot)
        return AgentMove(action.line())

    async def aclose(self) -> None:
        """Release nothing."""


_ASSUMED = {
    "order": "100",
    "method": "card",
    "days": "12",
    "tier": "basic",
    "size": "medium",
    "zip": "600",
    "status": "not shipped",
}
"""What an agent assumes of a field it was not told: a fixed guess, usually wrong."""


def _act(reading: Reading, rng: random.Random) -> FinalAction:
    """Act by the policy on the latest values, assuming what was never said."""
    intent = reading.intent or rng.choice(tuple(REQUIRED))
    return right_action(reading.policy, intent, {**_ASSUMED, **reading.latest})


def expert_line(view: AgentView, wish_missing: list[str], seed: int) -> str:
    """Return the move of an expert who was told (by a note) what is still missing."""
    rng = generator(seed, "expert")
    reading = Reading(view)
    missing = [f for f in wish_missing if f != "intent" or reading.intent is None]
    if missing and view.steps_left > 1:
        return ask_line(missing[:3], rng)
    return _act(reading, rng).line()
