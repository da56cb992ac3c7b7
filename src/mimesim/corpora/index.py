"""The working state of a build on disk: kept dialogues, what was seen, how far reading got.

Memory stays flat whatever the size of a corpus: dialogues lie in a spool file, and all that is
asked about them in an SQLite file. A checkpoint commits both, with the position in the source, so
a build that was killed goes on from there and ends in the same bytes.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mimesim import jsonio

_TABLES = """
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS seen (hash INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS bands (hash INTEGER, number INTEGER, PRIMARY KEY (hash, number))
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS keys (hash INTEGER, number INTEGER, PRIMARY KEY (hash, number))
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dialogues (
  number INTEGER PRIMARY KEY, source INTEGER, place INTEGER, start INTEGER, size INTEGER,
  split TEXT, words INTEGER, texts BLOB, origin TEXT);
"""
_CACHE_KIB = 48 * 1024


class Entry(NamedTuple):
    """What the index knows of one kept dialogue.

    Attributes:
        number: its place in file order, from 0.
        source: position of its source in the build.
        place: its place in the hash order.
        split: the part that its source fixes.
        words: words of its user.
        texts: fingerprints of its user's longer messages.
    """

    number: int
    source: int
    place: int
    split: str
    words: int
    texts: array[int]


class Index:
    """Kept dialogues and what was seen; one process writes it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._spool_path, self._rejects_path = folder / "spool.jsonl", folder / "rejects.jsonl"
        # Checkpoints are transactions of our own; a killed process loses what came after the last.
        self._base = sqlite3.connect(folder / "index.sqlite", isolation_level=None)
        self._base.execute("PRAGMA synchronous = OFF")
        self._base.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._base.executescript(_TABLES)
        self._base.execute("BEGIN")
        self.size = self._one("SELECT count(*) FROM dialogues")
        self._spool = self._reopened(self._spool_path, "spool")
        self._rejects = self._reopened(self._rejects_path, "rejects")
        self._reader = self._spool_path.open("rb")

    def _reopened(self, path: Path, name: str) -> Any:
        """Open a file for appending at the size of the last checkpoint."""
        stream = path.open("ab")
        stream.truncate(int(self.state(name) or 0))
        stream.seek(0, 2)
        return stream

    def state(self, name: str) -> Any:
        """Return what the last checkpoint holds under `name`, or None."""
        row = self._base.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return None if row is None else jsonio.loads(row[0])

    def checkpoint(self, **state: Any) -> None:
        """Commit everything so far, with JSON values under names."""
        for stream in (self._spool, self._rejects):
            stream.flush()
        sizes = {"spool": self._spool.tell(), "rejects": self._rejects.tell()}
        for name, value in {**sizes, **state}.items():
            self._base.execute(
                "INSERT OR REPLACE INTO state VALUES (?, ?)", (name, jsonio.dumps(value))
            )
        self._base.execute("COMMIT")
        self._base.execute("BEGIN")

    def close(self) -> None:
        """Close the files; what came after the last checkpoint is done again next time."""
        self._base.rollback()
        self._base.close()
        for stream in (self._spool, self._rejects, self._reader):
            stream.close()

    def __enter__(self) -> Index:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        """Close the files; tell trouble with the disk in one line.

        Raises:
            EnvironmentFault: the disk is full, or the index on it is damaged.
        """
        self.close()
        if isinstance(error, sqlite3.DatabaseError):
            error = OSError(0, str(error))
        if isinstance(error, OSError):
            raise jsonio.disk_fault(self._spool_path.parent, error) from error

    # ------------------------------------------------------------------ what was seen

    def first_time(self, value: int) -> bool:
        """Take note of a fingerprint; return whether it is new."""
        done = self._base.execute("INSERT OR IGNORE INTO seen VALUES (?)", (value,))
        return done.rowcount == 1

    def sharing(self, bands: Iterable[int], most: int) -> list[int]:
        """Return the numbers of kept dialogues that share a band, in file order."""
        found: set[int] = set()
        for band in bands:
            rows = self._base.execute(
                "SELECT number FROM bands WHERE hash = ? ORDER BY number LIMIT ?", (band, most)
            )
            found.update(row[0] for row in rows)
        return sorted(found)

    def members(self, key: int) -> int:
        """Return how many kept dialogues bear a group key."""
        return self._one("SELECT count(*) FROM keys WHERE hash = ?", key)

    # ------------------------------------------------------------------ dialogues

    def add(
        self,
        row: Mapping[str, Any],
        entry: Entry,
        *,
        bands: Iterable[int],
        keys: Iterable[int],
        origin: str = "",
    ) -> None:
        """Keep a dialogue under the next number.

        Args:
            row: its canonical row.
            entry: what is asked about it; its number is `size`.
            bands: bands of its signature.
            keys: fingerprints of its group keys.
            origin: where it was read, as `file:line`.
        """
        raw = jsonio.line_of(row)
        start = self._spool.tell()
        self._spool.write(raw)
        self._base.execute(
            "INSERT INTO dialogues VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.size,
                entry.source,
                entry.place,
                start,
                len(raw),
                entry.split,
                entry.words,
                entry.texts.tobytes(),
                origin,
            ),
        )
        for table, values in (("bands", bands), ("keys", keys)):
            self._base.executemany(
                f"INSERT OR IGNORE INTO {table} VALUES (?, ?)",
                [(value, self.size) for value in values],
            )
        self.size += 1

    def row(self, number: int) -> tuple[int, dict[str, Any]]:
        """Return the source and the canonical row of a kept dialogue."""
        source, start, size = self._base.execute(
            "SELECT source, start, size FROM dialogues WHERE number = ?", (number,)
        ).fetchone()
        self._spool.flush()
        self._reader.seek(start)
        found: dict[str, Any] = jsonio.loads(self._reader.read(size).decode("utf-8"))
        return source, found

    def origin(self, number: int) -> str:
        """Return where a kept dialogue was read."""
        query = "SELECT origin FROM dialogues WHERE number = ?"
        return str(self._base.execute(query, (number,)).fetchone()[0])

    def entries(self) -> Iterator[Entry]:
        """Yield what the index knows of every kept dialogue, in file order."""
        for row in self._base.execute(
            "SELECT number, source, place, split, words, texts FROM dialogues ORDER BY number"
        ):
            number, source, place, split, words, raw = row
            texts = array("q")
            texts.frombytes(raw)
            yield Entry(number, source, place, split, words, texts)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the (earlier, later) numbers of dialogues that share a group key."""
        last_key, last = None, -1
        for key, number in self._base.execute(
            "SELECT hash, number FROM keys ORDER BY hash, number"
        ):
            if key == last_key:
                yield last, number
            last_key, last = key, number

    # ------------------------------------------------------------------ rejects

    def reject(self, row: Mapping[str, Any]) -> None:
        """Note what was left out, and why."""
        self._rejects.write(jsonio.line_of(row))

    def rejects(self) -> Iterator[bytes]:
        """Yield the noted lines."""
        self._rejects.flush()
        with self._rejects_path.open("rb") as stream:
            yield from stream

    def _one(self, query: str, *values: Any) -> int:
        return int(self._base.execute(query, values).fetchone()[0])
