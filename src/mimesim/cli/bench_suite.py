"""`mimesim bench <suite>`: score conversations that are stored, judging them first where needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from mimesim.cli.verdicts import Concurrency, stop_above

if TYPE_CHECKING:
    from mimesim.bench.suites.base import Inputs, Suite
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
        max_judge_errors: MaxErrors = 0.05,
        user: User = None,
        user_options: UserOptions = None,
        data: Data = "",
        partner: Partner = "",
        seeds: Seeds = "",
        quick: Quick = False,
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
                quiet=True,
            )
            play(suite, wanted)
        asked = folders.Asked(episodes or str(folder), human or "", limit, seed or 0, options)
        inputs = layers.inputs_of(suite, asked, how)
        folders.remember(folder, name, asked)
        told = errors_told(put_questions(suite, inputs, names, folder, concurrency))
        if told and not any(states.get("scored") for states in told.values()):
            stop_above(told, max_judge_errors)  # no verdict at all: there is nothing to score
        score = score_and_show(suite, inputs, folder, names[:1], said=json)
        if json:
            emit_json({**score.brief(), "out": str(folder)})
        stop_above(told, max_judge_errors)

    return command


def put_questions(
    suite: Suite, inputs: Inputs, names: Sequence[str], folder: Path, concurrency: int
) -> dict[str, list[Stored]]:
    """Ask judges what is not known yet."""
    from mimesim.bench.suites import layers

    if not names:
        return {}
    return asyncio.run(layers.ask(suite, inputs, names, folder, concurrency=concurrency))


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
    score = layers.scored(suite, inputs, verdicts)
    place = folders.keep(score, folder, suite.facts.name)
    show(score, json=said)
    say(f"score -> {near(place)}", json=said)
    return score


def errors_told(told: Mapping[str, Sequence[Stored]]) -> dict[str, dict[str, int]]:
    """Return how many verdicts of each state every judge gave."""
    from mimesim.judges.stored import states

    return {name: states(lines) for name, lines in told.items()}


def show(score: SuiteScore, *, json: bool) -> None:
    """Print a score for people."""
    out = stdout(json=json)
    roles = ", ".join(f"{name} {who}" for name, who in score.roles.items())
    rows = [_line(one) for one in score.metrics]
    out.print(table(f"{score.suite} ({score.mode}): {roles}", _COLUMNS, rows))
    if score.floors:
        floors = [_floor(one) for one in score.floors]
        out.print(table("floors and ceilings", ("metric", "of", "value", "95 % interval"), floors))
    if score.excluded:
        say(f"left out, never scored: {in_words(score.excluded)}", json=json)
    for name, told in score.provenance.get("judges", {}).items():
        say(f"judge {name}: {in_words({k: v for k, v in told.items() if v})}", json=json)
    for pair, fields in score.provenance.get("agreement", {}).items():
        for field, told in fields.items():
            say(f"agreement {pair}, {field}: {in_words(told)}", json=json)
    for text in score.warnings:
        note(f"warning: {text}")


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
    return (one.metric, one.name, _number(value.value), _range(value.low, value.high))


def _range(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{_number(low)} to {_number(high)}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3f}"
