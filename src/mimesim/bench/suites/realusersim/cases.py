"""The cases of the paired test: a person's chat, what is known of them, and what they wanted.

Read from the user's copy of `Salesforce/RealUserSim` (its folder, one of its test sets), or from our
own invented cases. A conversation that stands in two test sets is two cases unless `dedup` is asked.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim import jsonio, seeds
from mimesim.corpora.base import Unfit
from mimesim.corpora.formats.realusersim import FORMAT
from mimesim.errors import DataError, UsageError

OWN = Path(__file__).parents[1] / "packs" / "realusersim.jsonl"
CONDITIONS = ("correct_profile", "task_only", "shuffled_profile")
TRAITS = (
    "age",
    "gender",
    "occupation",
    "education",
    "location",
    "income",
    "marital_status",
)
MESSAGES = 9
"""Both transcripts are cut to so many messages before the user's are kept."""
CLOSE = "/close"
_UNSAID = ("", "null", "none", "unknown")
_EXPECTED = {"cases": 600, "people": 460, "most cases of one person": 8, "twice": 8, "full": 546}


@dataclass(frozen=True, slots=True)
class Case:
    """One person's chat.

    Attributes:
        id: `<test set>-<test_id>`. person: address that tells people apart. talk: of the chat.
        messages: (user or assistant, text) as people said them.
        traits: demographics that are known, in the order of `TRAITS`.
        commands: how the person writes, as commands; empty where the profile is dropped.
    """

    id: str
    person: str
    talk: str
    messages: tuple[tuple[str, str], ...]
    traits: Mapping[str, str]
    commands: str
    problem: str
    conditions: str


def load_cases(data: str = "", *, dedup: bool = False) -> list[Case]:
    """Return the cases at a place.

    Args:
        data: folder of the data set, of its test sets, or one of their files; empty = our own.
        dedup: keep only the first case of every conversation.

    Raises:
        DataError: no file, a damaged row, an empty problem, conditions or profile, an id twice.
    """
    found: list[Case] = []
    for file in _files(data):
        for line in jsonio.read_jsonl(file):
            found.append(_case(line.value, file.stem, f"{file}:{line.number}"))
    twice = [name for name, n in Counter(one.id for one in found).items() if n > 1]
    if twice or not found:
        what = f"the case {twice[0]!r} stands there twice" if twice else "no case"
        raise DataError(what, where=data or str(OWN), expected="test sets of RealUserSim")
    first = {one.talk: one.id for one in reversed(found)}
    return [one for one in found if not dedup or first[one.talk] == one.id]


def _files(data: str) -> list[Path]:
    if not data:
        return [OWN]
    place = Path(data)
    if place.is_file():
        return [place]
    for folder in (place / "evaluation" / "test_sets", place / "test_sets", place):
        files = sorted(folder.glob("*.jsonl"))
        if files:
            return files
    raise DataError(
        "no test set here",
        where=data,
        expected="a copy of Salesforce/RealUserSim, with evaluation/test_sets/*.jsonl",
    )


def _case(value: Any, split: str, where: str) -> Case:
    if not isinstance(value, Mapping) or "test_id" not in value:
        raise DataError("no case", where=where, expected="a row of a test set, with test_id")
    try:
        (dialogue,) = FORMAT.convert(value, {})
    except Unfit as unfit:
        raise DataError(f"no case: {unfit.detail}", where=where) from None
    hidden = dialogue.hidden
    told = {
        "problem_desc": dialogue.goal,
        "solution_conditions": str(hidden.get("conditions") or "").strip(),
        "linguistic_profile": str(hidden.get("linguistic_profile") or "").strip(),
    }
    for key, text in told.items():
        if not text:
            raise DataError(f"{key} is empty", where=where, expected="a text")
    if not any(turn.role == "user" for turn in dialogue.turns[:MESSAGES]):
        raise DataError("the person says nothing", where=where, expected="a message of role user")
    roles = {"user": "user", "agent": "assistant"}
    known = hidden.get("demographics") or {}
    traits = {name: str(known.get(name, "")).strip() for name in TRAITS}
    return Case(
        id=f"{split}-{value['test_id']}",
        person=dialogue.user_key or f"{split}-{value['test_id']}",
        talk=dialogue.id,
        messages=tuple((roles[turn.role], turn.text) for turn in dialogue.turns),
        traits={name: text for name, text in traits.items() if text.casefold() not in _UNSAID},
        commands=told["linguistic_profile"],
        problem=told["problem_desc"],
        conditions=told["solution_conditions"],
    )


def sattolo(n: int, seed: int) -> list[int]:
    """Return one cycle over all of `n` places, so that nobody is their own donor."""
    rng, order = seeds.plain(seed), list(range(n))
    for i in range(n - 1, 0, -1):
        j = rng.randrange(i)
        order[i], order[j] = order[j], order[i]
    return order


def under(cases: Sequence[Case], condition: str, seed: int) -> list[Case]:
    """Return the cases with the profile that a condition gives.

    Raises:
        UsageError: no such condition.
    """
    if condition not in CONDITIONS:
        raise UsageError(f"no condition {condition!r}", expected="one of " + ", ".join(CONDITIONS))
    if condition == "correct_profile":
        return list(cases)
    if condition == "task_only":
        return [dataclasses.replace(one, traits={}, commands="") for one in cases]
    donors = [cases[place] for place in sattolo(len(cases), seed)]
    return [
        dataclasses.replace(one, traits=donor.traits, commands=donor.commands)
        for one, donor in zip(cases, donors, strict=True)
    ]


def cut(messages: Sequence[tuple[str, str]], *, synthetic: bool) -> list[str]:
    """Return the user's messages among the first nine of both sides.

    The simulated user's end marker is taken out; a message of nothing else is dropped.
    """
    said = [text for role, text in messages[:MESSAGES] if role == "user"]
    if not synthetic:
        return said
    return [text for text in (one.replace(CLOSE, "").strip() for one in said) if text]


def figures(cases: Sequence[Case]) -> dict[str, str]:
    """Return what the data holds, beside what the published set holds."""
    persons = Counter(one.person for one in cases)
    talks = Counter(one.talk for one in cases)
    full = sum(len(cut(one.messages, synthetic=False)) == 5 for one in cases)
    found = {
        "cases": len(cases),
        "people": len(persons),
        "most cases of one person": max(persons.values(), default=0),
        "twice": sum(n > 1 for n in talks.values()),
        "full": full,
    }
    return {name: f"{n} (published: {_EXPECTED[name]})" for name, n in found.items()}
