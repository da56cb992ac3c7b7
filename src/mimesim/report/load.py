"""Finding and reading what a report is made of: a run record, an episode file or a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimesim.dialogue.episode import Episode, read_file
from mimesim.errors import DataError
from mimesim.jsonio import read_object
from mimesim.results import RunRecord

RECORD = "record.json"
EPISODES = "episodes.jsonl"
MANIFEST = "run.json"


@dataclass(frozen=True, slots=True)
class EpisodeFile:
    """The episodes of one run.

    Attributes:
        manifest: `run.json` of the run, empty when there is none.
    """

    path: Path
    episodes: tuple[Episode, ...]
    manifest: Mapping[str, Any] = field(default_factory=dict)


def load(path: Path) -> RunRecord | EpisodeFile:
    """Read what lies at `path`: a record (`.json`), episodes (`.jsonl`, `.gz`), or a folder of one.

    Raises:
        DataError: nothing to report there, or a damaged file.
    """
    source = locate(path)
    if source.suffix == ".json":
        return RunRecord.read(source)
    episodes = tuple(read_file(source))
    if not episodes:
        raise DataError("no episode in the file", where=str(source), expected="at least one line")
    return EpisodeFile(source, episodes, _manifest(source))


def locate(path: Path) -> Path:
    """Return the file to read: `path` itself, or the record or episodes inside a folder.

    Raises:
        DataError: neither is there.
    """
    if not path.is_dir():
        if path.exists():
            return path
        raise DataError("file not found", where=str(path))
    for name in (RECORD, EPISODES):
        if (path / name).exists():
            return path / name
    raise DataError(
        "nothing to report", where=str(path), expected=f"{RECORD} or {EPISODES} in the folder"
    )


def default_out(path: Path) -> Path:
    """Return where the page goes: `report.html` in a folder, else beside the file."""
    if path.is_dir():
        return path / "report.html"
    name = path.name.removesuffix(".gz")
    return path.with_name(f"{Path(name).stem}.html")


def _manifest(source: Path) -> Mapping[str, Any]:
    name = source.name.removesuffix(".gz")
    for place in (
        source.with_name(MANIFEST),
        source.with_name(f"{Path(name).stem}.run") / MANIFEST,
    ):
        if place.exists():
            return read_object(place)
    return {}
