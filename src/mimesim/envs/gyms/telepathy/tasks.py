"""Tasks of the gym `telepathy`, made from a table of things and what is true of them.

All things of a group lie in one split. A task's trace asks the questions that part the thing from
all others of the kind that the agent is told, then names it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mimesim.envs.base import Task
from mimesim.errors import DataError
from mimesim.seeds import generator

_TABLE = Path(__file__).with_name("table.toml")
_LONGEST = 15
"""Questions of a trace: the guess must fit into the episode."""


@dataclass(frozen=True, slots=True)
class Thing:
    """One row of the table."""

    title: str
    kind: str
    intro: str
    group: str
    split: str
    target: str
    aliases: tuple[str, ...]
    attributes: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column: how it is asked for, and how such questions are known."""

    question: str
    cues: tuple[str, ...]


def make_tasks(split: str, seed: int, count: int) -> list[Task]:
    """Return things of a split in a seeded order: `count` of them, or all there are."""
    things, _ = table()
    chosen = [thing for thing in things if thing.split == split]
    generator(seed, "telepathy-tasks", split).shuffle(chosen)
    return [_task(thing) for thing in chosen[:count]]


def moves(task: Task) -> list[tuple[str, str]]:
    """Return what a random agent does here: ask anything, or guess what it was told."""
    _, attributes = table()
    asked = [("action", attribute.question) for attribute in attributes.values()]
    return [*asked, ("answer", task.public["kind"])]


@cache
def table() -> tuple[tuple[Thing, ...], Mapping[str, Attribute]]:
    """Return all things and all attributes.

    Raises:
        DataError: a thing names an attribute that there is not.
    """
    raw = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    attributes = {
        name: Attribute(entry["question"], tuple(entry["cues"]))
        for name, entry in raw["attributes"].items()
    }
    things = [
        _thing(title, entry, group, kind, attributes)
        for group, kind in raw["kinds"].items()
        for title, entry in kind["things"].items()
    ]
    return tuple(things), attributes


def _thing(
    title: str,
    entry: Mapping[str, Any],
    group: str,
    kind: Mapping[str, Any],
    attributes: Mapping[str, Attribute],
) -> Thing:
    values: dict[str, bool | None] = dict.fromkeys(attributes, False)
    values.update(dict.fromkeys(kind.get("true", ()), True))
    values.update(dict.fromkeys(kind.get("open", ()), None))
    for mark in entry["is"].split():
        values[mark.lstrip("-?")] = {"-": False, "?": None}.get(mark[0], True)
    unknown = [name for name in values if name not in attributes]
    if unknown:
        raise DataError(f"{title}: no attribute {unknown[0]!r}", where=_TABLE.name)
    return Thing(
        title=title,
        kind=kind["kind"],
        intro=kind["intro"],
        group=f"kind:{group}",
        split=kind["split"],
        target=f"{title}, {entry.get('what', kind['what'])}",
        aliases=tuple(entry.get("also", ())),
        attributes={name: value for name, value in values.items() if value is not None},
    )


def _task(thing: Thing) -> Task:
    _, attributes = table()
    slug = thing.title.lower().replace(" ", "-")
    return Task(
        gym="telepathy",
        id=f"ms-te-{slug}",
        split=thing.split,
        groups=(thing.group,),
        public={"intro": thing.intro, "kind": thing.kind},
        hidden={
            "title": thing.title,
            "target": thing.target,
            "aliases": list(thing.aliases),
            "attributes": dict(thing.attributes),
            "cues": {name: list(one.cues) for name, one in attributes.items()},
            "oracle_trace": [*_questions(thing), ["answer", thing.title]],
            "scenario": {
                "id": f"ms-te-{slug}",
                "goal": "think of one thing, and answer questions about it truthfully by one word",
                "meta": {"profile": "asked"},
            },
        },
        meta={"source": "mimesim", "license": "Apache-2.0", "schema": 1},
    )


def _questions(thing: Thing) -> list[list[str]]:
    """Return questions that leave only this thing of its kind, each the one that leaves fewest."""
    things, attributes = table()
    left = [other for other in things if other.kind == thing.kind and other is not thing]
    asked: list[list[str]] = []
    while left and len(asked) < _LONGEST:
        remaining = {
            name: [other for other in left if other.attributes.get(name, value) == value]
            for name, value in thing.attributes.items()
        }
        best = min(remaining, key=lambda name: len(remaining[name]))
        if len(remaining[best]) == len(left):
            break
        left = remaining[best]
        asked.append(["action", attributes[best].question])
    return asked
