"""`mimesim behaviors`: the 13 realistic behaviors, listed and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mimesim.cli.output import emit_json, fail, in_words, say, stdout, table
from mimesim.errors import UsageError

if TYPE_CHECKING:
    from mimesim.scenarios.behaviors import Behavior

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Look at the 13 realistic behaviors."
)

_SHOWN = {
    "id": "id",
    "name": "name",
    "definition": "definition",
    "annotated": "of the 700 annotated instances of the paper",
    "min_turns": "user turns needed",
    "neighbors": "easily taken for",
    "rule_check": "checked by rule",
}
"""What `show` prints, and the words for it."""

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
    keys = ("id", "name", "annotated", "rule_check", "min_turns")
    columns = ("id", "name", "of 700", "by rule", "turns")
    rows = [
        [in_words(value) if isinstance(value, bool) else value for value in map(entry.get, keys)]
        for entry in facts
    ]
    stdout(json=json).print(
        table(
            "of 700: annotated instances in the paper; by rule: a rule checks it",
            columns,
            rows,
        )
    )
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
    for key, label in _SHOWN.items():
        say(f"{label}: {in_words(facts[key])}", json=json)
    if rows:
        given = in_words(rows[0].params)
        with_params = f" (here: {given})" if given else ""
        say(f"\nwhat such a user is told, for example{with_params}:", json=json)
        say(rows[0].directive, json=json)
    if json:
        emit_json(facts)
