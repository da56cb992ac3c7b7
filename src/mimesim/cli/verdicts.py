"""What the verbs that put questions to judges share: options, and when lost verdicts are too many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from mimesim.cli.output import BELOW_THRESHOLD, note

Seed = Annotated[int, typer.Option("--seed", help="Of the judges' calls and intervals.")]
Concurrency = Annotated[int, typer.Option("--concurrency", "-c", min=1, help="Questions at once.")]
MaxInvalid = Annotated[
    float, typer.Option(min=0, max=1, help="Exit 1 above this share of failed verdicts.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object at the end.")]


def stop_above(told: Mapping[str, Mapping[str, int]], most: float) -> None:
    """Leave with exit code 1 where a judge lost more than a share of the verdicts it was asked for.

    Args:
        told: judge -> how many verdicts there are of each state.
        most: share in [0, 1].
    """
    for name, found in told.items():
        asked = sum(found.get(state, 0) for state in ("scored", "failed", "refused"))
        lost = asked - found.get("scored", 0)
        if lost > most * asked:
            note(f"{name}: {lost} of {asked} verdicts failed, more than {most:.1%}")
            raise typer.Exit(BELOW_THRESHOLD)
