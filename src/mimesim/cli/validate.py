"""`mimesim validate`: check input files, all errors at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mimesim.cli.output import WRONG_USE, emit_json, note, say


def command(
    paths: Annotated[list[Path], typer.Argument(help="Files or run folders.")],
    kind: Annotated[
        str, typer.Option(help="auto, config, manual, episodes, tasks, scenarios or rows.")
    ] = "auto",
    json: Annotated[bool, typer.Option("--json", help="One JSON object at the end.")] = False,
) -> None:
    """Check config, manual, task, scenario, row and episode files; exit code 2 on a fault."""
    from mimesim.rollout.validate import validate

    checked = [found for path in paths for found in validate(path, kind)]
    for found in checked:
        for problem in found.problems:
            note(problem)
        if found.torn:
            note(f"warning: {found.path}: unfinished last line of {found.torn} bytes")
        told = f"{len(found.problems)} problems" if found.problems else "sound"
        say(f"{found.path}: {found.kind}, {found.count} read, {told}", json=json)
    problems = [problem for found in checked for problem in found.problems]
    if json:
        files = [
            {
                "path": str(found.path),
                "kind": found.kind,
                "count": found.count,
                "problems": list(found.problems),
                "torn_bytes": found.torn,
            }
            for found in checked
        ]
        emit_json({"ok": not problems, "files": files})
    if problems:
        raise typer.Exit(WRONG_USE)
