"""`mimesim bench report` and `compare`: scores side by side, and paired differences."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mimesim.cli.bench_suite import Boot, Json, Mixed, Seed
from mimesim.cli.output import emit_json, near, say, stdout, table

if TYPE_CHECKING:
    from mimesim.bench.suites.paired import SuiteComparison
    from mimesim.results.suite import SuiteScore


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders, score files, or a leaderboard.")],
    form: Annotated[str, typer.Option("--format", help="md, json, csv or html.")] = "md",
    out: Annotated[Path | None, typer.Option("--out", help="File to write.")] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Print published rows beside ours.")
    ] = False,
    mixed: Mixed = False,
) -> None:
    """Set scores side by side, one table per suite; json is the leaderboard file."""
    from mimesim.jsonio import write_text
    from mimesim.report.board import board_text
    from mimesim.results.leaderboard import Leaderboard, is_leaderboard, leaderboard

    if len(runs) == 1 and is_leaderboard(runs[0]):
        board = Leaderboard.read(runs[0])
    else:
        board = leaderboard(_records(runs), mixed=mixed, references=reference)
    text = board_text(board, form)
    if out is None and form != "html":
        sys.stdout.write(text)
        return
    place = out or Path("leaderboard.html")
    write_text(place, text)
    say(f"report -> {near(place)}")


def compare(
    first: Annotated[Path, typer.Argument(help="Folder or score file.")],
    second: Annotated[Path, typer.Argument(help="Folder or score file to compare it with.")],
    mixed: Mixed = False,
    seed: Seed = None,
    boot: Boot = 10_000,
    json: Json = False,
) -> None:
    """Compare two scores on what both have: paired differences, first minus second."""
    from mimesim.bench.suites import paired

    found = paired.compare(
        _records([first]), _records([second]), mixed=mixed, seed=seed or 0, draws=boot
    )
    for one in found:
        _show_comparison(one, json=json)
    if json:
        emit_json({"comparisons": [one.to_json() for one in found]})


def _records(places: list[Path]) -> dict[str, SuiteScore]:
    from mimesim.bench.suites.folder import score_files
    from mimesim.results.suite import SuiteScore

    files = [file for place in places for file in score_files(place)]
    return {str(file): SuiteScore.read(file) for file in dict.fromkeys(files)}


def _show_comparison(one: SuiteComparison, *, json: bool) -> None:
    rows = []
    for row in one.rows:
        value = row.value
        low, high = value.low, value.high
        rows.append(
            (
                row.metric,
                "-" if value.value is None else f"{value.value:+.3f}",
                "-" if low is None or high is None else f"{low:+.3f} to {high:+.3f}",
                row.unit,
                "-" if row.p_holm is None else f"{row.p_holm:.3f}",
                value.n,
                f"{row.alone[0]} / {row.alone[1]}",
            )
        )
    columns = ("metric", "difference", "95 % interval", "unit", "p (Holm)", "pairs", "alone")
    title = f"{one.suite}: {one.users[0]} minus {one.users[1]}"
    stdout(json=json).print(table(title, columns, rows))
    if one.mixed:
        say(f"mixed: they differ in {' and '.join(one.mixed)}, too", json=json)
    if one.unpaired:
        say(f"of whole sets, so not paired: {', '.join(one.unpaired)}", json=json)
