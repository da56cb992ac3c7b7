"""`mimesim review`: check the user's side of stored episodes, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mimesim.cli.output import BELOW_THRESHOLD, emit_json, note, say, stdout, table


def command(
    path: Annotated[Path, typer.Argument(help="Episode file or run folder.")],
    limit: Annotated[int, typer.Option(min=0, help="Findings to list.")] = 20,
    max_rate: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Exit 1 above this share of user messages with a hard finding."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object at the end.")] = False,
) -> None:
    """Check user messages again: guards, leaks, repetitions, early ends; no model is called."""
    from mimesim.rollout.review import review
    from mimesim.rollout.store import read_episodes

    found = review(read_episodes(path))
    out = stdout(json=json)
    say(f"{found.episodes} episodes, {found.messages} user messages", json=json)
    names = sorted(set(found.stored) | set(found.by_guard))
    rows = [(name, found.stored.get(name, 0), found.by_guard.get(name, 0)) for name in names]
    if rows:
        out.print(table("", ("guard", "in the run", "found now"), rows))
    for finding in found.findings[:limit]:
        detail = f" ({finding.detail})" if finding.detail else ""
        kind = "hard" if finding.hard else "soft"
        say(
            f"{finding.episode} turn {finding.turn}: {finding.guard}{detail}, {kind}, {finding.tag}",
            json=json,
        )
    if len(found.findings) > limit:
        say(f"... and {len(found.findings) - limit} more", json=json)
    say(f"messages with a hard finding: {found.hard_rate:.1%}", json=json)
    if json:
        emit_json(found.to_json())
    if max_rate is not None and found.hard_rate > max_rate:
        note(f"above {max_rate:.1%}")
        raise typer.Exit(BELOW_THRESHOLD)
