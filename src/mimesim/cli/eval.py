"""`mimesim eval agents`: the matrix of arms and users, in one gym or over several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mimesim.cli.output import emit_json, near, note, say, stdout, table
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
        list[str] | None, typer.Option("--arm", help="label=agent, e.g. mine=policy:out/a/policy.")
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
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of tasks and users.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the matrix.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on the last line.")
    ] = False,
) -> None:
    """Run arms against users on the same tasks; success, reward, paired differences, intervals."""
    from mimesim import config as configs
    from mimesim.bench.evaluate import EvaluationConfig, evaluate
    from mimesim.bench.gyms import evaluate_gyms

    arms = [*(arm or []), *(f"{name}={name}" for name in _listed(agents_))]
    flags = [
        configs.Flag("--arm", "arms", _pairs(arms) if arms else None),
        configs.Flag("--user", "users", [*(user or []), *_listed(users)] or None),
        configs.Flag("--gyms", "gyms.names", _listed(gyms) or None),
        configs.Flag("--seed", "matrix.seed", seed),
        configs.Flag("--out", "out", None if out is None else str(out.absolute())),
    ]
    config = configs.load(EvaluationConfig, recipe or [], overrides=settings or [], flags=flags)

    def tell(text: str, done: int, total: int) -> None:
        if not quiet:
            note(f"{done + 1}/{total} {text}")

    if config.gyms.names:
        _show_gyms(evaluate_gyms(config, tell), config, json=json)
    else:
        _show(evaluate(config, tell), config, json=json)


def _show_gyms(record: Any, config: Any, *, json: bool) -> None:
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
    say(f"record -> {near(config.out / 'record.json')}", json=json)
    if json:
        emit_json(
            {
                "rows": [row.brief() for row in record.rows],
                "averages": [one.brief() for one in record.gym_averages],
                "out": str(config.out),
            }
        )


def _show(record: Any, config: Any, *, json: bool) -> None:
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
    title = f"95 % intervals over tasks; judge: rule; seed {config.matrix.seed}"
    stdout(json=json).print(table(title, columns, rows))
    for d in record.differences:
        say(f"{d.arm} - {d.baseline}: {_percent(d.value)}", json=json)
    say(f"record -> {near(config.out / 'record.json')}", json=json)
    if json:
        emit_json(
            {
                "rows": [r.brief() for r in record.rows],
                "averages": [r.brief() for r in record.averages],
                "differences": [
                    {"arm": d.arm, "baseline": d.baseline, **d.value.brief()}
                    for d in record.differences
                ],
                "out": str(config.out),
            }
        )


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


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = [_pair(text) for text in texts]
    labels = [label for label, _ in pairs]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise UsageError(f"--arm names {twice!r} twice", expected="one label for each arm")
    return dict(pairs)


def _pair(text: str) -> tuple[str, str]:
    label, sign, name = text.partition("=")
    if not sign or not label or not name:
        raise UsageError(
            f"--arm {text!r} is not label=agent", expected="e.g. mine=policy:out/agent/policy"
        )
    return label, name
