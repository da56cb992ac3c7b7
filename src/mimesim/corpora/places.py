"""From a place to raw values: a file, a folder, a glob, or a data set of the Hugging Face hub.

    chats.jsonl · chats.jsonl.gz · export/ · "export/*.csv" · hub:<owner>/<name>[@<split>]

Folders are read recursively in the order of their paths; hidden entries are left out. What a
conversation is, the formats know.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mimesim.config.build import HUB
from mimesim.corpora import raw, raw_documents
from mimesim.corpora.base import Record
from mimesim.corpora.raw import OnReject, Source
from mimesim.errors import DataError, EnvironmentFault, MissingExtraError

KINDS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
_SHOWN = 200  # characters of a place that is no path
_LINE = re.compile(r":\d+$")
_HUB = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<split>[\w.-]+))?")


def records(
    place: str,
    *,
    files: tuple[str, ...] = (),
    splits_lists: bool = True,
    on_reject: OnReject,
) -> Iterator[Record]:
    """Return the raw values of a place, read as they are asked for.

    Args:
        place: a file, a folder, a glob (any of them may be `.gz`; `.zip` archives of such files
            too), or `hub:<owner>/<name>[@<split>]`.
        files: endings of the files of a folder or an archive that are read; empty = all kinds.
        splits_lists: whether a JSON document of many entries is taken entry by entry.
        on_reject: is told where, why and in which way a piece cannot be read.

    Raises:
        DataError: the place does not exist, or holds no file of a known kind.
        MissingExtraError: parquet, a large JSON document or the hub without the extra `data`.
        EnvironmentFault: the hub does not give the data set.
    """
    if place.startswith(HUB):
        return _hub(place)
    found = sources(place, files)
    return itertools.chain.from_iterable(
        _read(source, on_reject, splits_lists=splits_lists) for source in found
    )


def sources(place: str, files: tuple[str, ...] = ()) -> list[Source]:
    """Return the files of a place in the order of their paths.

    Raises:
        DataError: the place does not exist, or holds no file of a known kind.
    """
    path = _path(place)
    if path.is_file():
        found = _unpacked(path, files, named=True)
    elif path.is_dir():
        found = _folder(path, files)
    else:
        matches = sorted(_matches(path)) if glob.has_magic(place) else []
        if not matches:
            raise DataError("file not found", where=place, expected="a file, a folder or a glob")
        found = [
            source
            for match in matches
            for source in (
                _folder(match, files) if match.is_dir() else _unpacked(match, files, named=True)
            )
        ]
    if not found:
        raise DataError(
            "nothing to read here", where=place, expected=f"files that end in {_words(files)}"
        )
    return found


def entry(where: str) -> str:
    """Return the key or number of an entry from the `where` of its record, e.g. `train/3`."""
    return where.rpartition("#")[2] if "#" in where else ""


def file_of(where: str) -> Path:
    """Return the file of a record from its `where`."""
    name = where.rpartition("#")[0] if "#" in where else _LINE.sub("", where)
    return Path(name.partition("!")[0])


def exists(place: str) -> bool:
    """Tell whether a place is a file or a folder; what no path can be called is neither."""
    try:
        return Path(place).exists()
    except (OSError, ValueError):
        return False


def _path(place: str) -> Path:
    """Return a place as a path that the file system takes."""
    try:
        path = Path(place).expanduser()
        path.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long, no such home, a zero byte
        why = error.strerror if isinstance(error, OSError) else str(error).rstrip(".")
        raise DataError(
            f"no such place: {why}", where=place[:_SHOWN], expected="a file, a folder or a glob"
        ) from error
    return path


def _folder(path: Path, files: tuple[str, ...]) -> list[Source]:
    return [source for found in sorted(_below(path)) for source in _unpacked(found, files)]


def _below(path: Path) -> Iterator[Path]:
    """Yield the files below a folder; a folder that may not be looked into is an error."""

    def refuse(error: OSError) -> None:
        raise DataError(
            f"cannot read: {error.strerror or error}", where=str(error.filename or path)
        ) from error

    for folder, inside, names in os.walk(path, onerror=refuse):
        inside[:] = [name for name in inside if not name.startswith(".")]
        found = (Path(folder, name) for name in names if not name.startswith("."))
        yield from (file for file in found if file.is_file())


def _matches(pattern: Path) -> list[Path]:
    """Return what a glob matches, below its last folder without a wildcard."""
    fixed = list(itertools.takewhile(lambda part: not glob.has_magic(part), pattern.parts))
    try:
        return list(Path(*fixed).glob(str(Path(*pattern.parts[len(fixed) :]))))
    except (ValueError, RuntimeError) as error:
        raise DataError(
            f"not a glob: {error}", where=str(pattern), expected="a glob such as logs/**/*.jsonl"
        ) from error


def _unpacked(path: Path, files: tuple[str, ...], *, named: bool = False) -> list[Source]:
    """Return the file, or the members of an archive; `named` = asked for by name."""
    if path.suffix.lower() == ".zip":
        try:
            with zipfile.ZipFile(path) as archive:
                members = sorted(archive.namelist())
        except (zipfile.BadZipFile, OSError) as error:
            raise DataError(f"not a zip archive: {error}", where=str(path)) from error
        return [
            Source(f"{path}!{member}", path, member)
            for member in members
            if not member.endswith("/") and _wanted(member, files, KINDS[:-1])
        ]
    if not _wanted(path.name, () if named else files, KINDS):
        return []
    return [Source(str(path), path)]


def _wanted(name: str, files: tuple[str, ...], kinds: tuple[str, ...]) -> bool:
    plain = raw.plain(name).lower()
    if plain.endswith(".parquet") and plain != name.lower():
        return False
    return plain.endswith(kinds) and (not files or plain.endswith(files))


def _words(files: tuple[str, ...]) -> str:
    return ", ".join(files or KINDS) + " (.gz and .zip too)"


def _read(source: Source, on_reject: OnReject, *, splits_lists: bool) -> Iterator[Record]:
    kind = source.kind
    if kind == ".json":
        return raw_documents.document(source, on_reject, splits_lists=splits_lists)
    readers: dict[str, Callable[[Source, OnReject], Iterator[Record]]] = {
        ".csv": raw.table,
        ".tsv": raw.table,
        ".parquet": raw.parquet,
    }
    return readers.get(kind, raw.lines)(source, on_reject)


def _hub(place: str) -> Iterator[Record]:
    matched = _HUB.fullmatch(place.removeprefix(HUB))
    if matched is None:
        raise DataError(
            "not a data set of the hub", where=place, expected="hub:<owner>/<name>[@<split>]"
        )
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError.for_extra("reading from the hub", "data") from error
    name, split = matched["name"], matched["split"]
    try:
        found = datasets.load_dataset(name, split=split, streaming=True)
    except Exception as error:  # the library raises many kinds; all mean: not given
        raise _refused(place, error) from error
    parts = {split: found} if split else dict(found)
    return itertools.chain.from_iterable(
        _hub_rows(f"{HUB}{name}@{part}", rows) for part, rows in parts.items()
    )


def _hub_rows(name: str, rows: Any) -> Iterator[Record]:
    try:
        for number, row in enumerate(rows, start=1):
            yield Record(f"{name}#{number}", row)
    except Exception as error:  # as above, in the middle of the stream
        raise _refused(name, error) from error


def _refused(place: str, error: Exception) -> EnvironmentFault:
    return EnvironmentFault(
        f"the hub does not give this data set: {type(error).__name__}: {error}",
        where=place,
        expected="a public data set, or a gated one that your own token may read",
        mend="accept its terms on its page, log in with `hf auth login`, or give local files",
    )
