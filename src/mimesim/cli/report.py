"""`mimesim report`: make the page or the tables of stored results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mimesim.cli.output import emit_json, say


def command(
    path: Annotated[
        Path,
        typer.Argument(help="An episodes file (.jsonl), a run folder, or a run record (.json)."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write (default: beside the input).")
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format", help="html; md, latex or json tables, printed unless --out is given."
        ),
    ] = "html",
    md: Annotated[bool, typer.Option("--md", help="The same as --format md.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print results only.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on the last line.")
    ] = False,
) -> None:
    """Make the report of stored results: one HTML file, or tables in Markdown, LaTeX or JSON."""
    from mimesim.report.make import brief, write

    chosen = "md" if md else form
    printed = chosen != "html" and out is None and not json
    made = write(path, out, form=chosen, keep=not printed)
    if made.out is None:
        sys.stdout.write(made.text)
        return
    say(f"report -> {made.out}", quiet=quiet, json=json)
    if json:
        emit_json(brief(made))
