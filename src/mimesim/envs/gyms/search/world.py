"""An invented country: its people, towns, works and houses, a document on each, and what to ask.

The country is always the same one; nothing here depends on the seed of a run. Names are dealt out
so that no two questions of one form begin with names that share a word, while words recur across
forms: a search by a surname finds several people.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mimesim.envs.gyms.search.index import Document
from mimesim.envs.packs import holds_string
from mimesim.seeds import generator

_FILE = Path(__file__).with_name("world.toml")
_SEED = 1
_TOWNS, _PEOPLE, _HOUSES = 80, 24, 20
"""Towns in all; people of each profession; houses of each kind."""


@dataclass(frozen=True, slots=True)
class Thing:
    """Somebody or something with a document of its own; values of `facts` name things and facts."""

    kind: str
    name: str
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question over two documents.

    Attributes:
        start: the name that the question gives.
        bridge: the name that the first document gives.
        support: ids of the two documents.
    """

    text: str
    start: str
    bridge: str
    answer: str
    aliases: tuple[str, ...]
    support: tuple[str, str]


@dataclass(frozen=True, slots=True)
class World:
    """All documents, and all questions in a fixed order."""

    documents: tuple[Document, ...]
    questions: tuple[Asked, ...]


@cache
def the_world() -> World:
    """Return the country."""
    tables = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    things = _Maker(tables, generator(_SEED, "search-world")).made()
    numbers = {thing.name: f"d{number:03d}" for number, thing in enumerate(things)}
    documents = tuple(
        Document(numbers[thing.name], thing.name, _written(thing, tables["texts"]))
        for thing in things
    )
    return World(documents, tuple(_questions(things, numbers, tables["questions"])))


