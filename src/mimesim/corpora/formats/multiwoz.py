"""MultiWOZ in its three shapes: tourists with a goal that they were given, and clerks (MIT).

    2.0, 2.1, ConvLab   {"PMUL1.json": {"goal": {"message": […], "hotel": {…}}, "log": [{"text"}]}}
    2.2                 [{"dialogue_id", "services", "turns": [{"speaker", "utterance", "frames"}]}]
    ConvLab-3           [{"dataset", "data_split", "dialogue_id", "original_id", "goal":
                          {"description", …}, "turns": [{"speaker", "utterance", "utt_idx"}]}]

The keys tell them apart. In the first one the user speaks at even places, and the parts stand in
lists beside the file. 2.2 has no goal text. One dialogue, SNG01862, is known to be invalid.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from mimesim.corpora import places
from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Record, Unfit
from mimesim.corpora.formats.chats import required
from mimesim.corpora.formats.layout import named, part_of, speech
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized
from mimesim.corpora.formats.sgd import FILES, ROLES, framed, is_framed

INFO = CorpusInfo(
    name="multiwoz",
    license="MIT",
    redistributable="yes",
    training_allowed="yes",
    citation="Budzianowski et al. (2018), MultiWOZ: A Large-Scale Multi-Domain Wizard-of-Oz "
    "Dataset for Task-Oriented Dialogue Modelling, arXiv 1810.00278",
    moderated=True,
)

INVALID = frozenset({"SNG01862"})

_TAG = re.compile(r"<[^<>]*>")
_LISTS = {
    "validation": ("valListFile.json", "valListFile.txt"),
    "test": ("testListFile.json", "testListFile.txt"),
}


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if is_normalized(value):
        row = value
    elif isinstance(value, Mapping) and "log" in value:
        row = _logged(required(value, "dialogue_id", "log", "goal"))
    elif is_framed(value):
        name = str(value["dialogue_id"]).removesuffix(".json")
        row = framed({**value, "dialogue_id": name}, "multiwoz")
    else:
        row = _unified(required(value, "dialogue_id", "turns", "goal"))
    name = str(row.get("id", "")).rpartition("/")[2]
    if name in INVALID:
        raise Unfit("invalid_dialogue", f"{name} is known to be damaged")
    dialogue = convert_normalized(row, INFO)
    goals = (dialogue.goal,) if dialogue.goal else ()
    yield replace(dialogue, language="en", group_keys=goals)


def _logged(row: Mapping[str, Any]) -> dict[str, Any]:
    log, goal = row["log"], row["goal"]
    if not isinstance(log, list) or not all(isinstance(entry, Mapping) for entry in log):
        raise Unfit("no_conversation", "no conversation here: 'log' is not a list of objects")
    goal = goal if isinstance(goal, Mapping) else {}
    part = row.get("part")
    return {
        "id": named(("multiwoz", part, row["dialogue_id"])),
        "split": part,
        "goal": _plain(goal.get("message")),
        "goal_slots": {
            domain: {key: slots for key, slots in wanted.items() if slots}
            for domain, wanted in goal.items()
            if isinstance(wanted, Mapping) and wanted and domain != "topic"
        },
        "turns": [
            {"role": "agent" if place % 2 else "user", "text": entry.get("text")}
            for place, entry in enumerate(log)
        ],
    }


def _unified(row: Mapping[str, Any]) -> dict[str, Any]:
    goal = row["goal"] if isinstance(row["goal"], Mapping) else {}
    part = row.get("data_split") or row.get("part")
    name = str(row.get("original_id") or row["dialogue_id"]).removesuffix(".json")
    return {
        "id": named(("multiwoz", part, name)),
        "split": part,
        "goal": _plain(goal.get("description")),
        "goal_slots": {key: goal[key] for key in ("inform", "request") if goal.get(key)},
        "turns": speech(row["turns"], "turns", speaker="speaker", text="utterance", roles=ROLES),
    }


def _plain(message: Any) -> str:
    """Return a goal, one text or a list of sentences, without its HTML."""
    if not isinstance(message, list):
        message = [message]
    texts = [
        " ".join(html.unescape(_TAG.sub("", part)).split())
        for part in message
        if isinstance(part, str)
    ]
    if len(texts) == 1:
        return texts[0]
    return " ".join(
        text if text.endswith((".", "?", "!")) else f"{text}." for text in texts if text
    )


def _gather(records: Iterator[Record]) -> Iterator[Record]:
    """Add the key of a dialogue and its part to the value."""
    for record in records:
        if not isinstance(record.value, Mapping) or is_normalized(record.value):
            yield record
            continue
        value = dict(record.value)
        if "log" in value:
            key = places.entry(record.where).removesuffix(".json")
            value.setdefault("dialogue_id", key)
            part = part_of(record.where) or _listed(places.file_of(record.where).parent, key)
        else:
            part = part_of(record.where)
        yield record._replace(value={**value, "part": part} if part else value)


def _listed(folder: Path, name: str) -> str:
    """Return the part of a dialogue of 2.0 or 2.1: the lists name what is not for training."""
    lists = _lists(folder)
    if not lists:
        return ""
    return next((part for part, names in lists.items() if name in names), "train")


@lru_cache(maxsize=4)
def _lists(folder: Path) -> Mapping[str, frozenset[str]]:
    found = {}
    for part, files in _LISTS.items():
        for path in (folder / file for file in files):
            if path.is_file():  # lines of names, whatever the ending says
                lines = path.read_text("utf-8", "replace").split("\n")
                found[part] = frozenset(line.strip().removesuffix(".json") for line in lines)
    return found


def _claims(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    logged = {"goal", "log"} <= value.keys()
    unified = {"dataset", "data_split", "dialogue_id", "turns"} <= value.keys()
    return logged or unified or is_framed(value)


FORMAT = Format(
    info=INFO,
    convert=_convert,
    claims=_claims,
    gather=_gather,
    files=("data.json", "dialogues.json", "train.json", "val.json", "test.json", *FILES),
)
