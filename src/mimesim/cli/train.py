"""`mimesim train`: a user, the warm start of an agent, an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mimesim.cli import convert, reinforced
from mimesim.cli.output import (
    BELOW_THRESHOLD,
    emit_json,
    in_words,
    near,
    note,
    say,
    stderr,
    stdout,
)
from mimesim.errors import UsageError

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Train a user or an agent.")

Run = Callable[[Any, "_Bar"], tuple[str, dict[str, Any]]]
"""Trains what a config says; returns what to tell people, and the JSON result."""

Recipe = Annotated[
    list[Path] | None,
    typer.Option("--recipe", help="Recipe by name (midtrain) or file (TOML); later ones win."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value, e.g. --set lr=1e-4; --dry-run shows the keys."),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of every stream.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder of the run.")]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick", help="The recipe's small form: it shows that everything works, no more."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the resolved recipe and leave.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on the last line.")]


class _Verb(NamedTuple):
    """One kind of training: its name, its config class, whose recipes it takes, what it does."""

    name: str
    target: str
    recipes: str
    run: Run

    def config(
        self,
        recipe: Sequence[Path] | None,
        settings: Sequence[str] | None,
        flags: Mapping[str, Any],
        *,
        quick: bool,
    ) -> Any:
        """Return the config: defaults < recipes < environment < --set < --seed and --out."""
        from mimesim import config as configs
        from mimesim.config import recipes
        from mimesim.registry import Registry
        from mimesim.train.versions import check_versions

        if not (recipe or settings or quick):
            raise UsageError(
                f"train {self.name}: which recipe?",
                expected="--recipe with a file, or one of "
                + ", ".join(recipes.names(self.recipes)),
                mend="--dry-run shows what it sets; most train for an hour or more, --quick for minutes",
            )
        check_versions()
        files = [recipes.located(path, self.recipes) for path in recipe or []]
        typed = [
            configs.Flag(f"--{key}", key, str(value.absolute()) if key == "out" else value)
            for key, value in flags.items()
            if value is not None
        ]
        kind = Registry("config", {}).load(self.target)
        return configs.load(kind, files, overrides=settings or [], flags=typed, quick=quick)

    def train(self, config: Any, *, quiet: bool, json: bool) -> None:
        """Train, and tell what came of it."""
        from mimesim.train.launch import is_first

        with _Bar(self.name, quiet=quiet or not is_first()) as bar:
            text, result = self.run(config, bar)
        if not is_first():
            return  # one of several processes: the first one speaks for all
        say(f"{text}\ncheckpoint -> {near(result['checkpoint'])}", json=json)
        if json:
            emit_json({k: v for k, v in result.items() if k not in ("losses", "curve")})
        silent = result.get("without_score")
        if silent:
            note(f"every rollout failed of: {', '.join(silent)}; the curve tells by whom")
            raise typer.Exit(BELOW_THRESHOLD)


def _mount(verb: _Verb, about: str, others: Mapping[str, Run] | None = None) -> None:
    """Mount one kind of training; all of them take the same options.

    Args:
        verb: what runs unless the recipe is for something else.
        about: the help.
        others: config class of a recipe -> what runs then.
    """

    def command(
        recipe: Recipe = None,
        settings: Settings = None,
        seed: Seed = None,
        out: Out = None,
        quick: Quick = False,
        dry_run: DryRun = False,
        quiet: Quiet = False,
        json: Json = False,
    ) -> None:
        chosen = _meant(verb, recipe, others or {})
        config = chosen.config(recipe, settings, {"seed": seed, "out": out}, quick=quick)
        if dry_run:
            _show(config, json=json)
        else:
            chosen.train(config, quiet=quiet, json=json)

    app.command(verb.name, help=about)(command)


def _meant(verb: _Verb, recipe: Sequence[Path] | None, others: Mapping[str, Run]) -> _Verb:
    """Return the kind of training that the recipe is for; `verb` where it says nothing else."""
    from mimesim import config as configs
    from mimesim.config import recipes

    paths = [recipes.located(path, verb.recipes) for path in recipe or []]
    target = configs.meant_for(paths) or ""
    return verb._replace(target=target, run=others[target]) if target in others else verb


@app.command("user")
def user(
    recipe: Recipe = None,
    settings: Settings = None,
    seed: Seed = None,
    out: Out = None,
    quick: Quick = False,
    inspect: Annotated[
        bool, typer.Option("--inspect", help="Show what would be learnt, and leave.")
    ] = False,
    rows: Annotated[int, typer.Option(min=0, help="Rows that --inspect shows whole.")] = 2,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a user: on human chats (midtrain, thought), or by reinforcement in tasks (rl).

    The recipe decides which. The first tells the held-out NLL of human turns before and after, the
    second the reward on held-out rows, by judges it was not trained on.
    """
    verb = _user_verb(recipe)
    config = verb.config(recipe, settings, {"seed": seed, "out": out}, quick=quick)
    if dry_run:
        if verb.run is _user_rl:
            _check_user_rl(config)
        _show(config, json=json)
    elif inspect and verb.run is not _user:
        raise UsageError(
            "--inspect shows rows of supervised training",
            expected="a recipe such as midtrain or thought",
            mend="see `mimesim tasks show <task>` for the rows of a task",
        )
    elif inspect:
        _inspect(config, rows, json=json)
    else:
        verb.train(config, quiet=quiet, json=json)


