"""What every verb prints: one JSON object, tables, notes, and the one line of an error.

With `--json` the result is one object on the last line of stdout and all else goes to stderr.
Colors and live output appear on a terminal only; `NO_COLOR` is respected by rich. Text of models
and data is data here, too: no markup, no emoji names, no escape sequence of it takes effect.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn, TextIO

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mimesim import config, jsonio
from mimesim.errors import UsageError

DONE = 0
BELOW_THRESHOLD = 1
WRONG_USE = 2
INTERRUPTED = 130


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: object) -> Text:
    """Return text that shows as it is: terminal codes and direction overrides as escapes."""
    return Text(_CONTROL.sub(lambda m: ascii(m.group())[1:-1], str(text)))


class Screen(Console):
    """A console on which strings are plain text."""

    def print(self, *objects: Any, **how: Any) -> None:
        """Print strings as they are, and renderables of rich."""
        plain = [visible(one) if isinstance(one, str) else one for one in objects]
        super().print(*plain, **how)


def stdout(*, json: bool = False) -> Screen:
    """Return the console for human output: stdout, or stderr when stdout belongs to `--json`."""
    return Screen(stderr=json, highlight=False, soft_wrap=True)


def stderr() -> Screen:
    """Return the console for progress, notes and errors."""
    return Screen(stderr=True, highlight=False, soft_wrap=True)


def tolerant(*streams: TextIO) -> None:
    """Let streams of any encoding take any text: what they cannot show becomes an escape."""
    for stream in streams:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def emit_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write `value` as one line on stdout; call it last."""
    encoding = (sys.stdout.encoding or "utf-8").lower().replace("-", "")
    sys.stdout.write(jsonio.dumps(value, ascii_only=encoding != "utf8") + "\n")
    sys.stdout.flush()


def say(text: str, *, quiet: bool = False, json: bool = False) -> None:
    """Print one plain line for people."""
    if not quiet:
        stdout(json=json).print(text)


def note(text: str) -> None:
    """Print one plain line on stderr."""
    stderr().print(text)


def show_error(error: UsageError) -> None:
    """Print the one line of a usage error on stderr, red on a terminal, without logins of URLs."""
    stderr().print(f"error: {config.redact(str(error))}", style="red")


def fail(error: UsageError) -> NoReturn:
    """Print the one line of `error` and leave with its exit code."""
    show_error(error)
    raise typer.Exit(error.exit_code)


def near(path: Path | str) -> str:
    """Return a path as one would type it here: without detours, relative below this folder."""
    whole = Path(path).resolve()
    here = Path.cwd()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)


def in_words(value: object) -> str:
    """Return a value as people write it: lists with commas, yes and no, three decimals."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {in_words(inner)}" for key, inner in value.items())
    return str(value)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Build a table of plain text cells; columns of numbers are right-aligned."""
    built = Table(
        title=visible(title) if title else None, title_justify="left", box=None, pad_edge=False
    )
    for position, column in enumerate(columns):
        cells = [row[position] for row in rows]
        numeric = bool(cells) and all(isinstance(cell, int | float) for cell in cells)
        built.add_column(visible(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        built.add_row(*(visible("-" if value is None else value) for value in row))
    return built
