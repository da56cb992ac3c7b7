"""`mimesim demo`: the whole loop on the embedded default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mimesim.cli.output import emit_json, say, stdout, table
from mimesim.cli.stages import StageBars


def command(
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the results (default: out/<size>).")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Check the plumbing in minutes; claims nothing.")
    ] = False,
    size: Annotated[
        str, typer.Option("--size", help="quick, demo, or study (2 warm starts x 3 RL seeds).")
    ] = "demo",
    seed: Annotated[int, typer.Option("--seed", help="Seed of every stream.")] = 0,
    processes: Annotated[
        int, typer.Option("--processes", help="Stages side by side, one thread each.", min=1)
    ] = 2,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the stages and leave.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print results only.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on the last line.")
    ] = False,
) -> None:
    """Human chats to a trained user, a trained agent, and a report of what changed."""
    from mimesim.report.make import write
    from mimesim.studies.embedded import run_study, study_config
    from mimesim.studies.plan import plan_stages

    name = "quick" if quick else size
    config = study_config(name, seed)
    folder = out or Path("out") / name
    stages = plan_stages(config, folder)
    if dry_run:
        rows = [(s.name, s.kind, ", ".join(s.needs), "done" if s.done() else "") for s in stages]
        columns = ("stage", "kind", "needs", "state")
        stdout(json=json).print(table("stages", columns, rows))
        if json:
            listed = [dict(zip(columns, row, strict=True)) for row in rows]
            emit_json({"out": str(folder), "stages": listed})
        return
    with StageBars([s.name for s in stages], quiet=quiet) as bars:
        record = run_study(config, folder, processes=processes, on_progress=bars.update)
    page = write(folder)
    _summary(record, str(page.out), quiet=quiet, json=json)
    if json:
        emit_json(
            {
                "out": str(folder),
                "report": str(page.out),
                "verdict": record.verdict,
                "rows": [row.brief() for row in record.rows],
                "averages": [row.brief() for row in record.averages],
                "differences": [
                    {"arm": d.arm, "baseline": d.baseline, **d.value.brief()}
                    for d in record.differences
                ],
                "seeds": {stage: list(seeds) for stage, seeds in record.seeds.items()},
                "wall_s": record.provenance.wall_s,
                "cpu_s": record.provenance.cpu_s,
            }
        )


def _summary(record: Any, page: str, *, quiet: bool, json: bool) -> None:
    console = stdout(json=json)
    rows = [
        (row.arm, _percent(row.success), row.n, f"{100 * row.invalid_rate:.1f} %")
        for row in record.averages
    ]
    title = "success under 7 held-out users (95 % interval over tasks; judge: rule)"
    console.print(table(title, ("trained with", "success", "n", "not counted"), rows))
    rows = [
        (d.arm, d.baseline, _points(d.value), "" if d.value.resolved else "not resolved")
        for d in record.differences
    ]
    console.print(table("paired differences, points", ("arm", "minus", "difference", ""), rows))
    seeds = ", ".join(f"{stage} seeds {list(values)}" for stage, values in record.seeds.items())
    say(f"{record.verdict}\n{seeds}\nreport -> {page}", quiet=False, json=json)


def _percent(value: Any) -> str:
    if value.value is None:
        return "unknown"
    low, high = 100 * (value.low or 0), 100 * (value.high or 0)
    return f"{100 * value.value:.1f} % [{low:.1f}, {high:.1f}]"


def _points(value: Any) -> str:
    if value.value is None:
        return "unknown"
    low, high = 100 * (value.low or 0), 100 * (value.high or 0)
    return f"{100 * value.value:+.1f} [{low:+.1f}, {high:+.1f}]"
