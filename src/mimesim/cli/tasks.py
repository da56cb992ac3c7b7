"""`mimesim tasks list`, `show`: what a user model can be trained and measured on."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mimesim.cli.output import emit_json, fail, in_words, say, stdout, table
from mimesim.errors import UsageError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Look at the tasks, whose policy is the user model.",
)

_SHOWN_REJECTS = 5
Json = Annotated[bool, typer.Option("--json", help="One JSON object on the last line of stdout.")]


@app.command("list")
def list_tasks(json: Json = False) -> None:
    """List the tasks: axis, who is needed, the ends of the scale, the own rows."""
    from mimesim.envs.tasks.load import describe_tasks

    tasks = describe_tasks()
    if json:
        emit_json(tasks)
        return
    rows = [
        [
            task["name"],
            task["axis"],
            " + ".join(_needed(task)) or "-",
            task["turns"],
            f"{task['floor']:g} to {task['ceiling']:g}",
            task["rows"],
        ]
        for task in tasks
    ]
    columns = ["task", "axis", "needs", "turns", "null to oracle", "own rows"]
    stdout().print(table("", columns, rows))


@app.command("show")
def show_task(
    name: Annotated[str, typer.Argument(help="A task, e.g. fantom.")],
    rows: Annotated[
        str | None,
        typer.Option(
            help="Your copy of the row files: a file, folder, glob or hub:<owner>/<name>."
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "train",
    index: Annotated[int, typer.Option(min=0, help="Which row to show, from 0.")] = 0,
    json: Json = False,
) -> None:
    """Show the facts of a task, one row as the user model sees it, and what could not be used."""
    from mimesim.envs.tasks.load import describe_task, load_rows

    try:
        facts = describe_task(name)
        loaded = load_rows(name, place=rows, split=split)
        if index >= len(loaded.tasks):
            raise UsageError(
                f"there is no row {index}", expected=f"a number below {len(loaded.tasks)}"
            )
        seen = _opening(loaded.tasks[index])
    except UsageError as error:
        fail(error)
    facts |= {"counts": dict(loaded.counts), "row": {"id": loaded.tasks[index].id, **seen}}
    facts["rejects"] = [f"{r.where}: {r.reason}: {r.detail}" for r in loaded.rejects]
    if json:
        emit_json(facts)
        return
    for key, value in facts.items():
        if key not in ("row", "rejects"):
            say(f"{key.replace('_', ' ')}: {in_words(value)}")
    for reject in facts["rejects"][:_SHOWN_REJECTS]:
        say(f"left out: {reject}")
    more = len(facts["rejects"]) - _SHOWN_REJECTS
    if more > 0:
        say(f"left out: {more} more")
    say(f"\nthe user model is told:\n\n{seen['system']}\n\n{seen['first']}")


def _needed(task: dict[str, Any]) -> list[str]:
    judge = [] if task["judge_free"] else ["judge"]
    return [*judge, "partner"] if task["partner"] else judge


def _opening(task: Any) -> dict[str, str]:
    """Return what a row begins with; a partner that speaks first does so by its rule."""
    import asyncio

    from mimesim.envs.tasks.load import make_env
    from mimesim.envs.tasks.partner import RulePartner
    from mimesim.judges.rule import RuleJudge

    env = make_env(task, judge=RuleJudge(), partner=RulePartner())
    seen = asyncio.run(env.reset(task, seed=0))
    return {"system": seen.system, "first": seen.first_user}
