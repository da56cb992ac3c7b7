"""`mimesim train`: a user, the warm start of an agent, an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mimesim.cli.output import emit_json, near, say, stderr, stdout

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Train a user or an agent.")

Run = Callable[[Any, "_Bar"], tuple[str, dict[str, Any]]]
"""Trains what a config says; returns what to tell people, and the JSON result."""


def _verb(name: str, target: str, run: Run, about: str) -> None:
    """Mount one kind of training; all of them take the same options."""

    def command(
        recipe: Annotated[
            list[Path] | None,
            typer.Option("--recipe", help="Recipe file (TOML); later ones win."),
        ] = None,
        settings: Annotated[
            list[str] | None,
            typer.Option("--set", help="key=value, e.g. --set lr=1e-4; --dry-run shows the keys."),
        ] = None,
        seed: Annotated[int | None, typer.Option("--seed", help="Seed of every stream.")] = None,
        out: Annotated[Path | None, typer.Option("--out", help="Folder of the run.")] = None,
        dry_run: Annotated[
            bool, typer.Option("--dry-run", help="Print the resolved recipe and leave.")
        ] = False,
        quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
        json: Annotated[
            bool, typer.Option("--json", help="Print one JSON object on the last line.")
        ] = False,
    ) -> None:
        config = _resolved(target, recipe, settings, seed, out)
        if dry_run:
            _show(config, json=json)
            return
        with _Bar(name, quiet=quiet) as bar:
            text, result = run(config, bar)
        say(f"{text}\ncheckpoint -> {near(result['checkpoint'])}", json=json)
        if json:
            emit_json({k: v for k, v in result.items() if k not in ("losses", "curve")})

    app.command(name, help=about)(command)


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


def _warm_start(config: Any, bar: _Bar) -> tuple[str, dict[str, Any]]:
    from mimesim.train.warmstart import warm_start

    result = warm_start(config, on_progress=bar.steps)
    return f"{result['steps']} updates on {result['tokens']} tokens", result


def _agent(config: Any, bar: _Bar) -> tuple[str, dict[str, Any]]:
    from mimesim.train.agent import train_agent

    result = train_agent(config, on_batch=bar.batches(config.batches))
    first, last = _mean(result["curve"][:10]), _mean(result["curve"][-10:])
    shown = ["unknown" if mean is None else f"{mean:.1%}" for mean in (first, last)]
    text = (
        f"training success {shown[0]} -> {shown[1]} (first and last 10 batches; user "
        f"{result['user']}, judge rule, seed {result['seed']})"
    )
    measured = {"before": {"training_success": first}, "after": {"training_success": last}}
    return text, {**result, **measured}


def _resolved(
    target: str,
    recipe: Sequence[Path] | None,
    settings: Sequence[str] | None,
    seed: int | None,
    out: Path | None,
) -> Any:
    """Return the config: defaults < recipes < environment < --set < --seed and --out."""
    from mimesim import config as configs
    from mimesim.registry import Registry

    flags = [
        configs.Flag("--seed", "seed", seed),
        configs.Flag("--out", "out", None if out is None else str(out.absolute())),
    ]
    kind = Registry("config", {}).load(target)
    return configs.load(kind, recipe or [], overrides=settings or [], flags=flags)


def _show(config: Any, *, json: bool) -> None:
    from mimesim import config as configs

    resolved = configs.dump(config)
    if json:
        emit_json(resolved)
        return
    for key, value in configs.flatten(resolved):
        stdout().print(f"{key} = {value!r}")


def _mean(rows: Sequence[dict[str, float]]) -> float | None:
    values = [row["episode/success"] for row in rows if "episode/success" in row]
    return sum(values) / len(values) if values else None


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
        self._task = self._progress.add_task(label, total=1.0, text="")

    def steps(self, event: Any) -> None:
        """Take a `train.sft.Progress`."""
        self._update(event.step / max(1, event.steps), f"step {event.step}, loss {event.loss:.3f}")

    def batches(self, total: int) -> Callable[[Any], None]:
        """Return what takes a `train.agent.BatchLog` of a run of `total` batches."""

        def tell(log: Any) -> None:
            values = log.values
            text = f"batch {log.batch}/{total}, success {values.get('episode/success', 0):.0%}"
            text += f", reward {values.get('reward', 0):.2f}"
            if "csd/gate_mean" in values:
                text += f", gate {values['csd/gate_mean']:.2f}"
            self._update(log.batch / total, text)

        return tell

    def _update(self, fraction: float, text: str) -> None:
        if self._live:
            self._progress.update(self._task, completed=fraction, text=text)
        elif not self._quiet and int(fraction * 10) > self._told:
            self._told = int(fraction * 10)
            self._console.print(f"{self._label}: {text}")

    def __enter__(self) -> _Bar:
        """Start the bar."""
        self._progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop the bar."""
        self._progress.stop()


_verb(
    "user",
    "mimesim.train.midtrain:UserConfig",
    _user,
    "Train a user on human chats; tells the held-out NLL of human turns before and after.",
)
_verb(
    "warm-start",
    "mimesim.train.warmstart:WarmConfig",
    _warm_start,
    "Warm-start the embedded agent on imperfect demonstrations.",
)
_verb(
    "agent",
    "mimesim.train.agent:AgentConfig",
    _agent,
    "Train an agent against a frozen user with GRPO, with CSD where csd.alpha is above 0.",
)
