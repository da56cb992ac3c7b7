"""`mimesim scenarios`: compose the cases that users bring, and look at one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mimesim.cli.output import emit_json, fail, say, stdout, table
from mimesim.errors import DataError, UsageError

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Compose the cases that users bring."
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on the last line.")]


@app.command()
def compose(
    out: Annotated[Path, typer.Option("--out", help="JSON Lines file to write.")],
    seed: Annotated[int, typer.Option("--seed", help="Seed of all draws.")] = 0,
    count: Annotated[int, typer.Option("--count", min=0, help="Rows to compose.")] = 300,
    neutral_share: Annotated[
        float, typer.Option("--neutral-share", help="Share of rows without a behavior.")
    ] = 1 / 3,
    split: Annotated[str, typer.Option("--split", help="train, validation, test or all.")] = "all",
    behaviors: Annotated[
        str, typer.Option("--behaviors", help="all, annotated, or ids joined by commas.")
    ] = "all",
    pack: Annotated[str, typer.Option("--pack", help="Scenario pack.")] = "company",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compose, write nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print results only.")] = False,
    json: Json = False,
) -> None:
    """Compose rows (record, env, request type, behavior, directive) into a file."""
    from mimesim import jsonio
    from mimesim.scenarios.compose import compose as compose_rows
    from mimesim.scenarios.manual import load

    try:
        result = compose_rows(
            load(pack),
            seed=seed,
            count=count,
            neutral_share=neutral_share,
            split=None if split == "all" else split,
            behaviors=behaviors,
        )
        if not dry_run:
            lines = [jsonio.dumps(row.to_json()) + "\n" for row in result.rows]
            jsonio.write_text(out, "".join(lines))
    except UsageError as error:
        fail(error)
    say(
        f"{len(result.rows)} rows, {sum(result.dropped.values())} dropped -> {out}",
        quiet=quiet,
        json=json,
    )
    if json:
        emit_json({"rows": len(result.rows), "dropped": dict(result.dropped), "out": str(out)})


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A file that `compose` wrote.")],
    index: Annotated[int, typer.Option("--index", min=0, help="Index of the row.")] = 0,
    pack: Annotated[str, typer.Option("--pack", help="Scenario pack.")] = "company",
    json: Json = False,
) -> None:
    """Show one row: who the customer is, what is asked, what a perfect agent does."""
    from mimesim import jsonio
    from mimesim.scenarios import procedure
    from mimesim.scenarios.manual import load
    from mimesim.scenarios.rows import row_to_scenario
    from mimesim.scenarios.types import Row

    try:
        manual = load(pack)
        found = [
            row
            for line in jsonio.read_jsonl(file)
            if (row := Row.from_json(line.value, f"{file}:{line.number}")).index == index
        ]
        if not found:
            raise DataError(f"no row has index {index}", where=str(file))
        row = found[0]
        scenario = row_to_scenario(row, manual)
        steps = procedure.gold(row, manual)
    except UsageError as error:
        fail(error)
    say(f"{scenario.id}: {scenario.goal}", json=json)
    say(f"behavior: {row.behavior or 'neutral'}  verdict: {scenario.success['verdict']}", json=json)
    if row.directive:
        say(row.directive, json=json)
    facts = [(key, value) for key, value in scenario.facts.items()]
    stdout(json=json).print(table("what the customer knows", ("field", "value"), facts))
    gold = [(tool, ", ".join(f"{k}={v}" for k, v in slots.items())) for tool, slots in steps]
    stdout(json=json).print(table("what a perfect agent does", ("tool", "slots"), gold))
    if json:
        emit_json(row.to_json())
