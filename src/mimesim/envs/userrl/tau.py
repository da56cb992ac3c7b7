"""UserRL's TauGym; its tools and databases are those of tau-bench, which is needed to play.

`[{"id", "obs", "info": {"task": {"user_id", "actions", "instruction", "outputs"}}}]`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.gyms.tau.bench import TRANSFER, is_floor
from mimesim.envs.gyms.tau.calls import written
from mimesim.envs.gyms.tau.domain import Call
from mimesim.envs.userrl.base import Record, Source, listed, made, text
from mimesim.errors import DataError


def task(record: Record) -> Task:
    """Return the task of a record, under the id that tau-bench's own tasks have here.

    Raises:
        DataError: something is missing.
    """
    info = record.value.get("info")
    told = info.get("task") if isinstance(info, Mapping) else None
    if not isinstance(told, Mapping):
        raise DataError("info.task is missing", where=record.key, expected="a JSON object")
    domain = "retail" if "retail" in record.key else "airline"
    person = text(told, "user_id", record.key)
    instruction = text(told, "instruction", record.key)
    found = made(
        "tau",
        record,
        groups=[f"{domain}:{person}"],
        public={"profile": domain, "first_message": text(record.value, "obs", record.key)},
        hidden={
            "instruction": instruction,
            "actions": told.get("actions"),
            "outputs": told.get("outputs"),
            "user_id": person,
            "oracle_trace": _trace(told),
        },
        goal=instruction,
    )
    meta = {**found.meta, "cues": "derived", "floor": int(is_floor(record.key))}
    return replace(found, id=record.key, meta=meta)


def _trace(told: Mapping[str, Any]) -> list[list[str]]:
    """Return the gold calls but handing over, then a line that holds all required outputs."""
    calls = [
        Call(one["name"], one["kwargs"])
        for one in told.get("actions") or []
        if isinstance(one, Mapping) and {"name", "kwargs"} <= one.keys() and one["name"] != TRANSFER
    ]
    closing = " ".join(["Everything is done.", *map(str, told.get("outputs") or [])])
    return [*(["answer", written(call)] for call in calls), ["action", closing]]


SOURCE = Source(
    gym="tau",
    group="the customer",
    files=(
        "gyms/TauGym/taugym/data/tau_train.json",
        "gyms/TauGym/taugym/data/tau_test.json",
    ),
    folders=("data/tau_multiturn",),
    records=listed,
    task=task,
)
