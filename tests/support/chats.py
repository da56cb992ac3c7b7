"""Invented conversations for the tests of data building."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mimesim import jsonio, seeds

WORDS = [
    *("amber", "bakery", "candle", "dolphin", "engine", "feather", "garden", "harbor", "island"),
    *("jacket", "kettle", "lantern", "mirror", "needle", "orange", "pencil", "quarry", "river"),
    *("saddle", "timber", "umbrella", "velvet", "window", "yellow"),
]


def sentence(*names: str | int, words: int = 12) -> str:
    """Return a sentence of invented content that is the same for the same names."""
    return " ".join(seeds.generator(0, *names).choices(WORDS, k=words))


def chat(number: int, *, turns: int = 4, **more: Any) -> dict[str, Any]:
    """Return one normalized conversation; its user says something that nobody else does."""
    said = [
        {"role": ("user", "agent")[i % 2], "text": sentence("chat", number, i)}
        for i in range(turns)
    ]
    return {"id": f"c{number}", "turns": said, **more}


def say(*texts: str, name: str = "x", **more: Any) -> dict[str, Any]:
    """Return a conversation of these texts, the user first."""
    roles = ("user", "agent")
    turns = [{"role": roles[i % 2], "text": text} for i, text in enumerate(texts)]
    return {"id": name, "turns": turns, **more}


def write_rows(path: Path, rows: Iterable[Any]) -> Path:
    """Write JSON Lines and return the path."""
    with jsonio.Appender(path) as out:
        for row in rows:
            out.append(row)
    return path


def rows_of(folder: Path, part: str) -> list[dict[str, Any]]:
    """Return the rows of a part of a built folder."""
    return [line.value for line in jsonio.read_jsonl(folder / f"{part}.jsonl")]


def ids_of(folder: Path, *parts: str) -> set[str]:
    """Return the ids in some parts of a built folder."""
    return {
        row["id"]
        for part in parts or ("train", "validation", "test")
        for row in rows_of(folder, part)
    }


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a built folder by name."""
    return {
        path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix != ".lock"
    }
