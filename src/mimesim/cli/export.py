"""`mimesim export`: write episodes in the shapes of other tools; public unless asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mimesim.cli.output import emit_json, note, say


def command(
    path: Annotated[Path, typer.Argument(help="Episode file or run folder.")],
    to: Annotated[str, typer.Option(help="openai, openai-user or sharegpt.")],
    out: Annotated[Path, typer.Option(help="JSON Lines file to write.")],
    with_private: Annotated[
        bool, typer.Option("--with-private", help="Let the user's private side out, too.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object at the end.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Write one row per episode; equal input gives equal bytes."""
    from mimesim.rollout.exporting import export

    if with_private:
        note("warning: the rows hold the user's private goal and thoughts")
    rows = export(path, out, target=to, with_private=with_private)
    say(f"{rows.written} rows of {rows.episodes} episodes -> {out}", quiet=quiet, json=json)
    if json:
        emit_json(
            {
                "out": str(out),
                "target": to,
                "rows": rows.written,
                "episodes": rows.episodes,
                "private": with_private,
            }
        )
