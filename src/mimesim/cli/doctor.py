"""`mimesim doctor`: what is installed, what is missing, how to mend it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from mimesim.cli.output import WRONG_USE, emit_json, say, stdout, table


def command(
    endpoint: Annotated[
        list[str] | None,
        typer.Option(help="Model to reach, e.g. openai:qwen3@http://127.0.0.1:8000/v1."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Local model (path, id or embedded) whose chat template is checked."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object at the end.")] = False,
) -> None:
    """Check the environment and say how to mend it; exit code 2 if something needed is missing."""
    from mimesim.testing.environment import State, examine

    found = asyncio.run(examine(endpoint or (), model or ()))
    fatal = [finding for finding in found if finding.fatal]
    rows = [(finding.name, finding.state.value, finding.told) for finding in found]
    stdout(json=json).print(table("", ("what", "state", "found"), rows))
    for finding in found:
        if finding.state is not State.OK and finding.mend:
            say(f"to mend {finding.name}: {finding.mend}", json=json)
    say("something needed is missing" if fatal else "the core works here", json=json)
    if json:
        emit_json({"ok": not fatal, "checks": [asdict(finding) for finding in found]})
    if fatal:
        raise typer.Exit(WRONG_USE)
