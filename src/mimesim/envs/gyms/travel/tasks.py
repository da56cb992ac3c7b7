"""Tasks of the gym `travel`: the shape of a task line, and own tasks made from a seed.

A line, beside what every task has (`envs.packs`):

    public.initial      str   the traveler's first request; it holds every value of `arguments`
    public.aspects      list  names of the aspects, only where `initial` names them (may lack)
    hidden.dimensions   list  the aspects, a subset of flight, hotel, apartment, rental_car,
                              restaurant, each once; their number is A
    hidden.aspects      dict  one record per aspect:
        preferences     list  of {"id", "text", "implicit", "topic"}: id unique in the task; `text`
                              is the wish in plain words; `implicit` is said instead; `topic` (may
                              lack) is what it is about, the first field of the original's list.
                              The list may be empty.
        arguments       dict  what a search must name, strings, numbers or nestings of them
        options         list  of flat objects with "id" (the aspect's letter F, H, A, C or R and a
                              number, each once); "type" (correct, wrong, noise) and "reason" are
                              never shown
        best_id         str   the option worth 1; one of correct_ids
        correct_ids     list  options worth .8 at least
    hidden.cues         dict  preference id -> words or phrases that a question about it holds, a
                              list among them = all of its words (may lack for any preference:
                              content words of its `text` that no other preference has)
    hidden.scenario     dict  who the traveler is, profile `asked`: see `scenario_of`
    hidden.oracle_trace list  [choice, content] pairs: see `oracle_trace`
    groups              list  one key per aspect record, e.g. `flight:3-128`
    meta.variant        str   preferences per aspect, one digit each: 22, 333, ...
    meta.cues           str   "derived" where there are no cues

A task is read by `trip.read_trip`, which tells what is wrong. The keys of one task may belong to
different splits; such a task is discarded (`common_split` is None).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.gyms.travel import pool
from mimesim.envs.gyms.travel.trip import LETTERS
from mimesim.envs.turns.splits import split_of
from mimesim.errors import DataError, UsageError
from mimesim.seeds import generator

VARIANTS = ("22", "33", "222", "333")
"""What own tasks are made of unless asked otherwise."""
MAX_STEPS = 16
_TRIES = 50


def make_tasks(split: str, seed: int, count: int, variants: Sequence[str] = VARIANTS) -> list[Task]:
    """Return `count` own tasks of a split, the variants in turn; no two are alike.

    Records of one split only come together, so no task has to be discarded here.

    Args:
        split: train, validation or test.
        seed: equal arguments give equal tasks.
        count: how many.
        variants: preferences per aspect, one digit from 2 to 4 each, for 2 to 5 aspects.

    Raises:
        UsageError: a variant that there are no records for.
        DataError: the split is too small for so many different tasks.
    """
    for variant in variants:
        _check_variant(variant)
    rng = generator(seed, "travel-tasks", split)
    tasks: list[Task] = []
    seen: set[tuple[str, ...]] = set()
    for tried in range(_TRIES * count + _TRIES):
        if len(tasks) == count:
            return tasks
        variant = variants[(len(tasks) + tried // _TRIES) % len(variants)]
        records = _records(rng, split, variant)
        if records is None:
            continue
        words = pool.trip_words(rng, split)
        told = (*(record.key for record in records), *words.values())
        if told not in seen:
            seen.add(told)
            name = f"ms-tr-{split}-{seed}-{len(tasks):05d}"
            tasks.append(_task(name, split, variant, records, words))
    raise DataError(
        f"only {len(tasks)} different tasks of {count} were found", where=f"travel, {split}"
    )


def common_split(groups: Sequence[str]) -> str | None:
    """Return the split that all keys of a task belong to; None = they differ, discard the task."""
    splits = {split_of("travel", group) for group in groups}
    return splits.pop() if len(splits) == 1 else None


def scenario_of(name: str, goal: str) -> dict[str, Any]:
    """Return the scenario of a traveler; what is wished comes with each question instead."""
    return {"id": name, "goal": goal, "meta": {"profile": "asked"}}


def oracle_trace(hidden: Mapping[str, Any], questions: Mapping[str, str]) -> list[list[str]]:
    """Return the best play in 16 steps: questions first, then searches as fit, then answers.

    Args:
        hidden: `dimensions` and `aspects` of a task.
        questions: preference id -> a question that asks for it.
    """
    names = hidden["dimensions"]
    asked = [["action", question] for question in questions.values()][: MAX_STEPS - len(names)]
    searches = [
        ["search", f"{name.replace('_', ' ')}: " + ", ".join(map(str, arguments.values()))]
        for name in names
        for arguments in [hidden["aspects"][name]["arguments"]]
    ][: MAX_STEPS - len(names) - len(asked)]
    answers = [["answer", hidden["aspects"][name]["best_id"]] for name in names]
    return [*asked, *searches, *answers]


def _check_variant(variant: str) -> None:
    digits = [int(digit) for digit in variant if digit in "234"]
    if len(digits) != len(variant) or not 2 <= len(digits) <= len(LETTERS):
        raise UsageError(
            f"gym 'travel' has no variant {variant!r}",
            expected="two to five digits from 2 to 4, e.g. 33",
        )


def _records(rng: random.Random, split: str, variant: str) -> list[pool.Record] | None:
    """Draw one record of this split per digit, of different aspects; None = there are too few."""
    chosen: list[pool.Record] = []
    for digit in variant:
        taken = {record.aspect for record in chosen}
        fitting = [one for one in _of_split(split, int(digit)) if one.aspect not in taken]
        if not fitting:
            return None
        aspect = rng.choice(sorted({record.aspect for record in fitting}))
        chosen.append(rng.choice([record for record in fitting if record.aspect == aspect]))
    return chosen


@cache
def _of_split(split: str, wishes: int) -> tuple[pool.Record, ...]:
    return tuple(
        record
        for record in pool.records()
        if len(record.wishes) == wishes and common_split([record.key]) == split
    )


def _task(
    name: str,
    split: str,
    variant: str,
    records: Sequence[pool.Record],
    words: Mapping[str, str],
) -> Task:
    aspects: dict[str, Any] = {}
    cues: dict[str, list[str]] = {}
    questions: dict[str, str] = {}
    for record in records:
        preferences = []
        for wish in record.wishes:
            key = f"P{len(cues) + 1}"
            preferences.append(
                {"id": key, "text": wish.text, "implicit": wish.implicit, "topic": wish.topic}
            )
            cues[key] = list(wish.cues)
            questions[key] = wish.ask
        aspects[record.aspect] = {
            "preferences": preferences,
            "arguments": record.arguments(words),
            **pool.offers(record),
        }
    hidden: dict[str, Any] = {
        "dimensions": [record.aspect for record in records],
        "aspects": aspects,
        "cues": cues,
    }
    requests = [record.request(words) for record in records]
    initial = " ".join([words["opening"], *requests])
    hidden["oracle_trace"] = oracle_trace(hidden, questions)
    goal = f"{words['opening']} You travel to {words['place']} and let somebody else book it."
    hidden["scenario"] = scenario_of(name, goal)
    return Task(
        gym="travel",
        id=name,
        split=split,
        groups=tuple(record.key for record in records),
        public={"initial": initial, "aspects": list(hidden["dimensions"])},
        hidden=hidden,
        meta={
            "source": "mimesim",
            "license": "Apache-2.0",
            "generator": "mimesim.envs.gyms.travel.tasks",
            "variant": variant,
            "schema": 1,
        },
    )