@dataclass
class _Maker:
    """Deals out names and facts."""

    tables: Mapping[str, Any]
    rng: random.Random
    _taken: set[str] = field(default_factory=set)

    def made(self) -> list[Thing]:
        """Return everybody and everything, each name once."""
        heads, tails = self.tables["town_heads"], self.tables["town_tails"]
        words = [head + tail for head in heads for tail in tails]
        self.rng.shuffle(words)
        places, free = words[:_TOWNS], words[_TOWNS:]
        settlers = [self._settler(place, places) for place in places]
        towns = [self._town(settler, places) for settler in settlers]
        people: list[Thing] = []
        for profession in self.tables["professions"]:
            people += self._people(profession, places)
        works = self._works(people, places, free)
        return [*towns, *people, *works, *self._houses(people, places), *settlers]

    def _settler(self, town: str, places: list[str]) -> Thing:
        name = self._names(1)[0]
        year = self.rng.randint(1105, 1540)
        facts = {"town": town, "year": str(year), "other": self._other(places, town)}
        return Thing("settler", name, facts)

    def _town(self, settler: Thing, places: list[str]) -> Thing:
        name = settler.facts["town"]
        facts = {
            "founder": settler.name,
            "year": settler.facts["year"],
            "river": self._one("rivers"),
            "craft": self._one("crafts"),
            "region": self._one("regions"),
            "other": self._other(places, name),
        }
        return Thing("town", name, facts)

    def _people(self, profession: str, places: list[str]) -> list[Thing]:
        found: list[Thing] = []
        years = sorted(self.rng.sample(range(1600, 1840), _PEOPLE))
        for name, year in zip(self._names(_PEOPLE), years, strict=True):
            town = self.rng.choice(places)
            elders = [one.name for one in found if year - int(one.facts["year"]) >= 15]
            facts = {
                "profession": profession,
                "a_profession": _with_article(profession),
                "year": str(year),
                "died": str(year + self.rng.randint(41, 83)),
                "town": town,
                "region": self._one("regions"),
                "other": self._other(places, town),
                "third": self._other(places, town),
            }
            teacher = {"teacher": self.rng.choice(elders)} if elders else {}
            found.append(Thing("person", name, facts | teacher))
        return found

    def _works(self, people: list[Thing], places: list[str], free: list[str]) -> list[Thing]:
        found = []
        for kind, (profession, made) in self.tables["works"].items():
            makers = [one for one in people if one.facts["profession"] == profession]
            for noun in self.tables["things"]:
                maker = self.rng.choice(makers)
                facts = {
                    "kind": kind,
                    "a_kind": _with_article(kind),
                    "profession": profession,
                    "made": made,
                    "maker": maker.name,
                    "surname": maker.name.split()[-1],
                    "year": str(int(maker.facts["year"]) + self.rng.randint(20, 40)),
                    "friend": self.rng.choice(people).name,
                    "other": self.rng.choice(places),
                }
                found.append(Thing("work", f"The {noun} of {free.pop()}", facts))
        return found

    def _houses(self, people: list[Thing], places: list[str]) -> list[Thing]:
        found = []
        for kind, word in self.tables["houses"].items():
            for giver in self._names(_HOUSES):
                director = self.rng.choice(people)
                facts = {
                    "kind": word,
                    "town": self.rng.choice(places),
                    "director": director.name,
                    "year": str(int(director.facts["year"]) + self.rng.randint(30, 40)),
                    "craft": self._one("crafts"),
                    "friend": self.rng.choice(people).name,
                }
                found.append(Thing("house", f"{giver} {kind}", facts))
        return found

    def _names(self, count: int) -> list[str]:
        """Return names that nobody bears yet and that share no word with one another."""
        while True:
            given = self.rng.sample(self.tables["given"], count)
            surnames = self.rng.sample(self.tables["surnames"], count)
            names = [f"{one} {two}" for one, two in zip(given, surnames, strict=True)]
            if not self._taken.intersection(names):
                self._taken.update(names)
                return names

    def _one(self, table: str) -> str:
        return str(self.rng.choice(self.tables[table]))

    def _other(self, places: list[str], town: str) -> str:
        return self.rng.choice([place for place in places if place != town])


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _written(thing: Thing, texts: Mapping[str, list[list[str]]]) -> str:
    """Return the document: its opening, then every sentence whose facts there are, in any order."""
    rng = generator(_SEED, "search-text", thing.name)
    values = {
        "name": thing.name,
        "title": thing.name,
        "surname": thing.name.split()[-1],
        "number": str(rng.randint(3, 9)),
        **thing.facts,
    }
    opening, *rest = [rng.choice(forms) for forms in texts[thing.kind]]
    if "teacher" not in values:
        rest = [form for form in rest if "{teacher}" not in form]
    rng.shuffle(rest)
    return " ".join(form.format_map(values) for form in (opening, *rest))


def _questions(
    things: list[Thing], numbers: Mapping[str, str], forms: list[Mapping[str, Any]]
) -> list[Asked]:
    known = {thing.name: thing for thing in things}
    short = _short_names([t.name for t in things if t.kind in ("person", "settler")])
    found = []
    for form in forms:
        for thing in (one for one in things if one.kind == form["start"]):
            bridge = known[thing.facts[form["bridge"]]]
            answer = bridge.facts.get(form["answer"])
            wording = generator(_SEED, "search-form", thing.name, form["answer"])
            values = {**thing.facts, "name": thing.name, "title": thing.name}
            text = wording.choice(form["forms"]).format_map(values)
            if answer is None or holds_string(text, answer):
                continue
            aliases = short.get(answer, ())
            if form["answer"] == "river":
                aliases = (f"River {answer}", f"{answer} River")
            support = (numbers[thing.name], numbers[bridge.name])
            found.append(Asked(text, thing.name, bridge.name, answer, aliases, support))
    return found


def _short_names(people: list[str]) -> dict[str, tuple[str, ...]]:
    """Return name -> ("M. Quill",), where nobody else is called so for short."""
    short = {name: f"{name[0]}. {name.split()[-1]}" for name in people}
    common = list(short.values())
    return {name: (one,) for name, one in short.items() if common.count(one) == 1}
