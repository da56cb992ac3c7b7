"""Episodes as flat rows for tables: parquet and CSV; the same keys in every row, lists as JSON text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.export import Options, export_rows

Episode = Mapping[str, Any]
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_TEXTS = ("id", "run_id", "created_at")
COLUMNS: Mapping[str, type] = {
    **dict.fromkeys(_TEXTS, str),
    "trial": int,
    **dict.fromkeys(("seed", "gym", "task", "agent", "user", "status"), str),
    **dict.fromkeys(("success", "reward"), float),
    **dict.fromkeys(("stop_reason", "stop_by"), str),
    "turns": int,
    "duration_s": float,
    "messages": str,
}
"""Column -> type of its values; `success` and `reward` are empty where they are not known."""


def rows(episodes: Iterable[Episode], options: Options) -> list[dict[str, Any]]:
    """Return one row per episode in which the user was heard."""
    found = []
    for episode in episodes:
        for told in export_rows([episode], "openai", options):
            found.append(_row(episode, told["messages"]))
    return found


def _row(episode: Episode, messages: list[dict[str, Any]]) -> dict[str, Any]:
    stop, outcome, task = episode["stop"], episode["outcome"], episode["task"]
    success = outcome.get("success")
    values = {
        **{name: str(episode.get(name, "")) for name in _TEXTS},
        "trial": int(episode.get("trial", 0)),
        "seed": str(episode.get("seed", "")),
        "gym": str(task.get("gym", "")),
        "task": str(task["id"]),
        "agent": str((episode.get("agent") or {}).get("name", "")),
        "user": str((episode.get("user") or {}).get("name", "")),
        "status": str(outcome["status"]),
        "success": None if success is None else float(success),
        "reward": None if outcome.get("reward") is None else float(outcome["reward"]),
        "stop_reason": str(stop["reason"]),
        "stop_by": str(stop["by"]),
        "turns": int(stop.get("turns_used", 0)),
        "duration_s": float(episode.get("duration_s") or 0.0),
        "messages": jsonio.dumps(messages),
    }
    return {name: values[name] for name in COLUMNS}


def csv_text(found: list[dict[str, Any]]) -> str:
    """Return the rows as CSV with a header line; an unknown number is an empty cell."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in found)
    return out.getvalue()


def _cell(value: Any) -> Any:
    """Return a value as a cell; a text that a spreadsheet would run gets a quote in front."""
    return f"'{value}" if isinstance(value, str) and value[:1] in _FORMULA else value
