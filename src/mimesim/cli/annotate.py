"""`mimesim annotate`: which behaviors occur where, in people's or simulated conversations."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mimesim.cli.output import BELOW_THRESHOLD, emit_json, in_words, note, say, stdout, table
from mimesim.errors import UsageError

if TYPE_CHECKING:
    from mimesim.judges.labeling import Count
    from mimesim.judges.stored import Stored

_SOURCE = "Episode file, run folder, or a corpus: name:place, a .jsonl of own logs, chitchat."


def command(
    source: Annotated[str, typer.Argument(help=_SOURCE)],
    judge: Annotated[
        list[str] | None,
        typer.Option("--judge", help="rule, rule-heldout or model:<model>; twice = compare."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Where labels are kept, .jsonl; resumes.")
    ] = Path("out/labels.jsonl"),
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the judges' calls and intervals.")] = 0,
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", min=1, help="Questions at once.")
    ] = 8,
    max_invalid: Annotated[
        float, typer.Option(min=0, max=1, help="Exit 1 above this share of failed verdicts.")
    ] = 0.2,
    json: Annotated[bool, typer.Option("--json", help="One JSON object at the end.")] = False,
) -> None:
    """Label which behaviors occur where; counts with intervals, agreement of two annotators.

    Only what was said is read. Rules know words and order, not meaning: they are the weaker
    annotator. The same command again asks only for what is missing.
    """
    from mimesim.judges.agree import states
    from mimesim.judges.labeling import agreements, counts

    names = judge or ["rule"]
    if len(set(names)) < len(names):
        raise UsageError(f"--judge names {names[0]!r} twice", expected="different annotators")
    labeled = asyncio.run(_label(source, names, out, (limit, seed, concurrency)))
    found = {name: counts(stored) for name, stored in labeled.items()}
    told = {name: states(stored) for name, stored in labeled.items()}
    for name, listed in found.items():
        _show(name, listed, json=json)
        say(f"{name}: {in_words({k: v for k, v in told[name].items() if v})}", json=json)
    compared = {}
    if len(names) == 2:
        compared = agreements(*(labeled[name] for name in names), seed=seed)
        for behavior, one in compared.items():
            kappa = "-" if one.kappa.value is None else f"{one.kappa.value:.2f}"
            say(f"{behavior}: agree {one.share.value:.2f} of {one.n}, kappa {kappa}", json=json)
    say(f"labels -> {out}", json=json)
    if json:
        emit_json(
            {
                "dialogues": len(labeled[names[0]]),
                "counts": {name: [c.to_json() for c in listed] for name, listed in found.items()},
                "verdicts": told,
                "agreement": {name: one.to_json() for name, one in compared.items()},
                "out": str(out),
            }
        )
    _judge_failures(told, max_invalid)


def _judge_failures(told: dict[str, dict[str, int]], most: float) -> None:
    for name, found in told.items():
        asked = sum(found.get(state, 0) for state in ("scored", "failed", "refused"))
        lost = asked - found.get("scored", 0)
        if lost > most * asked:
            note(f"{name}: {lost} of {asked} verdicts failed, more than {most:.1%}")
            raise typer.Exit(BELOW_THRESHOLD)


async def _label(
    source: str, names: list[str], out: Path, how: tuple[int | None, int, int]
) -> dict[str, list[Stored]]:
    from mimesim.judges.labeling import read_dialogues, work_on
    from mimesim.judges.load import make_judge
    from mimesim.judges.stored import Verdicts
    from mimesim.models.load import preflight

    limit, seed, concurrency = how
    dialogues = read_dialogues(source, limit=limit)
    judges = {name: make_judge(name) for name in names}
    labeled = {}
    try:
        for one in judges.values():
            await preflight(one)
        with Verdicts(out) as file:
            for name, one in judges.items():
                works = work_on(dialogues, one, seed=seed)
                labeled[name] = await file.all(works, one.identity, concurrency=concurrency)
    finally:
        for one in judges.values():
            await one.aclose()
    return labeled


def _show(name: str, listed: list[Count], *, json: bool) -> None:
    from mimesim.scenarios import behaviors

    cells = [
        (
            c.behavior,
            behaviors.get(c.behavior).name,
            c.dialogues,
            c.turns,
            _share(c),
            "-" if c.confidence is None else f"{c.confidence:.2f}",
        )
        for c in listed
        if c.dialogues
    ]
    columns = ("id", "behavior", "dialogues", "turns", "share of the labeled", "confidence")
    stdout(json=json).print(table(f"by {name}", columns, cells))


def _share(count: Count) -> str:
    one = count.share
    if one.value is None or one.low is None or one.high is None:
        return "-"
    return f"{100 * one.value:.1f} % [{100 * one.low:.1f}, {100 * one.high:.1f}]"
