"""From a name or a path to a corpus: the table of formats."""

from __future__ import annotations

from pathlib import Path

from mimesim.corpora.base import Corpus
from mimesim.registry import Registry

CORPORA = Registry(
    "corpus",
    {
        "chitchat": "mimesim.corpora.chitchat:load",
        "own": "mimesim.corpora.own:load",
    },
)
"""`module:function` of the type `(source, *, limit) -> Corpus`."""


def open_corpus(name: str, *, limit: int | None = None) -> Corpus:
    """Load a corpus by name (`chitchat`), by `name:path`, or a file of own logs by its path.

    Raises:
        UnknownNameError: neither a known corpus nor a file.
        DataError: the file is missing or damaged.
    """
    if Path(name).is_file() or Path(name).suffix in (".jsonl", ".gz"):
        loaded: Corpus = CORPORA.load("own")(name, limit=limit)
        return loaded
    kind, _, place = name.partition(":")
    loaded = CORPORA.load(kind)(place or None, limit=limit)
    return loaded
