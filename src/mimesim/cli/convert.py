"""`mimesim train convert`: a checkpoint that can be trained as a user, out of one with vision."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mimesim.cli.output import emit_json, near, say


def command(
    source: Annotated[Path, typer.Argument(help="Folder of a Qwen3.5 checkpoint.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to make.")],
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on the last line.")
    ] = False,
) -> None:
    """Write the text model of a Qwen3.5 checkpoint that declares a vision tower."""
    from mimesim.train.convert import convert

    made = convert(source, out)
    left = "".join(f"; without {count} of the {what}" for what, count in made.left_out.items())
    say(f"text model of {made.parameters} parameters{left}", json=json)
    if made.files:
        say("files left out: " + ", ".join(made.files), json=json)
    say(f"checkpoint, with the plain ChatML template -> {near(made.out)}", json=json)
    if json:
        emit_json(
            {
                "checkpoint": str(made.out),
                "parameters": made.parameters,
                "left_out": dict(made.left_out),
                "files_left_out": list(made.files),
            }
        )
