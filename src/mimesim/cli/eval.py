"""`mimesim eval agents`: the matrix of arms, users and gyms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from mimesim.cli.output import BELOW_THRESHOLD, emit_json, near, note, say, stdout, table
from mimesim.errors import UsageError

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Evaluate agents.")


@app.callback()
def group() -> None:
    """Evaluate agents."""


@app.command("agents")
def agents(
    recipe: Annotated[
        list[Path] | None, typer.Option("--recipe", help="Recipe file (TOML); later ones win.")
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            "--arm", help="label=agent, e.g. mine=policy:out/a; label@1=... seed 1 of it."
        ),
    ] = None,
    user: Annotated[
        list[str] | None,
        typer.Option("--user", help="Evaluation user (default: the 7 held-out ones)."),
    ] = None,
    agents_: Annotated[
        str | None,
        typer.Option("--agents", help="Agents by door name, with commas, e.g. oracle,null."),
    ] = None,
    users: Annotated[
        str | None, typer.Option("--users", help="Evaluation users, with commas.")
    ] = None,
    gyms: Annotated[
        str | None, typer.Option("--gyms", help="Gyms, with commas, or all; averages over them.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, e.g. --set matrix.tasks=100.")
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", help="Cells at once.")] = None,
    published: Annotated[
        bool | None,
        typer.Option("--published/--no-published", help="Print published rows beside this run."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="Write tables, with commas: md, latex, html, json."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show cells, episodes and calls, check names; run nothing."),
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="The recipe's small form.")] = False,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of tasks and users.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the matrix.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on the last line.")
    ] = False,
) -> None:
    """Run arms against users and gyms on the same tasks: scores, differences, intervals.

    The same command again goes on where it stopped. Exit code 1: some cells could not be finished.
    """
    from mimesim import config as configs
    from mimesim.bench.config import EvaluationConfig

    arms = [*(arm or []), *(f"{name}={name}" for name in _listed(agents_))]
    flags = [
        configs.Flag("--arm", "arms", _checkpoints(arms) if arms else None),
        configs.Flag("--user", "users", [*(user or []), *_listed(users)] or None),
        configs.Flag("--gyms", "gyms.names", _listed(gyms) or None),
        configs.Flag("--jobs", "jobs", jobs),
        configs.Flag("--published", "published", published),
        configs.Flag("--seed", "matrix.seed", seed),
        configs.Flag("--out", "out", None if out is None else str(out.absolute())),
    ]
    config = configs.load(
        EvaluationConfig, recipe or [], overrides=settings or [], flags=flags, quick=quick
    )
    forms = _forms(form)
    if dry_run:
        _show_forecast(config, json=json)
        return
    _run(config, forms, quiet=quiet, json=json)


def _run(config: Any, forms: list[str], *, quiet: bool, json: bool) -> None:
    from mimesim.bench.evaluate import RECORD, evaluate
    from mimesim.report.make import write

    def tell(text: str, done: int, total: int) -> None:
        if not quiet:
            note(f"{done + 1}/{total} {text}")

    record = evaluate(config, tell)
    _show(record, config, json=json)
    place = config.out / RECORD
    for name in forms:
        say(f"{name} -> {near(str(write(config.out, form=name).out))}", json=json)
    say(f"record -> {near(place)}", json=json)
    for one in record.lost:
        note(f"not finished: {one.arm}, seed {one.seed}, {one.gym}, {one.user}: {one.reason}")
    if json:
        emit_json({**record.brief(), "out": str(config.out)})
    if record.lost:
        raise typer.Exit(BELOW_THRESHOLD)


def _show(record: Any, config: Any, *, json: bool) -> None:
    from mimesim.report.grids import difference_grid, matrix_grids

    if not record.gym_averages:
        _show_rows(record, config, json=json)
    elif len(config.users) == 1:
        _show_gyms(record, json=json)
    shown = matrix_grids(record) if len(config.users) > 1 or record.references else ()
    told: set[str] = set()
    for grid in (*map(_turned, shown), difference_grid(record.differences)):
        if grid.rows:
            stdout(json=json).print(table(grid.title, grid.head, grid.rows))
        for text in grid.notes:
            if text not in told:
                say(f"  {text}", json=json)
        told.update(grid.notes)
    for text in record.limits:
        say(text, json=json)


def _turned(grid: Any) -> Any:
    """Return a grid with the arms as columns, which fits a screen."""
    from dataclasses import replace

    head, *rows = zip(grid.head, *grid.rows, strict=True)
    return replace(grid, head=head, rows=tuple(rows))


def _show_gyms(record: Any, *, json: bool) -> None:
    from mimesim.report.gym_tables import gym_tables

    for found in gym_tables(record):
        rows = [
            (line.name, *(f"{c.value} ({c.note})" if c.note else c.value for c in line.cells))
            for line in found.lines
        ]
        title = f"scores; user {found.user}, judge {found.judge}"
        stdout(json=json).print(table(title, ("gym", *found.arms), rows))
        for warning in found.warnings:
            say(warning, json=json)


def _show_rows(record: Any, config: Any, *, json: bool) -> None:
    rows = [
        (
            r.arm,
            r.user,
            _percent(r.success),
            _number(r.reward),
            r.n,
            f"{100 * r.invalid_rate:.1f} %",
        )
        for r in (*record.rows, *record.averages)
    ]
    columns = ("arm", "user", "success", "reward", "n", "not counted")
    judges = ", ".join(sorted({row.judge for row in record.rows})) or "none"
    title = f"95 % intervals over tasks; judge: {judges}; seed {config.matrix.seed}"
    stdout(json=json).print(table(title, columns, rows))


def _show_forecast(config: Any, *, json: bool) -> None:
    from mimesim.bench.forecast import forecast
    from mimesim.config import redact

    found = forecast(config)
    if json:
        emit_json(found.as_json())
        return
    seeds = {
        label: [a.seed for a in config.checkpoints if a.label == label] for label in config.labels
    }
    arms = [
        (label, ", ".join(map(str, seeds[label])), redact(a.agent))
        for label in config.labels
        for a in config.checkpoints
        if a.label == label and a.seed == seeds[label][0]
    ]
    stdout().print(table("", ("arm", "training seeds", "agent"), arms))
    gyms = [
        (gym, sum(c.gym == gym for c in found.cells), found.tasks[gym], n)
        for gym, n in found.episodes.items()
    ]
    stdout().print(table("", ("gym", "cells", "tasks", "episodes"), gyms))
    calls = [(place, party, n) for (place, party), n in found.calls.items()]
    if calls:
        stdout().print(table("calls at most", ("endpoint", "party", "calls"), calls))
    say(f"users: {', '.join(config.users)}; judge {config.gyms.judge}")
    total = sum(found.episodes.values())
    say(
        f"{len(found.cells)} cells, {total} episodes, {config.jobs} cells at once -> {near(config.out)}"
    )
    for line in found.missing:
        say(f"missing: {line}")
    say("ready" if not found.missing else f"not ready: {len(found.missing)} things are missing")


def _percent(value: Any) -> str:
    if value.value is None:
        return "unknown"
    if value.low is None or value.high is None:
        return f"{100 * value.value:.1f} %"
    return f"{100 * value.value:.1f} % [{100 * value.low:.1f}, {100 * value.high:.1f}]"


def _number(value: Any) -> str:
    return "unknown" if value.value is None else f"{value.value:.3f}"


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _forms(text: str | None) -> list[str]:
    from mimesim.report.make import form_of

    found = _listed(text)
    for name in found:
        form_of(name)
    return found


def _checkpoints(texts: list[str]) -> list[dict[str, Any]]:
    """Return the arms that were typed; the config refuses two of one label and seed."""
    return [_checkpoint(text) for text in texts]


def _checkpoint(text: str) -> dict[str, Any]:
    label, sign, name = text.partition("=")
    if not sign or not label or not name:
        raise UsageError(
            f"--arm {text!r} is not label=agent", expected="e.g. mine=policy:out/agent/policy"
        )
    seeded = re.fullmatch(r"(.+)@(\d+)", label)
    if seeded is None or label == name:
        return {"label": label, "agent": name}
    return {"label": seeded[1], "seed": int(seeded[2]), "agent": name}
