"""UserRL's TurtleGym; only stories judged "Yes" are used.

key -> `{"new_title", "new_surface", "new_bottom", "evaluation": [{"statement", "score"}],
"judgment", …}`

The stories are violent in part and of unknown origin: load them, never pass them on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.turns.cues import derived
from mimesim.envs.userrl.base import Record, Source, keyed, made, text
from mimesim.errors import DataError

NEAR = 0.5
"""Share of words that two stories have in common from which on they are one family."""


def records(file: str, document: Any) -> Iterable[Record]:
    """Return the stories that were found fit."""
    return (r for r in keyed(file, document) if r.value.get("judgment") == "Yes")


def task(record: Record) -> Task:
    """Return the task of a story; a point is told when the words of its statement are.

    Raises:
        DataError: a text is missing, or the points carry no weights.
    """
    surface = text(record.value, "new_surface", record.key)
    listed = record.value.get("evaluation")
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise DataError(f"evaluation is {listed!r:.60}", where=record.key, expected="objects")
    criteria = [
        {
            "id": f"c{place}",
            "statement": text(one, "statement", record.key),
            "weight": one.get("score"),
        }
        for place, one in enumerate(listed, 1)
    ]
    bottom = text(record.value, "new_bottom", record.key)
    statements = " ".join(str(one["statement"]) for one in criteria)
    return made(
        "turtle",
        record,
        groups=[f"story:{record.key}"],
        public={"title": text(record.value, "new_title", record.key), "surface": surface},
        hidden={
            "bottom": bottom,
            "criteria": criteria,
            "script": [],
            "cues": {
                str(one["id"]): derived(str(one["statement"]), [surface])
                or derived(str(one["statement"]))
                or [[str(one["statement"])]]
                for one in criteria
            },
            "oracle_trace": [["answer", f"{bottom} {statements}"]],
        },
        goal="Have somebody find out what is behind the story.",
    )


def families(tasks: Sequence[Task]) -> list[tuple[str, ...]]:
    """Return the group of each story: stories that share most words are one, through others too."""
    told = [_words(task) for task in tasks]
    family = list(range(len(tasks)))

    def root(place: int) -> int:
        while family[place] != place:
            family[place] = family[family[place]]
            place = family[place]
        return place

    for i, first in enumerate(told):
        for j in range(i):
            common = len(first & told[j])
            if common >= NEAR * (len(first) + len(told[j]) - common):
                family[root(i)] = root(j)
    return [tasks[root(place)].groups for place in range(len(tasks))]


def _words(task: Task) -> set[str]:
    return set(re.findall(r"\w+", str(task.hidden["bottom"]).lower()))


SOURCE = Source(
    gym="turtle",
    group="a story of mostly the same words",
    files=("gyms/TurtleGym/turtlegym/data/all_stories_refined.json",),
    folders=("data/turtle_multiturn",),
    records=records,
    task=task,
    names="title",
    name_of=lambda record: str(record.value.get("new_title", "")),
    regroup=families,
)
