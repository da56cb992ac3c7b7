"""`mimesim export`: write episodes in the shapes of other tools; public unless asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mimesim.cli.output import emit_json, note, say

_TO = (
    "openai, openai-user, sharegpt, tau2, verifiers, inspect, parquet or csv; thoughts are in "
    "openai-user, tau2, verifiers and inspect, with --private only."
)


def command(
    path: Annotated[Path, typer.Argument(help="Episode file or run folder.")],
    to: Annotated[str, typer.Option(help=_TO)],
    out: Annotated[Path, typer.Option(help="File to write; of inspect also a folder.")],
    with_private: Annotated[
        bool,
        typer.Option("--with-private", "--private", help="Let the user's private side out, too."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object at the end.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Write episodes in the shape of another tool; equal input gives equal bytes."""
    from mimesim.rollout.exporting import export

    if with_private:
        note("warning: what is written may hold the user's private goal and thoughts")
    rows = export(path, out, target=to, with_private=with_private)
    say(f"{rows.written} rows of {rows.episodes} episodes -> {rows.out}", quiet=quiet, json=json)
    if json:
        emit_json(
            {
                "out": str(rows.out),
                "target": to,
                "rows": rows.written,
                "episodes": rows.episodes,
                "private": with_private,
            }
        )
