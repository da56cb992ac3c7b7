"""`mimesim gyms list`, `show`, `generate`: what an agent can be placed in, and tasks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mimesim.cli import gyms_import
from mimesim.cli.output import emit_json, fail, in_words, say, stdout, table
from mimesim.errors import UsageError

app = typer.Typer(add_completion=False, help="Look at the gyms.", no_args_is_help=True)
app.command("import")(gyms_import.command)

Json = Annotated[bool, typer.Option("--json", help="One JSON object on the last line of stdout.")]


@app.command("list")
def list_gyms(json: Json = False) -> None:
    """List the gyms with their profiles and limits."""
    from mimesim.envs.load import describe_gyms

    gyms = describe_gyms()
    if json:
        emit_json(gyms)
        return
    rows = [
        [
            *(gym["name"], profile, facts["max_steps"], facts["return_bound"]),
            ", ".join(party for party in ("user", "judge") if facts[f"needs_{party}"]) or None,
            facts["summary"],
        ]
        for gym in gyms
        for profile, facts in gym["profiles"].items()
    ]
    columns = ["gym", "profile", "steps", "best return", "with", "what the agent has to do"]
    stdout().print(table("", columns, rows))


@app.command("show")
def show_gym(
    name: Annotated[str, typer.Argument(help="A gym, e.g. support-desk.")],
    profile: Annotated[str | None, typer.Option(help="Task profile.")] = None,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "test",
    seed: Annotated[int, typer.Option(help="Seed of the task shown.")] = 0,
    floors: Annotated[int, typer.Option(help="Measure the ends of the scale on N tasks.")] = 0,
    json: Json = False,
) -> None:
    """Show the facts of a gym and the public side of one of its tasks."""
    try:
        shown = _show(name, profile, split, seed)
        if floors:
            shown["floors"] = _floors(name, profile, split, seed, floors)
    except UsageError as error:
        fail(error)
    if json:
        emit_json(shown)
        return
    for key, value in shown.items():
        if key not in ("task", "options", "flags"):
            say(f"{key.replace('_', ' ')}: {in_words(value)}")
    _tell_options(shown)
    say("\nan agent is shown at the start of a task:")
    for key, value in shown["task"]["public"].items():
        text = _in_words(value).replace("\n", "\n    ")
        say(f"  {key}: {text}")


@app.command("generate")
def generate_tasks(
    name: Annotated[str, typer.Argument(help="A gym, e.g. support-desk.")],
    out: Annotated[Path, typer.Option(help="Task file to write (JSON Lines).")],
    profile: Annotated[str | None, typer.Option(help="Task profile.")] = None,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "train",
    n: Annotated[int, typer.Option("--n", help="How many tasks.")] = 200,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal bytes.")] = 0,
    json: Json = False,
) -> None:
    """Write tasks of a gym to a file that `run --tasks` reads."""
    from mimesim.envs.load import load_tasks
    from mimesim.envs.packs import write_tasks

    try:
        tasks = load_tasks(name, profile=profile, split=split, seed=seed, count=n)
        written = write_tasks(out, tasks)
    except UsageError as error:
        fail(error)
    if json:
        emit_json({"tasks": written, "out": str(out)})
    else:
        say(f"{written} tasks written to {out}")


def _in_words(value: Any) -> str:
    """Return lists of named things as their names."""
    if isinstance(value, list):
        return ", ".join(str(v["name"]) if isinstance(v, dict) else str(v) for v in value)
    return str(value)


def _tell_options(shown: dict[str, Any]) -> None:
    if "options" not in shown:
        return
    told = ", ".join(f"{key}={_as_typed(value)}" for key, value in shown["options"].items())
    say(f"options, set with --gym-option: {told}")
    rows = [[flag, *map(_as_typed, values.values())] for flag, values in shown["flags"].items()]
    columns = ["flag of --compat", *next(iter(shown["flags"].values()))]
    stdout().print(
        table("\nwhat the originals do otherwise, each flag an option too:", columns, rows)
    )


def _as_typed(value: Any) -> str:
    """Return a value as `--gym-option` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _show(name: str, profile: str | None, split: str, seed: int) -> dict[str, Any]:
    from mimesim.envs.agents.floors import stored
    from mimesim.envs.agents.load import agents_of
    from mimesim.envs.load import describe_gym, load_gym, load_tasks
    from mimesim.envs.turns.compat import flags_of
    from mimesim.envs.turns.kind import ProfiledKind, TurnKind

    facts = describe_gym(name, profile)
    gym = load_gym(name)
    if isinstance(gym, TurnKind | ProfiledKind):
        own = gym.options(profile or gym.profiles[0])
        facts = {**facts, "options": own, "flags": flags_of(name)}
    (task,) = load_tasks(name, profile=profile, split=split, seed=seed, count=1)
    facts = {**facts, "agents": agents_of(task)}
    floors = stored(name, profile or gym.profiles[0])
    if floors is not None:
        facts = {**facts, "floors": dict(floors)}
    return {**facts, "task": {"id": task.id, "split": task.split, "public": dict(task.public)}}


def _floors(name: str, profile: str | None, split: str, seed: int, count: int) -> dict[str, Any]:
    import asyncio

    from mimesim.envs.agents.floors import USER, floors
    from mimesim.envs.load import load_tasks
    from mimesim.users.load import make_user

    tasks = load_tasks(name, profile=profile, split=split, seed=seed, count=count)
    return asyncio.run(floors(tasks, make_user(USER), seed=seed)).to_json()
