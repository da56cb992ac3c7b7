"""The folder of a build: whose it is, what is finished in it, and where unfinished work goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mimesim import __version__, jsonio
from mimesim.corpora import built, writing
from mimesim.corpora.index import Index
from mimesim.corpora.splits import PARTS
from mimesim.errors import UsageError

LOCK = ".build.lock"

_SETTINGS = "settings.json"
_LATER = ("validation", "test", "format", "tokenizer", "apart", "mix_by")
"""Settings that matter only once everything is read."""


def finished(out: Path, digest: str) -> dict[str, Any]:
    """Return the manifest of a finished build.

    Raises:
        UsageError: it is of another build.
    """
    found = built.manifest(out)
    if found.get("digest") != digest:
        raise UsageError(
            "this folder holds a build with other settings or of other files",
            where=str(out),
            expected="the same settings, or a new folder",
            mend="choose another --out, or --set resume=false to build anew",
        )
    return found


def check_free(out: Path) -> None:
    """Refuse a folder whose files no build has written: they could be anyone's data.

    Raises:
        UsageError: it holds files of the names of a build, but neither a build nor its beginning.
    """
    if built.is_built(out) or (out / built.WORK).is_dir():
        return
    names = [f"{part}{ending}" for part in PARTS for ending in (".jsonl", ".parquet")]
    names += [built.REJECTS, built.CARD, built.CARD_TEXT]
    found = [name for name in names if (out / name).exists()]
    if found:
        raise UsageError(
            f"{found[0]!r} stands here already, and no build has written it",
            where=str(out),
            expected="a new folder, or one of a build",
            mend="choose another --out",
        )


def work_folder(out: Path, settings: Mapping[str, Any], *, fresh: bool) -> Path:
    """Return the folder of unfinished work; what other settings left there is thrown away.

    Args:
        out: folder of the build.
        settings: JSON values of all that decides the result.
        fresh: whether whatever was begun is thrown away.
    """
    work = out / built.WORK
    wanted = {name: value for name, value in settings.items() if name not in _LATER}
    wanted["source"] = [{**one, "share": None} for one in settings["source"]]
    wanted["mimesim"] = __version__
    stored = work / _SETTINGS
    if fresh or not stored.is_file() or jsonio.read_json(stored) != wanted:
        shutil.rmtree(work, ignore_errors=True)
        jsonio.write_json(stored, wanted)
    return work


def write_rejects(out: Path, index: Index, more: Iterable[Mapping[str, Any]] = ()) -> None:
    """Write what was left out: while reading, and `more` since."""
    with writing.whole_file(out / built.REJECTS) as unfinished, unfinished.open("wb") as stream:
        stream.writelines(index.rejects())
        stream.writelines(map(jsonio.line_of, more))