def _user_verb(recipe: Sequence[Path] | None) -> _Verb:
    """Return the kind of user training that the recipe is for."""
    usual = _Verb("user", "mimesim.train.midtrain:UserConfig", "user", _user)
    others: dict[str, Run] = {
        "mimesim.train.user_rl:UserRlConfig": _user_rl,
        "mimesim.train.user_warmstart:SpeakerConfig": _warm_start_user,
    }
    return _meant(usual, recipe, others)


def _inspect(config: Any, rows: int, *, json: bool) -> None:
    from mimesim.train.inspection import inspect_user

    found = inspect_user(config, rows)
    if json:
        emit_json(found)
        return
    for row in found["rows"]:
        say(
            f"--- {row['id']}: {row['tokens']} tokens, {row['learnt']} learnt (inside \u27e6 \u27e7)"
        )
        marked = (f"\u27e6{p['text']}\u27e7" if p["learnt"] else p["text"] for p in row["parts"])
        say("".join(marked).rstrip("\n"))
    say(
        f"{found['n_rows']} rows of the stage {found['stage']!r}, {found['tokens']} tokens, "
        f"{found['learnt_tokens']} of them learnt; at most {found['max_length']} a row"
    )
    say(f"tokens of a row: {in_words(found['lengths'])}")
    say(f"learnt tokens of a row: {in_words(found['learnt_lengths'])}")
    for part, counts in found["counts"].items():
        if counts:
            say(f"{part}: {in_words(counts)}")


def _user(config: Any, bar: _Bar) -> tuple[str, dict[str, Any]]:
    from mimesim.train.midtrain import train_user

    result = train_user(config, on_progress=bar.steps)
    before, after = result["before"], result["after"]
    text = (
        f"held-out human turns: {before['nll']:.3f} -> {after['nll']:.3f} nats per token "
        f"(n = {after['n_tokens']} tokens of {after['n_conversations']} conversations, seed "
        f"{config.seed})"
    )
    return text, result


def _check_user_rl(config: Any) -> None:
    from mimesim.train.user_rl import check_user_rl

    check_user_rl(config)


def _user_rl(config: Any, bar: _Bar) -> tuple[str, dict[str, Any]]:
    from mimesim.train.user_rl import train_user_rl

    result = train_user_rl(config, on_batch=bar.batches(config.batches))
    rewarding = {p.name for p in config.tasks if p.held_out_judge in ("", p.judge)}
    lines = []
    for name, before in result["before"].items():
        after = result["after"][name]
        judge = after["judge"] or "none"
        if after["judge"] and name in rewarding:
            judge += ", which rewards, too"
        for part, first in (before["parts"] or {"": before["numbers"]}).items():
            last = (after["parts"] or {"": after["numbers"]})[part]
            if part in ("", "behaving", "neutral") and "reward" in first and "reward" in last:
                low, high = last["reward"]["ci95"]
                interval = "" if low is None else f" [{low:.3f}, {high:.3f}]"
                lines.append(
                    f"{name} {part}".strip()
                    + f", held out: reward {first['reward']['value']:.3f} -> "
                    f"{last['reward']['value']:.3f}{interval} (n = {last['reward']['n']}, judge "
                    f"{judge}, seed {config.seed})"
                )
    return "\n".join(lines) or f"{result['steps']} batches, not scored", result


def _warm_start_user(config: Any, bar: _Bar) -> tuple[str, dict[str, Any]]:
    from mimesim.train.user_warmstart import warm_start_speaker

    result = warm_start_speaker(config, on_progress=bar.steps)
    text = f"{result['steps']} updates on {result['demonstrations']} demonstrations, whose mean "
    return f"{text}reward is {result['demonstrated_reward']:.2f} (judge rule)", result


