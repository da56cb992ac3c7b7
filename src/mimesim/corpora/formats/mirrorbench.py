"""MirrorBench: chats of people with models, each with a description of the task (Apache-2.0).

    {"dataset", "conversation_id", "task_description", "turns": [{"role", "content", "metadata"}],
     "metadata"}

The description is the goal; a model wrote it. Chats from Open Assistant bear the id of their tree,
which is their group. Ratings of judges have no dialogue. For measurements only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Unfit
from mimesim.corpora.formats.chats import plain, read_chat, required, stripped
from mimesim.corpora.formats.languages import language_code
from mimesim.corpora.formats.normalized import convert_normalized, identity, is_normalized

INFO = CorpusInfo(
    name="mirrorbench",
    license="Apache-2.0",
    redistributable="yes",
    training_allowed="yes",
    citation="MirrorBench (2026), arXiv 2601.08118",
    moderated=True,
    evaluation_only=True,
)

_TREES = "oasst1"


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    if isinstance(value, Mapping) and "human_label" in value:
        raise Unfit("no_dialogue", "a label of a person beside a score of a judge")
    if is_normalized(value):
        dialogue = convert_normalized(value, INFO)
        dataset, _, tree = dialogue.id.removeprefix("mirrorbench_").partition("/")
        return [replace(dialogue, group_keys=_group(dataset, tree))]
    row = required(value, "dataset", "conversation_id", "task_description", "turns")
    chat = read_chat(row["turns"], "turns")
    dataset, name = identity(row["dataset"]), identity(row["conversation_id"])
    about = row.get("metadata")
    about = about if isinstance(about, Mapping) else {}
    return [
        HumanDialogue(
            id=f"mirrorbench_{dataset}/{name}",
            turns=chat.turns,
            source=INFO.name,
            goal=stripped(row["task_description"]),
            context=chat.system,
            hidden=plain(about, *about),
            group_keys=_group(dataset, name),
            language=language_code(about.get("language", about.get("lang"))),
            left_out=chat.left_out,
        )
    ]


def _group(dataset: str, name: str) -> tuple[str, ...]:
    return (name,) if dataset == _TREES and name else ()


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and {"task_description", "turns", "dataset"} <= value.keys()


FORMAT = Format(info=INFO, convert=_convert, claims=_claims, files=(".jsonl",))
