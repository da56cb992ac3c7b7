"""`mimesim annotate`: which behaviors occur where, in people's or simulated conversations."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mimesim.cli.output import emit_json, in_words, say, stdout, table
from mimesim.cli.verdicts import Budget, Concurrency, Json, MaxInvalid, Seed, stop_above
from mimesim.errors import UsageError

if TYPE_CHECKING:
    from mimesim.judges.labeling import Count

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
    seed: Seed = 0,
    concurrency: Concurrency = 8,
    judge_budget: Budget = 180.0,
    max_invalid: MaxInvalid = 0.2,
    json: Json = False,
) -> None:
    """Label which behaviors occur where; counts with intervals, agreement of two annotators.

    Only what was said is read. Rules know words and order, not meaning: they are the weaker
    annotator. The same command again asks only for what is missing.
    """
    from mimesim.judges.labeling import agreements, counts, read_dialogues, work_on
    from mimesim.judges.stored import ask_judges, states

    names = judge or ["rule"]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f"--judge names {twice[0]!r} twice", expected="different annotators")
    dialogues = read_dialogues(source, limit=limit)
    asking = ask_judges(
        names,
        lambda one: work_on(dialogues, one, seed=seed),
        out,
        concurrency=concurrency,
        budget_s=judge_budget,
    )
    labeled = asyncio.run(asking)
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
    stop_above(told, max_invalid)


def _show(name: str, listed: list[Count], *, json: bool) -> None:
    from mimesim.scenarios import behaviors

    cells = [
        (
            c.behavior,
            behaviors.get(c.behavior).name.replace("_", " "),
            c.dialogues,
            c.turns,
            _share(c),
            "-" if c.confidence is None else f"{c.confidence:.2f}",
        )
        for c in listed
        if c.dialogues
    ]
    columns = ("id", "behavior", "dialogues", "turns", "share of dialogues", "sure")
    stdout(json=json).print(table(f"by {name}", columns, cells))


def _share(count: Count) -> str:
    one = count.share
    if one.value is None or one.low is None or one.high is None:
        return "-"
    return f"{100 * one.value:.1f} % [{100 * one.low:.1f}, {100 * one.high:.1f}]"
