"""`mimesim calibrate`: does success under simulated users say what people would have given?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mimesim.cli.output import emit_json, in_words, say, stdout, table
from mimesim.cli.verdicts import Concurrency, Json, MaxInvalid, Seed, stop_above

if TYPE_CHECKING:
    from mimesim.bench.calibration.causes import Cause
    from mimesim.bench.calibration.fitting import Fit
    from mimesim.bench.calibration.gaps import Gaps
    from mimesim.stats import Interval

_SOURCE = "Episode file, run folder, or a corpus source such as tau-bench:runs.jsonl."
_SHOWN = 8
PLOT = "reliability.svg"


def command(
    human: Annotated[str, typer.Option("--human", help=f"Conversations of people. {_SOURCE}")],
    sim: Annotated[str, typer.Option("--sim", help=f"Simulated conversations. {_SOURCE}")],
    human_trial: Annotated[
        int | None, typer.Option("--human-trial", help="Only this trial of --human.")
    ] = None,
    sim_trial: Annotated[
        int | None, typer.Option("--sim-trial", help="Only this trial of --sim.")
    ] = None,
    difficulty: Annotated[
        Path | None,
        typer.Option(help="Frozen difficulties, JSON: task -> success rate; else from the data."),
    ] = None,
    null_from: Annotated[
        str,
        typer.Option(
            help="Perfect simulators: difficulty = drawn at frozen ones, swapped = each task's "
            "outcomes dealt anew to both sides; else what fits the difficulties."
        ),
    ] = "",
    labeler: Annotated[
        str, typer.Option(help="Who labels behaviors: rule, rule-heldout, model:<model>, or none.")
    ] = "rule",
    fit: Annotated[
        bool, typer.Option("--fit/--no-fit", help="Fit a mixture of behaviors to human success.")
    ] = True,
    out: Annotated[Path, typer.Option("--out", help="Folder of the record.")] = Path(
        "out/calibration"
    ),
    draws: Annotated[int, typer.Option("--boot", min=1, help="Draws of the intervals.")] = 10_000,
    seed: Seed = 0,
    concurrency: Concurrency = 8,
    max_invalid: MaxInvalid = 0.2,
    json: Json = False,
) -> None:
    """Compare success under simulated users with success under people, task by task.

    ece: mean distance of the success rates within bins of like difficulty; read it against that of
    a perfect simulator, which is never 0. Then: which behaviors go with the gap, and a mixture of
    behaviors under which the agent would succeed as often as with people, checked on tasks that it
    was not fitted on. Both sides need the same agent and the same tasks.
    """
    from mimesim.bench.calibration.fitting import as_users
    from mimesim.bench.calibration.run import RECORD, Asked, calibrate
    from mimesim.report.reliability import plot

    asked = Asked(
        simulated=sim,
        human=human,
        simulated_trial=sim_trial,
        human_trial=human_trial,
        difficulty=difficulty,
        null_from=null_from,
        labeler="" if labeler == "none" else labeler,
        fitted=fit,
        seed=seed,
        draws=draws,
        concurrency=concurrency,
    )
    found = calibrate(asked, out)
    _show_gaps(found.gaps, json=json)
    if found.causes:
        _show_causes(found.causes, json=json)
    if found.fit is not None:
        _show_fit(found.fit, as_users(found.fit), json=json)
    elif fit:
        say(f"no mixture: {found.no_fit}", json=json)
    for text in found.score.warnings:
        say(f"warning: {text}", json=json)
    if found.score.excluded:
        say(f"left out: {in_words(dict(found.score.excluded))}", json=json)
    plot(out / RECORD, out / PLOT)
    roles = ", ".join(f"{role} {name}" for role, name in found.score.roles.items() if name)
    say(f"{roles} -> {out / RECORD}, {out / PLOT}", json=json)
    if json:
        emit_json({**found.brief(), "out": str(out)})
    stop_above(found.labels, max_invalid)


def _show_gaps(found: Gaps, *, json: bool) -> None:
    from mimesim.stats import NULL_RANGE

    null = found.null
    say(
        f"ece {found.ece:.3f} ({100 * found.ece:.1f} points) over {found.common} tasks; a perfect "
        f"simulator {null.value:.3f} ({NULL_RANGE}: {null.low:.3f} to {null.high:.3f}), "
        f"{found.share_at_least:.1%} of them as far off",
        json=json,
    )
    rows = [
        [
            f"{b.low:g} to {b.high:g}",
            b.tasks,
            f"{b.simulated:.1%}",
            f"{b.human:.1%}",
            _points(b.gap),
        ]
        for b in found.bins
    ]
    rows.append(
        [
            "all",
            found.common,
            f"{found.simulated:.1%}",
            f"{found.human:.1%}",
            _points(found.overall),
        ]
    )
    columns = ["difficulty", "tasks", "simulated", "people", "gap, points [95 %]"]
    title = "success; gap above 0 = the simulated users are too easy"
    stdout(json=json).print(table(title, columns, rows))


def _show_causes(found: tuple[Cause, ...], *, json: bool) -> None:
    rows = [
        [
            one.behavior,
            f"{one.simulated.value or 0:.1%}",
            f"{one.human.value or 0:.1%}",
            "-" if one.human_effect is None else f"{100 * one.human_effect:+.1f}",
            _points(one.mix),
            _points(one.within),
        ]
        for one in found[:_SHOWN]
    ]
    columns = ["behavior", "simulated", "people", "goes with", "by its share", "by its success"]
    title = "behaviors that show, and what they go with, in points of success"
    stdout(json=json).print(table(title, columns, rows))


def _show_fit(found: Fit, users: str, *, json: bool) -> None:
    gain = found.gain
    verdict = "helps" if found.helps else "not more than chance: does not help"
    say(
        f"mixture: error on unseen tasks {found.error_before:.3f} -> {found.error_after:.3f}, less by "
        f"{gain.value:.3f} [95 %: {gain.low:.3f} to {gain.high:.3f}] ({verdict}); success "
        f"{found.simulated:.1%} -> {found.fitted:.1%}, people {found.human:.1%}: "
        f"{100 * found.miss:+.1f} points off",
        json=json,
    )
    few = sum(found.left_out.values())
    if few:
        say(f"without {few} conversations of kinds that are too few", json=json)
    if not found.in_reach:
        low, high = found.reach
        say(
            f"no mixture of these people can reach it: their rates run from {low:.1%} to {high:.1%}",
            json=json,
        )
    say(users.rstrip(), json=json)


def _points(one: Interval) -> str:
    if one.value is None:
        return "-"
    if one.low is None or one.high is None:
        return f"{100 * one.value:+.1f}"
    return f"{100 * one.value:+.1f} [{100 * one.low:+.1f}, {100 * one.high:+.1f}]"
