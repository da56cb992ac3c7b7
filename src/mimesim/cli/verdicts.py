"""What the verbs that put questions to judges share: options, and when lost verdicts are too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from mimesim.cli.output import BELOW_THRESHOLD, in_words, note

_SHOWN = 3
"""Reasons that are told, the most frequent first."""
Seed = Annotated[int, typer.Option("--seed", help="Of the judges' calls and intervals.")]
Concurrency = Annotated[int, typer.Option("--concurrency", "-c", min=1, help="Questions at once.")]
Budget = Annotated[
    float,
    typer.Option(
        "--judge-budget",
        min=1,
        help="Seconds for one answer of a judge's endpoint, retries and pauses included.",
    ),
]
MaxInvalid = Annotated[
    float, typer.Option(min=0, max=1, help="Exit 1 above this share of failed verdicts.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object at the end.")]


def stop_above(told: Mapping[str, Mapping[str, Any]], most: float) -> None:
    """Leave with exit code 1 where a judge lost more than a share of the verdicts it was asked for.

    Args:
        told: judge -> how many verdicts there are of each state, and the reasons of those without
            a score, as `judges.stored.states` has them.
        most: share in [0, 1].
    """
    for name, found in told.items():
        asked = sum(found.get(state, 0) for state in ("scored", "failed", "refused"))
        lost = asked - found.get("scored", 0)
        if lost > most * asked:
            kinds = in_words({k: found[k] for k in ("failed", "refused") if found.get(k)})
            note(f"{name}: {lost} of {asked} verdicts are lost ({kinds}), more than {most:.1%}")
            reasons = Counter({k: n for k, n in found.get("reasons", {}).items() if k != "refused"})
            for reason, n in reasons.most_common(_SHOWN):
                note(f"  {n}: {reason}")
            raise typer.Exit(BELOW_THRESHOLD)
