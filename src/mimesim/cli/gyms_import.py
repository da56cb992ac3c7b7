"""`mimesim gyms import userrl`: tasks from a copy of somebody else's data, as a task file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from mimesim.cli.output import emit_json, say, stdout, table

SOURCES = ("userrl",)
"""Whose tasks can be read."""


def command(
    source: Annotated[str, typer.Argument(help="Whose tasks: userrl.")],
    root: Annotated[Path, typer.Argument(help="A copy of the UserRL repository.")],
    gym: Annotated[str, typer.Option("--gym", help="Gym, e.g. persuade.")],
    out: Annotated[Path, typer.Option("--out", help="Task file to write (JSON Lines).")],
    split: Annotated[
        str | None, typer.Option("--split", help="train, validation or test (default: all).")
    ] = None,
    split_source: Annotated[
        str, typer.Option("--split-source", help="groups, or userrl for the published split.")
    ] = "groups",
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object on the last line of stdout.")
    ] = False,
) -> None:
    """Write tasks of one gym from a copy of others' data to a file that `run --tasks` reads."""
    from dataclasses import asdict

    from mimesim.envs.packs import write_tasks
    from mimesim.envs.userrl import load_userrl
    from mimesim.registry import unknown_name

    if source not in SOURCES:
        raise unknown_name("source of tasks", source, list(SOURCES))
    loaded = load_userrl(root, gym, split, split_source)
    written = write_tasks(out, loaded.tasks)
    splits = dict(Counter(task.split for task in loaded.tasks))
    say(f"{written} tasks written to {out}: {_listed(splits)}", json=json)
    if loaded.left_out:
        say(f"left out: {_listed(dict(loaded.left_out))}", json=json)
    if loaded.contamination is not None:
        _show(loaded.contamination, json=json)
    if json:
        found = loaded.contamination
        emit_json(
            {
                "out": str(out),
                "tasks": written,
                "splits": splits,
                "left_out": dict(loaded.left_out),
                "contamination": None if found is None else asdict(found),
            }
        )


def _show(found: Any, *, json: bool) -> None:
    rows = [(found.gym, found.train, found.test, found.train_groups, found.shared, found.whole)]
    columns = ("gym", "train", "test", "groups in train", "test in part", "test as a whole")
    title = f"what the published test tasks share with train: {found.group}"
    stdout(json=json).print(table(title, columns, rows))


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
