"""Ranked search over short documents: BM25 as SQLite's full-text index computes it."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mimesim import jsonio
from mimesim.errors import DataError, EnvironmentFault

_WORD = re.compile(r"\w+")
_WORDS = 64
"""Words of a query that count."""
_TITLE_WEIGHT, _TEXT_WEIGHT = 4.0, 1.0


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a corpus."""

    id: str
    title: str
    text: str


class Index:
    """Documents in memory, to be searched by words.

    Raises:
        EnvironmentFault: this Python's SQLite has no full-text search.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = tuple(documents)
        self._lock = threading.Lock()  # gyms of several threads may share one index
        self._base = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            self._base.execute("CREATE VIRTUAL TABLE texts USING fts5(title, text)")
        except sqlite3.OperationalError as error:
            raise EnvironmentFault(
                f"SQLite cannot search texts: {error}",
                where="gym 'search'",
                expected="a Python whose sqlite3 has FTS5",
                mend="take another back end, e.g. gym_options.search = 'closed'",
            ) from error
        self._base.executemany(
            "INSERT INTO texts (title, text) VALUES (?, ?)",
            [(document.title, document.text) for document in self._documents],
        )

    def search(self, query: str, count: int) -> list[Document]:
        """Return the best documents for the words of `query`, best first, `count` at most."""
        words = _WORD.findall(query)[:_WORDS]
        if not words:
            return []
        wanted = " OR ".join(f'"{word}"' for word in words)  # quoted: no word is an operator
        with self._lock:
            rows = self._base.execute(
                "SELECT rowid FROM texts WHERE texts MATCH ?"
                " ORDER BY bm25(texts, ?, ?), rowid LIMIT ?",
                (wanted, _TITLE_WEIGHT, _TEXT_WEIGHT, count),
            ).fetchall()
        return [self._documents[row[0] - 1] for row in rows]


def read_documents(path: Path | str) -> list[Document]:
    """Read a corpus: one object with id, title and text per line.

    Raises:
        DataError: missing file, or a bad line with its number.
    """
    found = []
    for line in jsonio.read_jsonl(path):
        value = line.value if isinstance(line.value, dict) else {}
        fields = [value.get(key) for key in ("id", "title", "text")]
        if not all(isinstance(one, str) for one in fields):
            raise DataError(
                "a line is no document",
                where=f"{path}:{line.number}",
                expected="an object with the texts id, title and text",
            )
        found.append(Document(*map(str, fields)))
    return found
