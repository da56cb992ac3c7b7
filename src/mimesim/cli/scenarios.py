"""`mimesim scenarios`: compose the cases that users bring, and look at one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mimesim.cli.output import emit_json, fail, in_words, note, say, stdout, table
from mimesim.errors import ConfigError, DataError, UsageError

if TYPE_CHECKING:
    from mimesim.scenarios.compose import ComposeResult
    from mimesim.scenarios.types import Manual

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Compose the cases that users bring."
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on the last line.")]
ManualName = Annotated[
    str,
    typer.Option(
        "--manual", "--pack", help="company, a TOML file of your own, or abcd:FOLDER (your copy)."
    ),
]
DEFAULT_OUT = Path("out") / "composed.jsonl"


@app.command()
def compose(
    out: Annotated[Path, typer.Option("--out", help="JSON Lines file to write.")] = DEFAULT_OUT,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all draws.")] = 0,
    count: Annotated[int, typer.Option("--n", "--count", min=1, help="Rows to compose.")] = 300,
    neutral_share: Annotated[
        float, typer.Option("--neutral-share", help="Share of rows without a behavior.")
    ] = 1 / 3,
    split: Annotated[str, typer.Option("--split", help="train, validation, test or all.")] = "all",
    behaviors: Annotated[
        str,
        typer.Option(
            "--behaviors", help="all (13), annotated, installed, or ids joined by commas."
        ),
    ] = "all",
    manual: ManualName = "company",
    replay: Annotated[
        str, typer.Option("--replay", help="Identity check said before: none, identity or cut.")
    ] = "none",
    matched: Annotated[
        bool, typer.Option("--matched", help="Neutral rows take the case of the row before.")
    ] = False,
    view: Annotated[
        str,
        typer.Option(
            "--view",
            help="flat rows, scenario (for run --scenarios), task (behavior task) or compat (the "
            "same as JSON texts).",
        ),
    ] = "flat",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compose, write nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print results only.")] = False,
    json: Json = False,
) -> None:
    """Compose rows (record, env, request type, behavior, directive) into a file."""
    from mimesim import jsonio
    from mimesim.scenarios.compose import compose as compose_rows
    from mimesim.scenarios.manual import load
    from mimesim.scenarios.types import SPLITS

    try:
        used = load(manual)
        shape = _shape(view, used)
        if split not in ("all", *SPLITS):
            raise ConfigError(
                f"split is {split!r}", where="--split", expected=f"one of {', '.join(SPLITS)}, all"
            )
        result = compose_rows(
            used,
            seed=seed,
            count=count,
            neutral_share=neutral_share,
            split=None if split == "all" else split,
            behaviors=behaviors,
            replay=replay,
            matched=matched,
        )
        _check_asked(result, used, behaviors, neutral_share)
        lines = [jsonio.dumps(shape(row)) + "\n" for row in result.rows]
        place = _place(out, dry_run=dry_run)
        if not dry_run:
            jsonio.write_text(out, "".join(lines))
    except UsageError as error:
        fail(error)
    summary = {"rows": len(result.rows), "dropped": dict(result.dropped), "out": str(out)}
    summary |= _counts(result, used)
    say(_told(summary, place), quiet=quiet, json=json)
    if len(result.rows) < count:
        note(f"warning: only {len(result.rows)} of {count} rows could be composed")
    if json:
        emit_json(summary)


def _place(out: Path, *, dry_run: bool) -> str:
    if dry_run:
        return "nothing written (dry run)"
    return f"{out} (replaced)" if out.exists() else str(out)


def _check_asked(
    result: ComposeResult, manual: Manual, behaviors: str, neutral_share: float
) -> None:
    """Refuse rows without a single one of those that were asked for.

    Raises:
        UsageError: what was dropped leaves no row, or no behavior in any.
    """
    played = neutral_share == 1 or any(row.behavior for row in result.rows)
    if not result.dropped or (result.rows and played):
        return
    raise UsageError(
        f"no row could be composed with the behaviors {behaviors!r}: {in_words(result.dropped)}",
        where=f"manual {manual.name}",
        expected="behaviors that occur with this manual; B4 needs limits",
        mend="choose others, or add what they need to the manual",
    )


def _shape(view: str, manual: Manual) -> Any:
    from mimesim.scenarios.rows import row_to_scenario
    from mimesim.scenarios.views import to_view

    shapes = {
        "flat": lambda row: row.to_json(),
        "scenario": lambda row: row_to_scenario(row, manual).to_json(),
        "task": to_view,
        "compat": lambda row: to_view(row, compat=True),
    }
    if view not in shapes:
        raise ConfigError(f"view is {view!r}", expected="one of " + ", ".join(shapes))
    return shapes[view]


def _counts(result: ComposeResult, manual: Manual) -> dict[str, Any]:
    """Return what was composed and what could not be, counted."""
    from mimesim.scenarios.procedure import verdict

    played = Counter(row.behavior or "neutral" for row in result.rows)
    return {
        "behaviors": dict(sorted(played.items(), key=lambda item: (len(item[0]), item[0]))),
        "verdicts": dict(sorted(Counter(verdict(row, manual) for row in result.rows).items())),
        "manual": manual.name,
        "request_types": len(manual.request_types),
        "without_limits": sum(not request.limits for request in manual.request_types),
        "skipped": dict(manual.skipped),
    }


def _told(summary: dict[str, Any], place: str) -> str:
    lines = [f"{summary['rows']} rows, {sum(summary['dropped'].values())} dropped -> {place}"]
    lines += [f"  dropped, {reason}: {count}" for reason, count in summary["dropped"].items()]
    lines += [f"  not used, {reason}: {count}" for reason, count in summary["skipped"].items()]
    if summary["without_limits"] == summary["request_types"]:
        lines.append("  this manual has no limits: nothing is refused, B4 never occurs")
    lines.append(f"  {in_words(summary['behaviors'])}")
    return "\n".join(lines)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A file that `compose` wrote.")],
    index: Annotated[int, typer.Option("--index", min=0, help="Index of the row.")] = 0,
    manual: ManualName = "company",
    json: Json = False,
) -> None:
    """Show one row: who the customer is, what is asked, what a perfect agent does."""
    from mimesim import jsonio
    from mimesim.scenarios import procedure
    from mimesim.scenarios.manual import load
    from mimesim.scenarios.rows import row_to_scenario
    from mimesim.scenarios.types import Row

    try:
        used = load(manual)
        found = [
            row
            for line in jsonio.read_jsonl(file)
            if (row := Row.from_json(line.value, f"{file}:{line.number}")).index == index
        ]
        if not found:
            raise DataError(
                f"no row has index {index}",
                where=str(file),
                expected="the index that a row of this file names",
                mend="give another --index",
            )
        row = found[0]
        scenario = row_to_scenario(row, used)
        steps = procedure.gold(row, used)
    except UsageError as error:
        fail(error)
    say(f"{scenario.id}: {scenario.goal}", json=json)
    say(f"behavior: {row.behavior or 'neutral'}  verdict: {scenario.success['verdict']}", json=json)
    if row.directive:
        say(row.directive, json=json)
    for turn in scenario.history:
        say(f"said before, {turn.role.value}: {turn.content}", json=json)
    facts = [(key, value) for key, value in scenario.facts.items()]
    stdout(json=json).print(table("what the customer knows", ("field", "value"), facts))
    gold = [(tool, ", ".join(f"{k}={v}" for k, v in slots.items())) for tool, slots in steps]
    stdout(json=json).print(table("what a perfect agent does", ("tool", "slots"), gold))
    if json:
        emit_json(row.to_json())
