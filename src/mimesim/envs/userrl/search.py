"""UserRL's SearchGym (Bamboogle): `[{"id", "question", "answer"}]`; for evaluation only."""

from __future__ import annotations

from mimesim.envs.base import Task
from mimesim.envs.userrl.base import Record, Source, listed, made, text


def task(record: Record) -> Task:
    """Return the task of a record; which documents answer it is not known.

    Raises:
        DataError: question or answer is missing.
    """
    answer = text(record.value, "answer", record.key)
    return made(
        "search",
        record,
        groups=[f"question:{record.key}"],
        public={"question": text(record.value, "question", record.key)},
        hidden={
            "answer": answer,
            "aliases": [],
            "support": [],
            "oracle_trace": [["answer", answer]],
        },
    )


SOURCE = Source(
    gym="search",
    group="the question",
    files=("gyms/SearchGym/searchgym/data/questions.json",),
    folders=("data/bamboogle_multiturn",),
    records=listed,
    task=task,
    evaluation_only=True,
)
