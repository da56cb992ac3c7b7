"""UserRL's TravelGym, one file per variant, keys such as `flight:3-128|hotel:3-39`.

key -> `{"dimensions": [...], "initial_description", <dimension>: {"preferences": [[topic, subtopic,
preference, implicit statement, …]], "options": {"correct": [...], "wrong": [...], "noise": [...]},
"arguments": {...}, "correct_ids": [...], "best_id"}}`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.gyms.travel.tasks import oracle_trace
from mimesim.envs.turns.cues import derived
from mimesim.envs.userrl.base import Record, Source, keyed, made, text
from mimesim.errors import DataError

VARIANTS = ("22", "33", "44", "233", "333", "334", "444", "2222")
_WHOLE = 4  # shorter preference lists are passed over, as the original does
_FILE = "travelgym_data_"
_LIMITED = (
    "Money is short: of everything that suits me I want the cheapest option for each of them."
)


def task(record: Record) -> Task:
    """Return the task of a scenario; its groups are the keys of its aspects.

    Raises:
        DataError: something is missing.
    """
    value, where = record.value, record.key
    names = value.get("dimensions")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError(f"dimensions is {names!r:.60}", where=where, expected="a list of names")
    numbered = iter(range(1, 1000))
    aspects = {name: _aspect(value.get(name), numbered, f"{where}, {name}") for name in names}
    hidden = {"dimensions": names, "aspects": aspects}
    questions = {
        wish["id"]: f"What about {wish['topic']}: {', '.join(_telling(wish))}?"
        for name in names
        for wish in aspects[name]["preferences"]
    }
    found = made(
        "travel",
        record,
        groups=where.split("|"),
        public={"initial": f"{text(value, 'initial_description', where).strip()}\n{_LIMITED}"},
        hidden={**hidden, "oracle_trace": oracle_trace(hidden, questions)},
        goal=str(value.get("scenario", "")) or "Book what suits you.",
    )
    variant = record.file.removeprefix(_FILE)
    return replace(found, meta={**found.meta, "variant": variant, "cues": "derived"})


def _aspect(value: Any, numbered: Iterator[int], where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError("the aspect has no record", where=where, expected="a JSON object")
    options, wishes = value.get("options"), value.get("preferences")
    if not isinstance(options, Mapping) or not isinstance(wishes, list):
        raise DataError("options or preferences are missing", where=where)
    return {
        "preferences": [
            {
                "id": f"P{next(numbered)}",
                "text": str(wish[2]),
                "implicit": str(wish[3]),
                "topic": str(wish[0]),
            }
            for wish in wishes
            if isinstance(wish, list) and len(wish) >= _WHOLE
        ],
        "arguments": value.get("arguments"),
        "options": [
            {**one, "type": kind}
            for kind in ("correct", "wrong", "noise")
            for one in options.get(kind) or []
            if isinstance(one, Mapping)
        ],
        "best_id": value.get("best_id"),
        "correct_ids": value.get("correct_ids"),
    }


def _telling(wish: Mapping[str, Any]) -> list[str]:
    return [word for [word] in derived(wish["text"])]


SOURCE = Source(
    gym="travel",
    group="the record of an aspect",
    files=tuple(f"gyms/TravelGym/travelgym/data/{_FILE}{name}.json" for name in VARIANTS),
    folders=tuple(f"data/travel{name}_multiturn_onechoice" for name in VARIANTS),
    records=keyed,
    task=task,
)
