"""`mimesim import`: others' transcripts as episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mimesim.cli.from_logs import pairs
from mimesim.cli.output import emit_json, in_words, note, say

_FROM = (
    "Format: tau2, inspect, verifiers, tau-bench, sharegpt, openai-messages, or another corpus; "
    "left out: recognized by its keys."
)


def command(
    source: Annotated[str, typer.Argument(help="A file, a folder, or format:place.")],
    out: Annotated[Path, typer.Option(help="Run folder, or X.jsonl.")],
    from_: Annotated[str | None, typer.Option("--from", help=_FROM)] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="key=value of the format, e.g. domain=retail.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object at the end.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Make episodes of others' transcripts, for bench, report, review and calibrate."""
    from mimesim.rollout.events import count
    from mimesim.rollout.importing import import_episodes

    found = import_episodes(source, out, form=from_, options=pairs(option), overwrite=overwrite)
    counts = count(found.episodes)
    kept = f", {found.kept} of them were there" if found.kept else ""
    told = f"{counts.all} episodes of {found.form}{kept} -> {out}"
    say(told, quiet=quiet, json=json)
    say(f"ended by: {in_words(dict(counts.stops))}", quiet=quiet, json=json)
    if found.rejects:
        note(f"left out: {in_words(dict(found.rejects))}; the first: {found.first}")
    if json:
        emit_json(
            {
                "out": str(out),
                "format": found.form,
                "episodes": counts.all,
                "resumed": found.kept,
                "counted": counts.counted,
                "stops": dict(counts.stops),
                "rejects": dict(found.rejects),
            }
        )
