"""The chats of the installed package `chitchat-dataset` 0.9.0, loaded as a whole.

The file of the wheel is read in place; the package is not imported. What a chat becomes is said in
`formats.chitchat`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from mimesim import jsonio, wheels
from mimesim.corpora import base
from mimesim.corpora.base import Corpus, HumanDialogue, Unfit
from mimesim.corpora.formats.chitchat import INFO, read_chat
from mimesim.errors import DataError

_PACKAGE, _FILE = "chitchat_dataset", "dataset.json"
_LEFT_OUT = ("one_sided", "too_short")


def load(source: str | Path | None = None, *, limit: int | None = None) -> Corpus:
    """Return the two-sided conversations, cleaned and filtered.

    Args:
        source: a `dataset.json`; None = the one of the installed package.
        limit: stop after so many conversations, in hash order; the counts are of those read.

    Raises:
        EnvironmentFault: the package is not installed.
        DataError: the file is damaged or has another shape.
    """
    path = wheel_file() if source is None else Path(source)
    raw = jsonio.read_json(path)
    if not isinstance(raw, Mapping):
        raise DataError("not a chitchat file", where=str(path), expected="one object of chats")
    counts: Counter[str] = Counter()
    kept: list[HumanDialogue] = []
    for key in sorted(raw, key=lambda key: base.order_key(f"chitchat/{key}")):
        if limit is not None and len(kept) >= limit:
            break
        counts["conversations"] += 1
        try:
            kept.append(read_chat(key, raw[key], counts))
        except Unfit as unfit:
            if unfit.reason not in _LEFT_OUT:
                raise DataError(
                    f"conversation {key!r} has another shape: {unfit}",
                    where=str(path),
                    expected="messages: lists of {sender, text}",
                ) from unfit
            counts[unfit.reason] += 1
    counts["kept"] = len(kept)
    counts["kept_turns"] = sum(len(dialogue.turns) for dialogue in kept)
    return Corpus(INFO, tuple(kept), dict(counts))


def wheel_file() -> Path:
    """Return the data file of the installed package.

    Raises:
        EnvironmentFault: the package is not installed.
    """
    return wheels.wheel_file(
        _PACKAGE, _FILE, what="the corpus of human chats", distribution="chitchat-dataset==0.9.0"
    )
