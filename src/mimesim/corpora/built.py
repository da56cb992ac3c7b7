"""The folder that `mimesim data build` writes: its names, and reading it back.

`train`, `validation` and `test` (.jsonl or .parquet) hold canonical rows in hash order; `build.json`,
which is written last, the settings, the hashes of the sources and all counts; `card.md` and
`card.json` what is in it and under which terms; `rejects.jsonl` what was left out, where and why,
without any text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.corpora import raw, rows
from mimesim.corpora.base import Corpus, CorpusInfo, HumanDialogue
from mimesim.corpora.splits import PARTS
from mimesim.errors import DataError

SCHEMA = "mimesim.build/1"
MANIFEST, CARD, CARD_TEXT, REJECTS = "build.json", "card.json", "card.md", "rejects.jsonl"
WORK = ".build"
"""Folder of an unfinished build."""


def is_built(folder: Path) -> bool:
    """Tell whether a folder holds a finished build."""
    try:
        return (folder / MANIFEST).is_file()
    except OSError:  # a name that no folder can have, or one that may not be looked into
        return False


def manifest(folder: Path) -> dict[str, Any]:
    """Return what is known of a build.

    Raises:
        DataError: missing, damaged, or of another schema.
    """
    found = jsonio.read_object(folder / MANIFEST, "schema", "sources", "files")
    if found["schema"] != SCHEMA:
        raise DataError(
            f"the schema {found['schema']!r}", where=str(folder / MANIFEST), expected=SCHEMA
        )
    return found


def read_part(folder: Path, part: str) -> Iterator[HumanDialogue]:
    """Yield the dialogues of `train`, `validation` or `test`, in hash order.

    Raises:
        DataError: no such part, or a damaged row.
        MissingExtraError: a parquet file without the extra `data`.
    """
    found = [folder / f"{part}{ending}" for ending in (".jsonl", ".parquet")]
    path = next((path for path in found if path.is_file()), None)
    if path is None or part not in PARTS:
        raise DataError(f"no part {part!r}", where=str(folder), expected="a built folder")
    if path.suffix == ".jsonl":
        for line in jsonio.read_jsonl(path):
            yield rows.from_row(line.value, f"{path}:{line.number}")
    else:
        for record in raw.parquet(raw.Source(str(path), path), _refuse):
            yield rows.from_row(record.value, record.where)


def load(folder: Path, *, limit: int | None = None) -> Corpus:
    """Return a whole build as one corpus: training, validation, test, each in hash order.

    Raises:
        DataError: a damaged build.
    """
    found = manifest(folder)
    parts = tuple(CorpusInfo(**source["terms"]) for source in found["sources"])
    parts = tuple(dict.fromkeys(parts))
    dialogues = [dialogue for part in PARTS for dialogue in read_part(folder, part)]
    counts = {f"dialogues_{part}": found["files"][part]["dialogues"] for part in PARTS}
    counts["kept"] = len(dialogues)
    counts["kept_turns"] = sum(len(dialogue.turns) for dialogue in dialogues)
    return Corpus(_joint(folder, parts), tuple(dialogues[:limit]), counts, parts)


def _joint(folder: Path, parts: tuple[CorpusInfo, ...]) -> CorpusInfo:
    """Return the terms of a mix: the strictest of its parts."""
    if len(parts) == 1:
        return parts[0]
    redistributable = {part.redistributable for part in parts}
    allowed = {part.training_allowed for part in parts}
    return CorpusInfo(
        name=folder.name,
        license=", ".join(dict.fromkeys(part.license for part in parts)),
        redistributable=next(
            (word for word in ("no", "share-alike") if word in redistributable), "yes"
        ),
        training_allowed=next((word for word in ("no", "unknown") if word in allowed), "yes"),
        citation="; ".join(dict.fromkeys(part.citation for part in parts)),
        moderated=all(part.moderated for part in parts),
        evaluation_only=any(part.evaluation_only for part in parts),
        simulated=any(part.simulated for part in parts),
    )


def _refuse(where: str, reason: str, detail: str) -> None:
    raise DataError(f"{reason}: {detail}", where=where, expected="a part as it was built")
