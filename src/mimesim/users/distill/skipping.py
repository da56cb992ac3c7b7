"""What gives no scenario: counted by reason, and named with its place in a file of rejects."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TextIO

from mimesim import jsonio
from mimesim.corpora.cleaning import checks

NO_SCENARIO = {
    "no_goal": "nothing that the person wanted",
    "end_marker": "a message holds an end marker",
    "unfit": "no sound scenario comes of it",
}
"""What is no damage of a source but gives no scenario, in words."""


def rejects_of(out: Path) -> Path:
    """Return the file that names what is left out of a scenario file."""
    return out.with_name(f"{out.stem}.rejects.jsonl")


class Skips:
    """Takes note of what gives no scenario: counted, and in a file next to the scenarios."""

    def __init__(self, counts: Counter[str], out: Path | None) -> None:
        self._counts = counts
        self._path = None if out is None else rejects_of(out)
        self.first = ""
        self._stream: TextIO | None = None

    def __call__(self, where: str, reason: str, detail: str) -> None:
        """Count a conversation, or a piece of a file, that gives no scenario."""
        self._counts[reason] += 1
        self.first = self.first or f"{where}: {reason}" + (f": {detail}" if detail else "")
        if self._path is None:
            return
        if self._stream is None:
            self._stream = self._path.open("w", encoding="utf-8", newline="\n")
        damaged = checks.is_damage(reason) and reason not in NO_SCENARIO
        line = {
            "where": where,
            "kind": "damaged" if damaged else "filtered",
            "reason": reason,
            "detail": detail,
        }
        self._stream.write(jsonio.dumps(line) + "\n")

    def close(self) -> None:
        """Close the file; one of an earlier run that is out of date goes."""
        if self._stream is not None:
            self._stream.close()
        elif self._path is not None:
            self._path.unlink(missing_ok=True)
