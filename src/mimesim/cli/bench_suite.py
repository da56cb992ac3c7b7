"""`mimesim bench <suite>`: score conversations that are stored, judging them first where needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mimesim.cli.bench_play import (
    Data,
    Partner,
    Play,
    Quick,
    Seeds,
    User,
    UserOptions,
    folder_for,
    own_protocol,
    play,
    read_seeds,
)
from mimesim.cli.output import emit_json, in_words, near, note, say, stdout, table
from mimesim.cli.verdicts import Budget, Concurrency, stop_above
from mimesim.errors import UsageError

if TYPE_CHECKING:
    from mimesim.bench.suites.base import Inputs, Suite
    from mimesim.bench.suites.folder import Asked
    from mimesim.judges.stored import Stored
    from mimesim.results.suite import FloorRow, Metric, SuiteScore

Episodes = Annotated[
    str | None,
    typer.Option(
        "--episodes",
        help="Episode file, run folder, or a corpus (name:place). Left out: what the suite plays.",
    ),
]
Human = Annotated[
    str | None, typer.Option("--human", help="People's conversations to compare with.")
]
Judges = Annotated[
    list[str] | None,
    typer.Option("--judge", help="rule, rule-heldout or model:<model>; a second one is compared."),
]
Options = Annotated[
    list[str] | None, typer.Option("--set", help="Option of the suite: key=value, TOML values.")
]
Mode = Annotated[str, typer.Option("--mode", help="fixed, or compat = with the original's flaws.")]
Boot = Annotated[int, typer.Option("--boot", min=1, help="Bootstrap draws.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Of orders and resampling.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder of verdicts and scores.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on the last line.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many conversations.")]
MaxErrors = Annotated[
    float,
    typer.Option(
        "--max-judge-errors", min=0, max=1, help="Exit 1 above this share of failed verdicts."
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Count the questions to judges and leave; nobody is called."),
]
Mixed = Annotated[
    bool,
    typer.Option(
        "--mixed", help="Take what differs in judge, mode, agent or people together, labeled."
    ),
]


def command_of(name: str) -> Callable[..., None]:
    """Return the command that scores by suite `name`."""

    def command(
        episodes: Episodes = None,
        human: Human = None,
        judge: Judges = None,
        settings: Options = None,
        mode: Mode = "fixed",
        boot: Boot = 10_000,
        seed: Seed = None,
        out: Out = None,
        limit: Limit = None,
        concurrency: Concurrency = 8,
        judge_budget: Budget = 180.0,
        max_judge_errors: MaxErrors = 0.05,
        user: User = None,
        user_options: UserOptions = None,
        data: Data = "",
        partner: Partner = "",
        seeds: Seeds = "",
        quick: Quick = False,
        dry_run: DryRun = False,
        json: Json = False,
    ) -> None:
        from mimesim import config
        from mimesim.bench.suites import folder as folders
        from mimesim.bench.suites import layers
        from mimesim.bench.suites.load import get_suite

        suite = get_suite(name)
        how = layers.How.of(mode, boot)
        options = config.plain_overrides(settings or [])
        layers.check_options(suite, options)
        if data and "data" in suite.facts.options:
            options = {"data": data, **options}
        folder = out or (
            folders.folder_of(episodes, name) if episodes else folder_for(name, user, quick=quick)
        )
        live = own_protocol(suite) and not suite.facts.asks_judge  # judged as it is played
        named = [] if live and episodes is None else judge or []
        names = layers.judge_names(suite, named, stored=(folder / folders.VERDICTS).exists())
        asked = folders.Asked(episodes or str(folder), human or "", limit, seed or 0, options)
        if dry_run:
            show_dry({name: (suite, asked, names)}, folder, json=json)
            return
        if episodes is None:
            wanted = Play(
                folder,
                user,
                partner=partner,
                judge=next(iter(judge or []), "") if live else "",
                data=data,
                people=human or "",
                count=limit,
                seeds=read_seeds(seeds, seed or 0),
                concurrency=concurrency,
                settings=settings or [] if own_protocol(suite) else [],
                user_options=user_options or [],
                quick=quick,
                quiet=not own_protocol(suite),  # a run would print a summary of its own
            )
            play(suite, wanted)
        inputs = layers.inputs_of(suite, asked, how)
        folders.remember(folder, name, asked)
        found = put_questions(suite, inputs, names, folder, (concurrency, judge_budget))
        told = errors_told(found)
        if told and "judge" in suite.facts.needs:
            _stop_without_any(suite, told, folder, max_judge_errors, json=json)
        score = score_and_show(suite, inputs, folder, names[:1], said=json)
        if json:
            emit_json({**score.brief(), "out": str(folder)})
        stop_above({**told, **layers.judged_in_play(inputs)}, max_judge_errors)

    return command


def _stop_without_any(
    suite: Suite, told: Mapping[str, Mapping[str, Any]], folder: Path, most: float, *, json: bool
) -> None:
    """Leave with exit code 1 where judges were asked and gave no verdict: nothing can be scored."""
    if any(states.get("scored") for states in told.values()):
        return
    if json:
        emit_json({"suite": suite.facts.name, "verdicts": dict(told), "out": str(folder)})
    stop_above(told, min(most, _ALL_BUT_NONE))


def put_questions(
    suite: Suite, inputs: Inputs, names: Sequence[str], folder: Path, how: tuple[int, float]
) -> dict[str, list[Stored]]:
    """Ask judges what is not known yet; `how` = questions at once, and the budget of a call."""
    from mimesim.bench.suites import layers

    if not names:
        return {}
    concurrency, budget_s = how
    return asyncio.run(
        layers.ask(suite, inputs, names, folder, concurrency=concurrency, budget_s=budget_s)
    )


def show_dry(
    plans: Mapping[str, tuple[Suite, Asked, Sequence[str]]], folder: Path, *, json: bool
) -> None:
    """Print what judges would be asked about stored conversations.

    Args:
        plans: suite -> it, what it scores, and who would be asked.
        folder: of the verdicts.
        json: whether stdout belongs to `--json`.

    Raises:
        UsageError: nothing was played yet, or as in scoring.
    """
    from mimesim.bench.suites import layers
    from mimesim.bench.suites.dry import dry_run

    told: dict[str, dict[str, int]] = {}
    for name, (suite, asked, judges) in plans.items():
        if asked.episodes == str(folder) and not (folder / "episodes.jsonl").is_file():
            raise UsageError(
                "no conversations are stored, so no question can be counted",
                where=near(folder),
                expected="--episodes <file>",
                mend=f"or play them first: mimesim bench simulate {name} --out {near(folder)}",
            )
        inputs = layers.inputs_of(suite, asked, layers.How())
        found = dry_run(suite, inputs, judges, folder)
        told |= {f"{name}, {judge}": one.to_json() for judge, one in found.items()}
    for who, counts in told.items():
        say(f"{who}: {in_words(counts)}", json=json)
    if not told:
        say("no judge would be asked", json=json)
    if json:
        emit_json({"dry_run": told, "out": str(folder)})


def score_and_show(
    suite: Suite,
    inputs: Inputs,
    folder: Path,
    judges: Sequence[str],
    *,
    mixed: bool = False,
    said: bool = False,
) -> SuiteScore:
    """Score what is stored, keep the record, print it; `said` = stdout belongs to `--json`."""
    from mimesim.bench.suites import folder as folders
    from mimesim.bench.suites import layers

    verdicts = layers.stored(suite, inputs, folder, next(iter(judges), ""), mixed=mixed)
    note(f"scoring {len(inputs.sessions.sessions)} conversations by {suite.facts.name} ...")
    score = layers.scored(suite, inputs, verdicts)
    replaced = folders.replaced(score, folder, suite.facts.name)
    place = folders.keep(score, folder, suite.facts.name)
    show(score, json=said)
    say(f"score -> {near(place)}", json=said)
    if replaced:
        note(f"warning: it took the place of another score ({replaced}); --out keeps both")
    return score


def errors_told(told: Mapping[str, Sequence[Stored]]) -> dict[str, dict[str, Any]]:
    """Return how many verdicts of each state every judge gave, and the reasons of lost ones."""
    from mimesim.judges.stored import states

    return {name: states(lines) for name, lines in told.items()}


def show(score: SuiteScore, *, json: bool) -> None:
    """Print a score for people."""
    out = stdout(json=json)
    roles = ", ".join(f"{name} {who}" for name, who in score.roles.items() if who)
    rows = [_line(one) for one in score.metrics]
    told = table(f"{score.suite} ({score.mode}): {roles}", _COLUMNS, rows)
    told.columns[0].no_wrap = True  # a name in two halves is not found again
    out.print(told)
    if score.floors:
        floors = [_floor(one) for one in score.floors]
        out.print(table("floors and ceilings", ("metric", "of", "value", "range", ""), floors))
    if score.excluded:
        say(f"left out, never scored: {in_words(score.excluded)}", json=json)
    for name, told in score.provenance.get("judges", {}).items():
        say(f"judge {name}: {in_words({k: v for k, v in told.items() if v})}", json=json)
    for pair, fields in score.provenance.get("agreement", {}).items():
        for field, told in fields.items():
            say(f"agreement {pair}, {field}: {in_words(told)}", json=json)
    for text in score.warnings:
        note(f"warning: {text}")


_ALL_BUT_NONE = 0.999
"""Share of lost verdicts above which there is nothing to score, whatever is allowed."""
_COLUMNS = ("metric", "value", "95 % interval", "unit", "n", "")


def _line(one: Metric) -> tuple[object, ...]:
    value = one.value
    return (
        one.name,
        _number(value.value),
        _range(value.low, value.high),
        one.unit,
        f"{value.n} {one.unit_of_n}",
        one.note,
    )


def _floor(one: FloorRow) -> tuple[object, ...]:
    value = one.value
    told = _range(value.low, value.high)
    covers = "" if value.low is None else f" ({one.covers})"
    return (one.metric, one.name, _number(value.value), told + covers, one.note)


def _range(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{_number(low)} to {_number(high)}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3f}"
