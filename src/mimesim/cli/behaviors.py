"""`mimesim behaviors`: the realistic behaviors, listed, shown, checked, and as a page of the docs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mimesim.cli.output import BELOW_THRESHOLD, emit_json, fail, in_words, say, stdout, table
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
    "applies": "applies",
    "min_turns": "user turns needed",
    "judge_sees_thoughts": "a judge may read thoughts for it",
    "rule_check": "checked by rule",
}
"""What `show` prints line by line, and the words for it."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value on the last line.")]


def _facts(behavior: Behavior) -> dict[str, Any]:
    from mimesim.scenarios.behaviors import judged

    shown = judged(behavior)
    return {
        "name": behavior.name,
        "id": behavior.id,
        "annotated": behavior.annotated,
        "share": round(behavior.annotated / 700, 3),
        "params": list(behavior.told),
        "all_params": dict(behavior.described.params),
        "applies": behavior.described.applies,
        "rule_check": behavior.has_check,
        "check": behavior.described.check,
        "judge_sees_thoughts": behavior.judge_sees_thoughts,
        "min_turns": behavior.min_turns,
        "neighbors": list(behavior.neighbors),
        "definition": behavior.definition,
        "examples": list(behavior.described.examples),
        "judge": {
            "definition": shown.definition,
            "not": [
                {"name": name, "definition": definition, "contrast": contrast}
                for name, definition, contrast in shown.contrasts
            ],
        },
    }


@app.command("list")
def list_all(json: Json = False) -> None:
    """List all behaviors, those of extensions too."""
    from mimesim.scenarios import behaviors

    facts = [_facts(behavior) for behavior in behaviors.everything()]
    keys = ("id", "name", "annotated", "rule_check", "min_turns", "neighbors")
    columns = ("id", "name", "of 700", "by rule", "turns", "easily taken for")
    rows = [
        [in_words(v) if isinstance(v, bool | list) else v for v in map(entry.get, keys)]
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
    name: Annotated[str, typer.Argument(help="Id (B3), code name, or package.module:attribute.")],
    seed: Annotated[int, typer.Option("--seed", help="Seed of the example.")] = 0,
    json: Json = False,
) -> None:
    """Show one behavior: what it is, where it applies, how it is told, checked and judged."""
    from mimesim.scenarios import behaviors
    from mimesim.scenarios.compose import compose
    from mimesim.scenarios.manual import load

    try:
        behavior = behaviors.get(name)
        rows = compose(load(), seed=seed, count=1, neutral_share=0, behaviors=[name]).rows
        facts = _facts(behavior)
    except UsageError as error:
        fail(error)
    facts["example"] = rows[0].to_json() if rows else None
    for key, label in _SHOWN.items():
        say(f"{label}: {in_words(facts[key])}", json=json)
    if facts["check"]:
        say(f"  {facts['check']}", json=json)
    for title, lines in (
        ("parameters", [f"{key}: {told}" for key, told in facts["all_params"].items()]),
        ("such a user writes", facts["examples"]),
        (
            "a judge is told that it is not",
            [f"{n['name']}: {n['contrast']}" for n in facts["judge"]["not"]],
        ),
    ):
        say(
            "\n".join([f"{title}:" if lines else f"{title}: none", *(f"  {x}" for x in lines)]),
            json=json,
        )
    if rows:
        given = in_words(rows[0].params)
        with_params = f" (here: {given})" if given else ""
        say(f"\nwhat such a user is told, for example{with_params}:", json=json)
        say(rows[0].directive, json=json)
    if json:
        emit_json(facts)


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="Id, code name, or package.module:attribute.")],
    json: Json = False,
) -> None:
    """Run the conformance suite on a behavior; for those who write one."""
    from mimesim.scenarios import behaviors
    from mimesim.testing.behavior import check_behavior

    try:
        findings = check_behavior(behaviors.get(name))
    except UsageError as error:
        fail(error)
    for finding in findings:
        say(f"{'ok' if finding.ok else 'WRONG'}  {finding.name}: {finding.told}", json=json)
    if json:
        emit_json([{"name": f.name, "ok": f.ok, "told": f.told} for f in findings])
    if not all(finding.ok for finding in findings):
        raise typer.Exit(BELOW_THRESHOLD)


@app.command()
def docs(
    out: Annotated[Path, typer.Option("--out", help="Page to write.")] = Path("docs/behaviors.md"),
) -> None:
    """Write the page of the docs from the registry of the built-in behaviors."""
    from mimesim import jsonio
    from mimesim.scenarios.behavior_page import page

    try:
        jsonio.write_text(out, page())
    except UsageError as error:
        fail(error)
    say(f"-> {out}")
