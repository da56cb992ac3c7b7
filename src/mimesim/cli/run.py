"""`mimesim run`: episodes of an agent and a user in a gym."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from mimesim.cli.output import BELOW_THRESHOLD, emit_json, in_words, note, say, stdout, table
from mimesim.errors import UsageError

Files = Annotated[list[Path] | None, typer.Option("--config", help="Config file; repeatable.")]
Text = Annotated[str | None, typer.Option()]
Whole = Annotated[int | None, typer.Option()]
Scenarios = Annotated[
    Path | None, typer.Option(help="Scenario file: user and agent talk without a gym.")
]
Behavior = Annotated[
    str | None, typer.Option(help="Only people with it: B1 to B13, a name, or neutral.")
]
Retries = Annotated[int | None, typer.Option(help="New attempts at an episode that failed.")]
Invalid = Annotated[
    float | None, typer.Option(help="Exit 1 above this share of not counted episodes.")
]
Thresholds = Annotated[
    list[str] | None, typer.Option(help="success=x or reward=x: exit 1 below it.")
]
Split = Annotated[
    str | None,
    typer.Option(help="train, validation or test; left out: test, or the only one of a task file."),
]
Concurrency = Annotated[int | None, typer.Option("--concurrency", "-c", help="Episodes at once.")]
MostTurns = Annotated[int | None, typer.Option(help="User messages that reach the agent at most.")]
_AGENT = (
    "Agent: scripted:eager, scripted:patient, scripted:random, oracle, null, model:<model>, "
    "policy:<folder>, http:<url> or python:<module:callable>."
)
_COMPAT = "Play a gym as published code does: userrl (also with the value left out) or mimesis."
_GYM_OPTION = (
    "Set an option of the gym: key=value, TOML values; `gyms show` names them. Repeatable."
)
_JUDGE = "Judge; left out: rule where the gym needs one."


def command(
    config: Files = None,
    gym: Annotated[str | None, typer.Option(help="Gym, e.g. support-desk.")] = None,
    profile: Annotated[str | None, typer.Option(help="Task profile of the gym.")] = None,
    split: Split = None,
    tasks: Annotated[Path | None, typer.Option(help="Task file instead of made tasks.")] = None,
    scenarios: Scenarios = None,
    behavior: Behavior = None,
    agent: Annotated[str | None, typer.Option(help=_AGENT)] = None,
    user: Annotated[str | None, typer.Option(help="User; `mimesim users list` names all.")] = None,
    judge: Annotated[str | None, typer.Option(help=_JUDGE)] = None,
    compat: Annotated[str | None, typer.Option(help=_COMPAT)] = None,
    gym_option: Annotated[list[str] | None, typer.Option(help=_GYM_OPTION)] = None,
    episodes: Annotated[int | None, typer.Option("--episodes", "-n", help="How many.")] = None,
    trials: Annotated[int | None, typer.Option(help="Repetitions of each task.")] = None,
    seed: Annotated[int | None, typer.Option(help="Run seed.")] = None,
    concurrency: Concurrency = None,
    max_turns: MostTurns = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds of one conversation.")] = None,
    max_retries: Retries = None,
    max_invalid: Invalid = None,
    fail_under: Thresholds = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Set a config key: key=value, TOML values.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder, or X.jsonl.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Resume although the configuration differs.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Resolve, check, show one opening; run nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object at the end.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
) -> None:
    """Run episodes: agent x user x gym. The same command again resumes what is there.

    Left out: --agent scripted:eager --user scripted:realistic --gym support-desk
    --episodes 20 --seed 0. The keys of --set are shown by --dry-run --json.
    """
    from mimesim import config as configs
    from mimesim.rollout.prepare import RunConfig, prepare

    flags = [
        configs.Flag("--gym", "gym", gym),
        configs.Flag("--profile", "profile", profile),
        configs.Flag("--split", "split", split),
        configs.Flag("--tasks", "tasks", None if tasks is None else str(tasks)),
        configs.Flag("--scenarios", "scenarios", None if scenarios is None else str(scenarios)),
        configs.Flag("--behavior", "behavior", behavior),
        configs.Flag("--agent", "agent", agent),
        configs.Flag("--user", "user", user),
        configs.Flag("--judge", "judge", judge),
        configs.Flag("--compat", "gym_options.compat", compat),
        configs.Flag("--episodes", "episodes", episodes),
        configs.Flag("--trials", "trials", trials),
        configs.Flag("--seed", "seed", seed),
        configs.Flag("--concurrency", "concurrency", concurrency),
        configs.Flag("--max-turns", "limits.max_turns", max_turns),
        configs.Flag("--timeout", "limits.seconds", timeout),
        configs.Flag("--max-retries", "retries", max_retries),
        configs.Flag("--max-invalid", "max_invalid", max_invalid),
    ]
    flags += [configs.Flag("--fail-under", *_threshold(text)) for text in fail_under or []]
    overrides = [*(set_ or ()), *map(_gym_option, gym_option or ())]
    prepared = prepare(configs.load(RunConfig, config or (), overrides=overrides, flags=flags))
    shown = Shown(json=json, quiet=quiet)
    if dry_run:
        shown.plan(prepared)
        return
    shown.repeated(prepared)
    summary = _execute(prepared, out, shown, overwrite=overwrite, force=force)
    shown.summary(prepared, summary, out)
    if shown.below(prepared.config, summary):
        raise typer.Exit(BELOW_THRESHOLD)


def _gym_option(text: str) -> str:
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise UsageError(
            f"--gym-option {text!r} is no key=value", expected="e.g. expose_finish=true"
        )
    return f"gym_options.{name.strip()}={value}"


def _threshold(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"--fail-under {text!r} is no metric=number", expected="e.g. success=0.5")
    return f"fail_under.{name.strip()}", value.strip()


def _execute(prepared: Any, out: Path | None, shown: Shown, *, overwrite: bool, force: bool) -> Any:
    from mimesim.cli.progress import Progress
    from mimesim.rollout.prepare import execute
    from mimesim.rollout.store import Store

    if out is None:
        out = Path("out") / "runs" / _default_name(prepared)
        shown.out = out
    store = Store.open(out, prepared.plan, overwrite=overwrite, force=force)
    try:
        for text in store.warnings:
            note(f"warning: {text}")
        with Progress(quiet=shown.quiet) as progress:
            return asyncio.run(execute(prepared, store=store, on_event=progress.tell))
    except KeyboardInterrupt:
        note(f"episodes so far -> {store.paths.episodes}")
        raise
    finally:
        store.close()


def _default_name(prepared: Any) -> str:
    from mimesim.rollout.store import run_id

    return f"{prepared.config.gym}-{run_id(prepared.plan.identity)[:8]}"


class Shown:
    """What `run` prints."""

    def __init__(self, *, json: bool, quiet: bool) -> None:
        self.json = json
        self.quiet = quiet
        self.out: Path | None = None

    def plan(self, prepared: Any) -> None:
        """Show what would be run, and the opening of the first task."""
        from mimesim.rollout.prepare import parties, preview

        shown = {
            "config": prepared.plan.config,
            "episodes": len(prepared.jobs),
            "tasks": len(prepared.plan.tasks),
            "parties": {key: who.name if who else None for key, who in parties(prepared).items()},
            "opening": asyncio.run(preview(prepared)),
        }
        if self.json:
            emit_json(shown)
            return
        for key in ("episodes", "tasks"):
            say(f"{key}: {shown[key]}")
        for key, value in shown["parties"].items():
            say(f"{key}: {value or '-'}")
        say(f"\nwhat the agent is told first:\n{shown['opening']}")

    def repeated(self, prepared: Any) -> None:
        """Tell where there are fewer tasks than were asked for, so that they are played again."""
        episodes, tasks = len(prepared.jobs), len(prepared.plan.tasks)
        if self.quiet or episodes <= tasks * prepared.config.trials:
            return
        least, rest = divmod(episodes, tasks)
        times = f"{least} or {least + 1}" if rest else str(least)
        note(f"{tasks} tasks, each {times} times; the intervals take that into account")

    def summary(self, prepared: Any, summary: Any, out: Path | None) -> None:
        """Print the result."""
        from mimesim.rollout.prepare import parties
        from mimesim.rollout.summary import summarize

        place = out or self.out
        result = summarize(summary, out=str(place))
        if prepared.config.gym_options:
            result["gym_options"] = dict(prepared.config.gym_options)
        if not self.quiet:
            seed = prepared.config.seed
            _print_summary(result, summary, parties(prepared), seed=seed, json=self.json)
        if self.json:
            emit_json(result)

    def below(self, config: Any, summary: Any) -> bool:
        """Tell why the run is below a threshold, if it is."""
        from mimesim.rollout.summary import shortfalls

        found = shortfalls(config, summary)
        for text in found:
            note(text)
        return bool(found)


def _print_summary(
    result: Mapping[str, Any], summary: Any, who: Mapping[str, Any], *, seed: int, json: bool
) -> None:
    counts = summary.counts
    rows = [(side, party.name, party.model or "-") for side, party in who.items() if party]
    stdout(json=json).print(table("", ("party", "name", "model"), rows))
    if "gym_options" in result:
        say(f"options of the gym: {in_words(result['gym_options'])}", json=json)
    if counts.counted and result["reward"]["mean"] is None:
        say(f"{counts.counted}/{counts.all} conversations, not scored; seed {seed}", json=json)
    else:
        for name in ("success", "reward"):
            say(f"{name}: {_interval(result[name], percent=name == 'success')}", json=json)
        say(
            f"successes: {counts.successes}/{counts.counted} counted, "
            f"{counts.successes}/{counts.all} all; seed {seed}",
            json=json,
        )
    failed = ", ".join(f"{n} {kind}" for kind, n in counts.not_counted.items())
    say(f"not counted: {failed or 'none'}", json=json)
    say("ended by: " + ", ".join(f"{k} {n}" for k, n in counts.stops.items()), json=json)
    if counts.guards:
        say("guards: " + ", ".join(f"{k} {n}" for k, n in counts.guards.items()), json=json)
    unread = counts.stops.get("agent_invalid", 0)
    if unread and unread * 2 >= counts.all:
        told = f"mimesim view {result['out']} --failed"
        say(f"most answers of the agent were no actions that can be read: {told}", json=json)
    say(f"resumed: {summary.resumed} of {counts.all}; wall {result['wall_s']:.1f} s", json=json)
    say(f"written to {result['out']}", json=json)


def _interval(value: Mapping[str, Any], *, percent: bool) -> str:
    if value["mean"] is None:
        return "no counted episode"
    low, high = value["ci95"] or (None, None)
    scale, unit = (100, " %") if percent else (1, "")
    digits = 1 if percent else 3
    text = f"{value['mean'] * scale:.{digits}f}{unit}"
    if low is not None and high is not None:
        text += f" (95 % CI {low * scale:.{digits}f} to {high * scale:.{digits}f})"
    return f"{text}, n = {value['n']}"
