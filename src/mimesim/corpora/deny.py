"""Making a deny-list: fingerprints of the users' texts of sources that must not be learnt.

    mimesim data fingerprint mirrorbench:chats.jsonl --out deny.txt

The list holds no text, and none can be had from it; `mimesim data build --deny deny.txt` reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.corpora import load
from mimesim.corpora.cleaning import overlap
from mimesim.errors import DataError


def write_deny_list(sources: Sequence[str], out: Path) -> dict[str, Any]:
    """Write the deny-list of some sources.

    Args:
        sources: as `load.parse_source` reads them.
        out: the file; another deny-list is replaced.

    Returns:
        JSON values: out, fingerprints, and dialogues, texts and unreadable records per source.

    Raises:
        UnknownNameError: no such corpus.
        DataError: a place does not exist, there is nothing to take a fingerprint of, or `out` is
            a file of something else.
    """
    if out.exists():
        overlap.read_deny_list(out)  # whatever else stands there is not replaced
    found: set[int] = set()
    counts: dict[str, dict[str, int]] = {}
    for name in sources:
        source = load.parse_source(name)
        count: Counter[str] = Counter(dialogues=0, texts=0, unreadable=0)
        for _, dialogue in load.read_source(source, {}, _counting(count)):
            texts = overlap.user_fingerprints(dialogue.turns)
            count["dialogues"] += 1
            count["texts"] += len(texts)
            found.update(texts)
        counts[name] = dict(count)
    if not found:
        raise DataError(
            f"no user's text of {overlap.LEAST_WORDS} words or more",
            where=", ".join(sources),
            expected="conversations whose texts must not be learnt",
        )
    corpora = ", ".join(dict.fromkeys(load.parse_source(name).corpus for name in sources))
    head = (
        f"# 64-bit fingerprints of users' texts of {overlap.LEAST_WORDS} words or more; no text can\n"
        f"# be had from them. Made by `mimesim data fingerprint` from: {corpora}.\n"
    )
    jsonio.write_text(out, head + "".join(f"{overlap.as_line(value)}\n" for value in _order(found)))
    return {"out": str(out), "fingerprints": len(found), "sources": counts}


def _counting(count: Counter[str]) -> Any:
    def refuse(where: str, reason: str, detail: str) -> None:
        del where, reason, detail
        count["unreadable"] += 1

    return refuse


def _order(found: set[int]) -> list[int]:
    """Return the values as they are sorted in the file, by their digits."""
    return sorted(found, key=overlap.as_line)