@app.command("agent")
def agent(
    recipe: Recipe = None,
    settings: Settings = None,
    seed: Seed = None,
    out: Out = None,
    arm: Annotated[
        str | None,
        typer.Option("--arm", help="Variant of CSD, e.g. grpo, csd, csd-noprivilege, csd-placebo."),
    ] = None,
    quick: Quick = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train an agent against a frozen user with GRPO, with CSD where csd.alpha is above 0."""
    verb = _Verb("agent", "mimesim.train.agent:AgentConfig", "agent", _agent)
    flags = {"seed": seed, "out": out, "arm": arm}
    config = verb.config(recipe, settings, flags, quick=quick)
    if arm is not None and out is None:  # arms of one recipe lie side by side
        config = replace(config, out=config.out.with_name(f"{config.out.name}-{arm}"))
    if dry_run:
        _check_agent(config)
        _show(config, json=json)
    else:
        verb.train(config, quiet=quiet, json=json)


def _check_agent(config: Any) -> None:
    from mimesim.train.agent import check_agent

    lacking = check_agent(config)
    if lacking:
        note(lacking)


def _gym_start(config: Any, bar: _Bar) -> tuple[str, dict[str, Any]]:
    from mimesim.train.gymstart import gym_start

    result = gym_start(config, on_progress=bar.steps)
    text = f"{result['steps']} updates on {result['demonstrations']} demonstrations, whose mean "
    return f"{text}reward is {result['demonstrated_reward']:.2f}", result


def _warm_start(config: Any, bar: _Bar) -> tuple[str, dict[str, Any]]:
    from mimesim.train.warmstart import warm_start

    result = warm_start(config, on_progress=bar.steps)
    return f"{result['steps']} updates on {result['tokens']} tokens", result


def _agent_sft(config: Any, bar: _Bar) -> tuple[str, dict[str, Any]]:
    from mimesim.train.agent_sft import train_agent_sft

    result = train_agent_sft(config, on_progress=bar.steps)
    lines = [
        f"{part['source']}: {part['kept']} of {part['read']} conversations kept"
        + (f", left out: {in_words(part['dropped'])}" if part["dropped"] else "")
        for part in result["sources"]
    ]
    lines.append(
        f"{result['steps']} updates on n = {result['rows']} conversations, {result['tokens']} "
        f"tokens, {result['learnt_tokens']} of them learnt (seed {config.seed})"
    )
    return "\n".join(lines), result


def _agent(config: Any, bar: _Bar) -> tuple[str, dict[str, Any]]:
    from mimesim.train.agent import train_agent

    result = train_agent(config, on_batch=bar.batches(config.batches))
    text, measured = reinforced.outcome(result)
    return text, {**result, **measured}


def _show(config: Any, *, json: bool) -> None:
    from mimesim import config as configs
    from mimesim.train.gyms import SINGLE

    resolved = configs.dump(config)
    if resolved.get("gyms"):  # several: the one that they stand for is not played
        for key in SINGLE:
            del resolved[key]
    if json:
        emit_json(resolved)
        return
    for key, value in configs.flatten(resolved):
        stdout().print(f"{key} = {value!r}")


class _Bar:
    """One bar on a terminal, a line every tenth elsewhere."""

    def __init__(self, label: str, *, quiet: bool) -> None:
        console = stderr()
        self._console = console
        self._quiet = quiet
        self._live = console.is_terminal and not quiet
        self._told = -1
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            TimeRemainingColumn(),
            console=console,
            disable=not self._live,
        )
        self._label = label
        self._task = self._progress.add_task(label, total=1.0, text="preparing")

    def steps(self, event: Any) -> None:
        """Take a `train.sft.Progress`."""
        self._update(event.step / max(1, event.steps), f"step {event.step}, loss {event.loss:.3f}")

    def batches(self, total: int) -> Callable[[Any], None]:
        """Return what takes a `train.agent.BatchLog` of a run of `total` batches."""

        def tell(log: Any) -> None:
            text = f"batch {log.batch}/{total}{reinforced.batch(log)}"
            if log.batch:
                self._update(log.batch / total, text)
            for line in log.told:
                self._say(f"batch {log.batch}: {line}")

        return tell

    def _say(self, line: str) -> None:
        """Tell something that must not be missed, above the bar."""
        self._console.print(f"{self._label}: {line}", markup=False, highlight=False)

    def _update(self, fraction: float, text: str) -> None:
        if self._live:
            self._progress.update(self._task, completed=fraction, text=text)
        elif not self._quiet and int(fraction * 10) > self._told:
            self._told = int(fraction * 10)
            self._console.print(f"{self._label}: {text}")

    def __enter__(self) -> _Bar:
        """Start the bar; before the first step models and rows are loaded, and that takes a while."""
        self._progress.start()
        if not self._live and not self._quiet:
            self._console.print(f"{self._label}: preparing")
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop the bar."""
        self._progress.stop()


_mount(
    _Verb("warm-start", "mimesim.train.warmstart:WarmConfig", "agent", _warm_start),
    "Warm-start the embedded agent on imperfect demonstrations.",
    {"mimesim.train.gymstart:GymStartConfig": _gym_start},
)
_mount(
    _Verb("agent-sft", "mimesim.train.agent_sft:AgentSftConfig", "agent", _agent_sft),
    "Warm-start an agent on episodes that went well, and on ShareGPT files.",
)
app.command("convert")(convert.command)
