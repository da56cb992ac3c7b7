"""UserRL's TelepathyGym: `[{"id", "title", "description", "goal", "target_entity", "category"}]`."""

from __future__ import annotations

from mimesim.envs.base import Task
from mimesim.envs.turns.cues import derived
from mimesim.envs.userrl.base import Record, Source, listed, made, text


def task(record: Record) -> Task:
    """Return the task of a record; what is true of the thing are the words of its description.

    Raises:
        DataError: a text is missing.
    """
    title = text(record.value, "title", record.key)
    target = text(record.value, "target_entity", record.key)
    category = text(record.value, "category", record.key)
    words = [word for [word] in derived(target, [title])]
    return made(
        "telepathy",
        record,
        groups=[f"category:{category}"],
        public={
            "intro": text(record.value, "description", record.key),
            "kind": category.replace("_", " "),
        },
        hidden={
            "title": title,
            "target": target,
            "aliases": [],
            "attributes": dict.fromkeys(words, True),
            "cues": {word: [word] for word in words},
            "oracle_trace": [["answer", title]],
        },
        goal=f"Have somebody guess what you think of: {target}",
    )


SOURCE = Source(
    gym="telepathy",
    group="the category",
    files=("gyms/TelepathyGym/telepathygym/data/all_entities_refined.json",),
    folders=("data/telepathy_multiturn",),
    records=listed,
    task=task,
    names="title",
    name_of=lambda record: str(record.value.get("title", "")),
)
