"""`mimesim users`: list the kinds of users and show one of them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mimesim.cli.output import emit_json, say, stdout, table

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Look at the users an agent can meet."
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON on the last line of stdout.")]


@app.command("list")
def list_users(*, json: Json = False) -> None:
    """List every kind of user with its door name."""
    from mimesim.users.catalog import catalog

    rows = catalog()
    if json:
        emit_json([entry.as_json() for entry in rows])
        return
    stdout().print(table("", ("name", "summary"), [(e.name, e.summary) for e in rows]))


@app.command("show")
def show_user(name: str, *, json: Json = False) -> None:
    """Show what one kind of user is told, or how it behaves."""
    from mimesim.users.catalog import describe

    entry: dict[str, Any] = describe(name)
    if json:
        emit_json(entry)
        return
    for key, value in entry.items():
        text = f"\n{value}" if "\n" in str(value) else f" {value}"
        say(f"{key}:{text}")
