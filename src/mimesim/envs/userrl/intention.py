"""UserRL's IntentionGym (the vague tasks of IN3).

`[{"id", "category", "task", "missing_details": [{"description", "importance": "1" to "3",
"inquiry"?, "options"?}]}]`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.packs import fold
from mimesim.envs.turns.cues import derived
from mimesim.envs.userrl.base import Record, Source, listed, made, text
from mimesim.errors import DataError

UNDECIDED = "no preference"
"""What the person has in mind where the record offers nothing."""


def task(record: Record) -> Task:
    """Return the task of a record; the same vague task twice is one group.

    Raises:
        DataError: a text is missing, or an importance is none.
    """
    wanted = text(record.value, "task", record.key)
    missing = record.value.get("missing_details")
    if not isinstance(missing, list) or not all(isinstance(one, Mapping) for one in missing):
        raise DataError(f"missing_details is {missing!r:.60}", where=record.key, expected="objects")
    details = [_detail(one, place, record.key) for place, one in enumerate(missing)]
    return made(
        "intention",
        record,
        groups=[f"task:{fold(wanted)}"],
        public={"category": text(record.value, "category", record.key), "task": wanted},
        hidden={
            "details": details,
            "cues": {str(one["id"]): _cue(one, wanted) for one in details},
            "oracle_trace": [["action", one["inquiry"]] for one in details],
        },
        goal=f"Have this done: {wanted}",
    )


def _detail(value: Mapping[str, Any], place: int, where: str) -> dict[str, Any]:
    description = text(value, "description", where)
    importance = str(value.get("importance"))
    if importance not in ("1", "2", "3"):
        raise DataError(f"importance is {importance!r:.20}", where=where, expected="1, 2 or 3")
    options = [one for one in value.get("options") or [] if isinstance(one, str) and one.strip()]
    inquiry = value.get("inquiry")
    return {
        "id": place,
        "description": description,
        "importance": int(importance),
        "inquiry": inquiry if isinstance(inquiry, str) and inquiry.strip() else description,
        "options": options,
        **({} if options else {"answer": UNDECIDED}),
    }


def _cue(detail: Mapping[str, Any], wanted: str) -> list[list[str]]:
    told = f"{detail['description']} {detail['inquiry']}"
    return derived(told, [wanted]) or derived(told) or [[detail["description"]]]


SOURCE = Source(
    gym="intention",
    group="the text of the task",
    files=(
        "gyms/IntentionGym/intentiongym/data/all_intentions_train.json",
        "gyms/IntentionGym/intentiongym/data/all_intentions_test.json",
    ),
    folders=("data/intention_multiturn",),
    records=listed,
    task=task,
)
