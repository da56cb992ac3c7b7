"""`mimesim judge agree`: judges set against each other, or against people, on stored episodes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from mimesim.cli.output import BELOW_THRESHOLD, emit_json, in_words, note, say, stdout, table
from mimesim.cli.verdicts import Budget, Concurrency, Json, MaxInvalid, Seed, stop_above
from mimesim.errors import UsageError

if TYPE_CHECKING:
    from mimesim.judges.agree import Row
    from mimesim.judges.stored import Stored

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Look at judges.")

_JUDGES = "Door names, joined by commas: rule, rule-heldout, model:<model>, human:<file.jsonl>."
_FILE = "Episode file, run folder, or a file of pairs with human_label and judge_score."


@app.callback()
def group() -> None:
    """Look at judges."""


@app.command()
def agree(
    episodes: Annotated[Path, typer.Argument(help=_FILE)],
    judges: Annotated[str, typer.Option("--judges", help=_JUDGES)] = "rule,rule-heldout",
    out: Annotated[
        Path | None, typer.Option("--out", help="Where verdicts are kept, .jsonl; resumes.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many episodes.")] = None,
    seed: Seed = 0,
    concurrency: Concurrency = 8,
    judge_budget: Budget = 180.0,
    max_invalid: MaxInvalid = 0.2,
    json: Json = False,
) -> None:
    """Compare judges of behaviors: agreement, kappa, rank correlation, per behavior and measure.

    agree: share of what both decided on the same side of 0.5. of all: the same share of all that
    were asked, where a lost verdict agrees with nothing. kappa: agreement beyond chance, 0 to 1.
    ranks: Spearman's correlation of the scores. In brackets: 95 % intervals. All measures of all
    behaviors stand in --json. Verdicts are kept beside the episodes; the same command again asks
    only for what is missing.
    """
    from mimesim.judges.agree import is_rated, rated_rows, rows_of
    from mimesim.judges.stored import states

    if episodes.is_file() and is_rated(episodes):
        rows = rated_rows(episodes, seed=seed)
        _show(rows, json=json)
        if json:
            emit_json({"rows": [row.to_json() for row in rows]})
        return
    place = out or _beside(episodes)
    how = _How(limit, seed, concurrency, judge_budget)
    judged = asyncio.run(_judge(episodes, _names(judges), place, how))
    rows, alone = rows_of(judged, seed=seed)
    _show(rows, json=json)
    told = {name: states(stored) for name, stored in judged.items()}
    for name, found in told.items():
        say(f"{name}: {in_words({k: v for k, v in found.items() if v})}", json=json)
    for pair, count in alone.items():
        if count:
            say(f"{pair}: {count} episodes are known to one of the two only", json=json)
    say(f"verdicts -> {place}", json=json)
    if json:
        emit_json(
            {
                "rows": [row.to_json() for row in rows],
                "verdicts": told,
                "alone": alone,
                "out": str(place),
            }
        )
    stop_above(told, max_invalid)
    if not rows:
        note("nothing to compare: no episode has verdicts of two judges")
        raise typer.Exit(BELOW_THRESHOLD)


def _names(text: str) -> list[str]:
    from mimesim.judges.agree import HUMAN

    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError(
            f"--judges {text!r} does not name two different judges",
            expected="two or more, joined by commas, e.g. rule,rule-heldout",
        )
    for name in names:
        if name in (HUMAN, HUMAN.rstrip(":")):
            raise UsageError(
                f"judge {name!r} is incomplete", expected=f"{HUMAN}<file.jsonl> with its verdicts"
            )
    return names


def _beside(episodes: Path) -> Path:
    folder = episodes if episodes.is_dir() else Path(str(episodes).partition(".jsonl")[0] + ".run")
    return folder / "verdicts.jsonl"


class _How(NamedTuple):
    limit: int | None
    seed: int
    concurrency: int
    budget_s: float


async def _judge(path: Path, names: list[str], out: Path, how: _How) -> dict[str, list[Stored]]:
    from mimesim.judges.agree import HUMAN, read_human, work_on
    from mimesim.judges.stored import ask_judges
    from mimesim.rollout.store import read_episodes

    stored = read_episodes(path)[: how.limit]
    people = {
        name: read_human(name.removeprefix(HUMAN)) for name in names if name.startswith(HUMAN)
    }
    judged = await ask_judges(
        [name for name in names if name not in people],
        lambda judge: work_on(stored, judge, seed=how.seed),
        out,
        concurrency=how.concurrency,
        budget_s=how.budget_s,
    )
    return {name: (people | judged)[name] for name in names}


def _show(rows: list[Row], *, json: bool) -> None:
    """Print one table per pair of judges: all measures, and of each behavior whether it shows."""
    from mimesim.judges.agree import ALL, SHOWN

    out = stdout(json=json)
    columns = ("of", "measure", "n", "agree", "of all", "kappa", "ranks")
    for pair in dict.fromkeys(row.judges for row in rows):
        cells = [
            (
                row.behavior,
                row.measure,
                f"{row.comparison.n}/{row.comparison.asked}",
                _bounded(row.comparison.share),
                _bounded(row.comparison.share_of_all, bounds=False),
                _bounded(row.comparison.kappa),
                _bounded(row.comparison.spearman, bounds=False),
            )
            for row in rows
            if row.judges == pair and (row.behavior == ALL or row.measure in SHOWN)
        ]
        title = " x ".join(pair) + ": n decided by both, yes or no from 0.5 on"
        out.print(table(title, columns, cells))


def _bounded(one: Any, *, bounds: bool = True) -> str:
    if one.value is None:
        return "-"
    if one.low is None or not bounds:
        return f"{one.value:.2f}"
    return f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]"
