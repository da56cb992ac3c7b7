"""`mimesim behaviors`: the 13 realistic behaviors, listed and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mimesim.cli.output import emit_json, fail, say, stdout, table
from mimesim.errors import UsageError

if TYPE_CHECKING:
    from mimesim.scenarios.behaviors import Behavior

app = typer.Typer(no_args_is_help=True, help="Look at the 13 realistic behaviors.")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value on the last line.")]


def _facts(behavior: Behavior) -> dict[str, Any]:
    return {
        "name": behavior.name,
        "id": behavior.id,
        "annotated": behavior.annotated,
        "share": round(behavior.annotated / 700, 3),
        "params": list(behavior.told),
        "rule_check": behavior.has_check,
        "judge_sees_thoughts": behavior.judge_sees_thoughts,
        "min_turns": behavior.min_turns,
        "neighbors": list(behavior.neighbors),
        "definition": behavior.definition,
    }


@app.command("list")
def list_all(json: Json = False) -> None:
    """List all behaviors."""
    from mimesim.scenarios import behaviors

    facts = [_facts(behavior) for behavior in behaviors.everything()]
    columns = ("id", "name", "annotated", "rule_check", "min_turns")
    rows = [[entry[column] for column in columns] for entry in facts]
    stdout(json=json).print(table("", columns, rows))
    if json:
        emit_json(facts)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Id (B3) or code name.")],
    seed: Annotated[int, typer.Option("--seed", help="Seed of the example.")] = 0,
    json: Json = False,
) -> None:
    """Show one behavior with an example of its parameters and directive."""
    from mimesim.scenarios import behaviors
    from mimesim.scenarios.compose import compose
    from mimesim.scenarios.manual import load

    try:
        behavior = behaviors.get(name)
        rows = compose(load(), seed=seed, count=1, neutral_share=0, behaviors=[name]).rows
    except UsageError as error:
        fail(error)
    facts = _facts(behavior)
    facts["example"] = rows[0].to_json() if rows else None
    for key in ("id", "name", "definition", "annotated", "min_turns", "neighbors", "rule_check"):
        say(f"{key}: {facts[key]}", json=json)
    if rows:
        say(f"for example, with {dict(rows[0].params)}:\n{rows[0].directive}", json=json)
    if json:
        emit_json(facts)
