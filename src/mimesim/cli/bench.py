"""`mimesim bench`: how human is a simulated user? Three layers, each stored and resumable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from mimesim.cli import bench_checks, bench_suite, bench_tables
from mimesim.cli.bench_play import (
    Data,
    Partner,
    Play,
    Quick,
    Seeds,
    User,
    UserOptions,
    own_protocol,
    play,
    read_seeds,
)
from mimesim.cli.bench_suite import (
    Boot,
    DryRun,
    Human,
    Json,
    Judges,
    MaxErrors,
    Mixed,
    Mode,
)
from mimesim.cli.output import emit_json, in_words, near, say, stdout, table
from mimesim.cli.verdicts import Budget, Concurrency, stop_above
from mimesim.errors import DataError


class Suites(TyperGroup):
    """The verbs, and every suite as a verb of its own."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the verbs, then the suites."""
        from mimesim.bench.suites.load import REGISTRY

        return [*super().list_commands(ctx), *REGISTRY.names()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb, or the command that scores by a suite."""
        found = super().get_command(ctx, cmd_name)
        if found is not None or cmd_name.startswith("-"):
            return found
        from mimesim.bench.suites.load import get_suite

        summary = f"Score by: {get_suite(cmd_name).facts.title}."
        app = typer.Typer(add_completion=False)
        app.command(cmd_name, help=summary)(bench_suite.command_of(cmd_name))
        built: TyperCommand = typer.main.get_command(app)  # type: ignore[assignment]
        built.name = cmd_name
        return built


app = typer.Typer(
    cls=Suites,
    add_completion=False,
    no_args_is_help=True,
    help="Measure how human a user is. `mimesim bench <suite> --episodes F` scores what is stored.",
)

Run = Annotated[Path, typer.Argument(help="Folder of a benchmark.")]
Only = Annotated[
    list[str] | None, typer.Option("--suite", help="Only this suite; all of the folder else.")
]


@app.callback()
def group() -> None:
    """Measure how human a user is."""


@app.command("list")
def list_suites(json: Json = False) -> None:
    """List the suites: what they measure, what they need, what they can play themselves."""
    from mimesim.bench.suites.load import suites

    known: list[dict[str, Any]] = [
        {
            "name": one.facts.name,
            "title": one.facts.title,
            "needs": list(one.facts.needs),
            "adds": list(one.facts.adds),
            "judge": one.facts.judge,
            "plays": bool(one.facts.plays) or own_protocol(one),
            "options": dict(one.facts.options),
            "source": one.facts.source,
            "license": one.facts.license,
        }
        for one in suites()
    ]
    if json:
        emit_json(known)
        return
    rows = [(s["name"], s["title"], _needs(s), in_words(s["plays"])) for s in known]
    stdout().print(
        table("", ("suite", "measures", "needs (says more with)", "plays by itself"), rows)
    )


def _needs(suite: Mapping[str, Any]) -> str:
    more = [f"({one})" for one in suite["adds"]]
    return ", ".join([*suite["needs"], *more]) or "nothing"


@app.command("check-data")
def check_data(
    name: Annotated[str, typer.Argument(help="Suite.")],
    data: Annotated[str, typer.Option("--data", help="Its official data, or conversations.")],
    json: Json = False,
) -> None:
    """Check the data of a suite: shape, counts, license; nothing is scored."""
    from mimesim.bench.suites.base import ChecksData
    from mimesim.bench.suites.load import get_suite
    from mimesim.bench.suites.sessions import read_sessions

    suite = get_suite(name)
    if isinstance(suite, ChecksData):
        found = dict(suite.check_data(data))
    else:
        sessions = read_sessions(data)
        known = suite.facts.corpora
        if known and sessions.corpus not in known:
            raise DataError(
                f"not the data of {name!r} but of the format {sessions.corpus or 'episodes'!r}",
                where=data,
                expected=" or ".join(f"{one}:PLACE" for one in known),
            )
        found = {
            "conversations": str(len(sessions.sessions)),
            "user turns": str(sum(len(one.said) for one in sessions.sessions)),
            "people": str(len({one.person for one in sessions.sessions if one.person})),
            "left out": in_words(sessions.left_out) or "none",
            "training allowed": sessions.training_allowed or "unknown",
        }
    for key, value in found.items():
        say(f"{key}: {value}", json=json)
    say(f"license: {suite.facts.license or 'see the source'}", json=json)
    if json:
        emit_json({"suite": name, "data": data, "found": found, "license": suite.facts.license})


@app.command()
def simulate(
    name: Annotated[str, typer.Argument(help="Suite that will score the conversations.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the benchmark.")],
    user: User = None,
    user_options: UserOptions = None,
    assistant: Annotated[
        str | None, typer.Option("--agent", "--assistant", help="Whom the user talks to in a gym.")
    ] = None,
    partner: Partner = "",
    data: Data = "",
    human: Human = None,
    judge: Annotated[str, typer.Option("--judge", help="Who judges while it plays.")] = "",
    gym: Annotated[str | None, typer.Option("--gym", help="Another gym than the suite's.")] = None,
    tasks: Annotated[Path | None, typer.Option("--tasks", help="Task file of the gym.")] = None,
    scenarios: Annotated[
        Path | None, typer.Option("--scenarios", help="Scenario file: they talk without a gym.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--episodes", "--limit", "-n", min=1, help="How many.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Run seed.")] = 0,
    seeds: Seeds = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Option of a suite that has a protocol, else key of the run."),
    ] = None,
    concurrency: Concurrency = 8,
    quick: Quick = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Play the conversations of a suite; the same command again resumes what is there."""
    from mimesim import config
    from mimesim.bench.suites import folder as folders
    from mimesim.bench.suites import layers
    from mimesim.bench.suites.load import get_suite

    wanted = Play(
        out,
        user,
        assistant,
        partner,
        judge,
        data,
        human or "",
        gym,
        tasks,
        scenarios,
        count,
        read_seeds(seeds, seed),
        concurrency,
        settings or [],
        user_options or [],
        quick,
        quiet,
    )
    suite = get_suite(name)
    own = own_protocol(suite) and not wanted.free
    options = config.plain_overrides(wanted.settings) if own else {}
    layers.check_options(suite, options)
    if data and "data" in suite.facts.options:
        options = {"data": data, **options}
    play(suite, wanted)
    asked = folders.Asked(str(out), human or "", seed=wanted.seeds[0], options=options)
    folders.remember(out, name, asked)
    say(f"next: mimesim bench score {near(out)}", quiet=quiet)


@app.command()
def judge(
    run: Run,
    judges: Judges = None,
    suite: Only = None,
    concurrency: Concurrency = 8,
    judge_budget: Budget = 180.0,
    max_judge_errors: MaxErrors = 0.05,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Put the questions of the folder's suites to judges; nothing is simulated again."""
    from mimesim.bench.suites import folder as folders
    from mimesim.bench.suites import layers

    suites = {
        name: (one, asked, layers.judge_names(one, judges or [], stored=False))
        for name, (one, asked) in folders.asked_suites(run, suite or []).items()
        if one.facts.asks_judge
    }
    if dry_run:
        bench_suite.show_dry(suites, run, json=json)
        return
    told: dict[str, dict[str, Any]] = {}
    for name, (one, asked, names) in suites.items():
        inputs = layers.inputs_of(one, asked, layers.How())
        found = bench_suite.put_questions(one, inputs, names, run, (concurrency, judge_budget))
        told |= {f"{name}, {who}": n for who, n in bench_suite.errors_told(found).items()}
    for who, states in told.items():
        say(f"{who}: {in_words({k: v for k, v in states.items() if v})}", json=json)
    if not told:
        say("nothing asked: no suite here needs a judge, and none is named", json=json)
    if json:
        emit_json({"verdicts": told, "out": str(run / folders.VERDICTS)})
    stop_above(told, max_judge_errors)


@app.command()
def score(
    run: Run,
    judges: Judges = None,
    suite: Only = None,
    mode: Mode = "fixed",
    boot: Boot = 10_000,
    mixed: Mixed = False,
    json: Json = False,
) -> None:
    """Score what is stored; conversations and verdicts stay as they are."""
    from mimesim.bench.suites import folder as folders
    from mimesim.bench.suites import layers

    how = layers.How.of(mode, boot)
    found = {}
    for name, (one, asked) in folders.asked_suites(run, suite or []).items():
        inputs = layers.inputs_of(one, asked, how)
        found[name] = bench_suite.score_and_show(
            one, inputs, run, (judges or [])[:1], mixed=mixed, said=json
        )
    if json:
        emit_json({"scores": [one.brief() for one in found.values()], "out": str(run)})


app.command()(bench_tables.report)
app.command()(bench_tables.compare)
app.command()(bench_checks.selftest)
app.command("import-lexicon")(bench_checks.import_lexicon)
app.command("verify-lexicon")(bench_checks.verify_lexicon)
