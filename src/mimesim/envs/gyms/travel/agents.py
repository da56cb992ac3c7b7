"""Agents of the gym `travel` that read public text only.

`eager` looks everything up and takes the cheapest. `patient` first asks about one topic after the
other, as long as there are turns, and takes the cheapest of what fits the hints that it heard; it
knows the topics and hints of own tasks, as somebody does who has served many travelers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.types import Role
from mimesim.envs.base import AgentMove, AgentView, Task
from mimesim.envs.gyms.travel import pool
from mimesim.envs.gyms.travel.trip import LETTERS
from mimesim.envs.packs import fold, holds_string
from mimesim.envs.turns.agents import move
from mimesim.errors import DataError

_LINE = re.compile(r"(?<=\.)\s+(?=[A-Z])")


class Chooser:
    """Asks up to `questions` times, searches each aspect, takes the cheapest that fits."""

    def __init__(self, task: Task, *, asks: bool) -> None:
        self._aspects = [str(name) for name in task.public.get("aspects", [])]
        self._asks = asks
        self._plan = self._moves(str(task.public["initial"]))
        self._questions = self._topics() if asks else iter(())
        self._wanted: dict[str, dict[str, str]] = {}
        self._best: dict[str, str] = {}

    async def act(self, view: AgentView) -> AgentMove:
        """Choose the next move from what was said."""
        if view.messages:
            self._hear(view)
        reserve = 2 * len(self._aspects)
        if view.steps_left > reserve:
            question = next(self._questions, None)
            if question is not None:
                return move("action", question)
        return next(self._plan, move("answer", "A1"))

    async def aclose(self) -> None:
        """Release nothing."""

    def _topics(self) -> Iterator[str]:
        """Yield questions, aspect by turns, so that each gets its share."""
        topics = [pool.bank()[name]["topics"] for name in self._aspects]
        for row in zip(*topics, strict=False):
            yield from (topic["ask"] for topic in row)

    def _moves(self, initial: str) -> Iterator[AgentMove]:
        for name in self._aspects:
            yield move("search", request_for(name, initial))
        for name in self._aspects:
            yield move("answer", self._best.get(name, f"{LETTERS[name]}1"))

    def _hear(self, view: AgentView) -> None:
        for message in view.messages[-2:]:
            if message.role is Role.USER:
                self._note(message.content)
            elif message.role is Role.TOOL:
                self._read(message.content)

    def _note(self, said: str) -> None:
        words = fold(said)
        for hint, name, topic, value in _hints():
            if name in self._aspects and hint in words:
                self._wanted.setdefault(name, {})[topic] = value

    def _read(self, told: str) -> None:
        options: list[Mapping[str, Any]] = []
        for line in told.split("\n"):
            try:
                value = jsonio.loads(line) if line.startswith("{") else None
            except DataError:
                value = None
            options += [value] if isinstance(value, dict) else []
        if not options:
            return
        letter = str(options[0]["id"])[0]
        name = next(name for name in LETTERS if LETTERS[name] == letter)
        wanted = self._wanted.get(name, {})
        cheapest = min(
            options,
            key=lambda o: (sum(o.get(k) != v for k, v in wanted.items()), o["price"], o["id"]),
        )
        self._best[name] = str(cheapest["id"])


@cache
def _hints() -> tuple[tuple[str, str, str, str], ...]:
    """Return the hint, aspect, topic and value of every wish of own tasks."""
    return tuple(
        (fold(wish["implicit"]), name, topic["key"], wish["value"])
        for name in LETTERS
        for topic in pool.bank()[name]["topics"]
        for wish in topic["wishes"]
    )


def request_for(aspect: str, initial: str) -> str:
    """Return the sentence of the first request that names `aspect`, or its name alone."""
    name = aspect.replace("_", " ")
    return next((line for line in _LINE.split(initial) if holds_string(line, name)), name)


def moves(task: Task) -> list[tuple[str, str]]:
    """Return what a random agent does here."""
    names = [str(name) for name in task.public.get("aspects", [])] or list(LETTERS)
    letters = [LETTERS[name] for name in names if name in LETTERS]
    questions = ["What do you prefer?", "Do you like quiet places?", "Is breakfast important?"]
    return [
        *[("action", question) for question in questions],
        *[("search", request_for(name, str(task.public["initial"]))) for name in names],
        *[("answer", f"{letter}{number}") for letter in letters for number in range(1, 9)],
    ]
