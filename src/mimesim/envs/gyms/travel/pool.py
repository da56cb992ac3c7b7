"""What own travel tasks are made of: wishes, records of an aspect, the words of a trip.

The words are in `pool.toml`. A record is an aspect with two to four wishes and its list of offers;
there is a fixed number of them, drawn once and for all, so that a record can belong to a split.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from mimesim.envs.gyms.travel.trip import LETTERS
from mimesim.envs.turns.splits import split_of
from mimesim.seeds import fingerprint, generator

RECORDS = 60
"""Of each aspect; a third each with two, three and four wishes."""
_FEWEST, _MOST = 2, 4


@dataclass(frozen=True, slots=True)
class Wish:
    """One value of one topic that a traveler may want."""

    topic: str
    value: str
    text: str
    implicit: str
    ask: str
    cues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """An aspect with its wishes; `key` is the group that it belongs to."""

    aspect: str
    wishes: tuple[Wish, ...]

    @property
    def key(self) -> str:
        """The aspect and what is wished, so that equal wishes have equal keys."""
        wanted = "|".join(sorted(f"{wish.topic}={wish.value}" for wish in self.wishes))
        return f"{self.aspect}:{len(self.wishes)}-{fingerprint(wanted, 8)}"

    def arguments(self, words: Mapping[str, str]) -> dict[str, str]:
        """Return what a search must name."""
        given: dict[str, str] = bank()[self.aspect]["arguments"]
        return {key: text.format(**words) for key, text in given.items()}

    def request(self, words: Mapping[str, str]) -> str:
        """Return the sentence in which the traveler asks for this aspect."""
        requests: list[str] = bank()[self.aspect]["requests"]
        text = generator(0, "travel-request", self.key).choice(requests)
        return text.format(**words)


@cache
def bank() -> dict[str, Any]:
    """Return the words."""
    source = files("mimesim.envs.gyms.travel").joinpath("pool.toml")
    return tomllib.loads(source.read_text(encoding="utf-8"))


@cache
def records() -> tuple[Record, ...]:
    """Return all records; no two wish for the same."""
    found: dict[str, Record] = {}
    for aspect in LETTERS:
        rng = generator(0, "travel-records", aspect)
        made = 0
        while made < RECORDS:
            size = _FEWEST + made % (_MOST - _FEWEST + 1)
            topics = rng.sample(bank()[aspect]["topics"], size)
            record = Record(aspect, tuple(_wish(topic, rng) for topic in topics))
            if record.key not in found:
                found[record.key] = record
                made += 1
    return tuple(found.values())


def trip_words(rng: random.Random, split: str) -> dict[str, str]:
    """Draw what one trip is about; openings are divided among the splits."""
    words = bank()["trip"]
    origin, place = rng.sample(words["places"], 2)
    nights, guests = rng.randint(2, 9), rng.randint(2, 8)
    openings = [text for text in words["openings"] if split_of("travel-opening", text) == split]
    return {
        "opening": rng.choice(openings),
        "origin": origin,
        "place": place,
        "day": f"{rng.randint(1, 28)} {rng.choice(words['months'])}",
        "nights": f"{nights} nights",
        "days": f"{nights + 1} days",
        "guests": f"{guests} people",
    }


def offers(record: Record) -> dict[str, Any]:
    """Return the options of a record with the ids of the best and of all right ones.

    Among two to four options that fit, the price decides; the cheapest of all does not fit.
    """
    rng = generator(0, "travel-offers", record.key)
    total = rng.randint(8, 15)
    fitting = rng.randint(2, 4)
    kinds = ["correct"] * fitting
    kinds += [rng.choice(("wrong", "noise")) for _ in range(total - fitting)]
    low, high = bank()[record.aspect]["prices"]
    prices = sorted(rng.sample(range(low, high), total))
    places = sorted(rng.sample(range(1, total), fitting))
    cheap = [price for n, price in enumerate(prices) if n not in places]
    rng.shuffle(cheap)
    wanted = {wish.topic: wish.value for wish in record.wishes}
    made: list[dict[str, Any]] = []
    for kind in kinds:
        price = prices[places[len(made)]] if kind == "correct" else cheap.pop()
        fields = {
            topic["key"]: _offered(topic, wanted, rng) for topic in bank()[record.aspect]["topics"]
        }
        if kind != "correct":
            fields |= _spoiled(record, kind, rng)
        name = rng.choice(bank()[record.aspect]["names"])
        made.append({"name": name, "price": price, **fields, "type": kind})
    numbers = rng.sample(range(1, total + 1), total)
    ids = [f"{LETTERS[record.aspect]}{number}" for number in numbers]
    options = sorted(
        ({"id": key, **option} for key, option in zip(ids, made, strict=True)),
        key=lambda option: int(option["id"][1:]),
    )
    return {"options": options, "best_id": ids[0], "correct_ids": sorted(ids[:fitting])}


def _offered(topic: Mapping[str, Any], wanted: Mapping[str, str], rng: random.Random) -> str:
    value: str = wanted.get(topic["key"]) or rng.choice(topic["values"])
    return value


def _spoiled(record: Record, kind: str, rng: random.Random) -> dict[str, str]:
    """Return other values for one wish (wrong) or for all of them (noise)."""
    topics = {topic["key"]: topic["values"] for topic in bank()[record.aspect]["topics"]}
    spoiled = record.wishes if kind == "noise" else [rng.choice(record.wishes)]
    return {
        wish.topic: rng.choice([value for value in topics[wish.topic] if value != wish.value])
        for wish in spoiled
    }


def _wish(topic: Mapping[str, Any], rng: random.Random) -> Wish:
    wanted = rng.choice(topic["wishes"])
    return Wish(
        topic["key"],
        wanted["value"],
        wanted["text"],
        wanted["implicit"],
        topic["ask"],
        tuple(topic["cues"]),
    )
