"""What every verb prints: one JSON object, tables, notes, and the one line of an error.

With `--json` the result is one object on the last line of stdout and all else goes to stderr.
Colors and live output appear on a terminal only; `NO_COLOR` is respected by rich.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mimesim import jsonio
from mimesim.errors import UsageError

DONE = 0
BELOW_THRESHOLD = 1
WRONG_USE = 2
INTERRUPTED = 130


def stdout(*, json: bool = False) -> Console:
    """Return the console for human output: stdout, or stderr when stdout belongs to `--json`."""
    return Console(stderr=json, highlight=False, soft_wrap=True)


def emit_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write `value` as one line on stdout; call it last."""
    sys.stdout.write(jsonio.dumps(value) + "\n")
    sys.stdout.flush()


def say(text: str, *, quiet: bool = False, json: bool = False) -> None:
    """Print one plain line for people; text of models is never read as markup."""
    if not quiet:
        stdout(json=json).print(text, markup=False)


def note(text: str) -> None:
    """Print one plain line on stderr."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False)


def show_error(error: UsageError) -> None:
    """Print the one line of a usage error on stderr, red on a terminal."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        f"error: {error}", style="red", markup=False
    )


def fail(error: UsageError) -> NoReturn:
    """Print the one line of `error` and leave with its exit code."""
    show_error(error)
    raise typer.Exit(error.exit_code)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Build a table of plain text cells; columns of numbers are right-aligned."""
    built = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for position, column in enumerate(columns):
        cells = [row[position] for row in rows]
        numeric = bool(cells) and all(isinstance(cell, int | float) for cell in cells)
        built.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        built.add_row(*(Text("-" if value is None else str(value)) for value in row))
    return built
