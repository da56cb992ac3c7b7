"""MultiDoGO: customers of six kinds of services and their agents (CDLA-Permissive-1.0).

    paper_splits/…/<domain>/<part>.tsv   conversationId, turnNumber, utterance, slot-labels, intent
    unannotated/<domain>.tsv             conversationId, turnNumber, utteranceId, utterance, authorRole

The annotated files hold the customers' turns only, in lower case and without punctuation. Such a
dialogue is marked `one_sided`: good for statistics of style and length, not for training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora import places
from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Record, Unfit
from mimesim.corpora.formats.chats import required
from mimesim.corpora.formats.layout import named, part_of, role_of
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized

INFO = CorpusInfo(
    name="multidogo",
    license="CDLA-Permissive-1.0",
    redistributable="yes",
    training_allowed="yes",
    citation="Peskov et al. (2019), Multi-Domain Goal-Oriented Dialogues (MultiDoGO): Strategies "
    "toward Curating and Annotating Large Scale Dialogue Data, EMNLP-IJCNLP 2019",
    moderated=True,
)

ONE_SIDED = "one_sided"
"""The flag of a dialogue in which only the learnt side is there."""

_ROLES = {"customer": "user", "agent": "agent"}
_ROW = frozenset({"conversationId", "turnNumber", "utterance"})


def _convert(value: Any, options: Mapping[str, Any]) -> Iterable[HumanDialogue]:
    row = value if is_normalized(value) else _normalized(required(value, "conversation", "rows"))
    dialogue = convert_normalized(row, INFO)
    alone = not any(turn.role == "agent" for turn in dialogue.turns)
    flags = (*dialogue.flags, ONE_SIDED) if alone else dialogue.flags
    yield replace(dialogue, flags=flags, language="en")


def _normalized(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": named(("multidogo", value.get("domain"), value.get("part"), value["conversation"])),
        "split": value.get("part"),
        "domain": value.get("domain"),
        "turns": [_turn(row) for row in sorted(value["rows"], key=_number)],
    }


def _turn(row: Mapping[str, str]) -> dict[str, Any]:
    role = role_of(row, "authorRole", "authorRole", _ROLES) if "authorRole" in row else "user"
    return {"role": role, "text": row["utterance"]}


def _number(row: Mapping[str, str]) -> float:
    try:
        return float(row["turnNumber"])  # some files count 0.0, 2.0, …
    except ValueError:
        raise Unfit("bad_order", f"the turn number {row['turnNumber'][:40]!r}") from None


def _gather(records: Iterator[Record]) -> Iterator[Record]:
    """Join the rows of a conversation; they stand together in a file."""
    waiting: Record | None = None
    for record in records:
        row = record.value
        if not isinstance(row, Mapping) or not row.keys() >= _ROW:
            yield record
            continue
        path, part = places.file_of(record.where), part_of(record.where)
        key = (path, row["conversationId"])
        if waiting is not None and waiting.value["key"] == key:
            waiting.value["rows"].append(row)
            continue
        if waiting is not None:
            yield waiting
        domain = path.parent.name if part else path.name.partition(".")[0]
        known = {"key": key, "conversation": row["conversationId"], "domain": domain, "part": part}
        waiting = Record(record.where, {**known, "rows": [row]})
    if waiting is not None:
        yield waiting


def _claims(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() >= _ROW


FORMAT = Format(
    info=INFO, convert=_convert, claims=_claims, gather=_gather, files=(".tsv", ".jsonl")
)
