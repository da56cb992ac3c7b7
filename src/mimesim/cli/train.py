"""`mimesim train`: a user, the warm start of an agent, an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mimesim.cli.output import emit_json, say, stdout

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Train a user or an agent.")

Recipe = Annotated[
    list[Path] | None,
    typer.Option("--recipe", help="Recipe file (TOML); later ones win.", show_default=False),
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="key=value, e.g. --set csd.alpha=0.01.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of every stream.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder of the run.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the resolved recipe and leave.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on the last line.")]


@app.command("user")
def user(
    recipe: Recipe = None,
    settings: Set = None,
    seed: Seed = None,
    out: Out = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a user on human chats; prints held-out NLL of human turns before and after."""
    config = _resolved("mimesim.train.midtrain:UserConfig", recipe, settings, seed, out)
    if _shown(config, dry_run=dry_run, json=json):
        return
    from mimesim.train.midtrain import train_user

    with _Bar("training the user", quiet=quiet) as bar:
        result = train_user(config, on_progress=bar.steps)
    before, after = result["before"], result["after"]
    say(
        f"held-out human turns: {before['nll']:.3f} -> {after['nll']:.3f} nats per token "
        f"(n = {after['n_tokens']} tokens of {after['n_conversations']} conversations, seed "
        f"{config.seed})\ncheckpoint -> {result['checkpoint']}",
        json=json,
    )
    _result(result, json=json)


@app.command("warm-start")
def warm_start(
    recipe: Recipe = None,
    settings: Set = None,
    seed: Seed = None,
    out: Out = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Warm-start the embedded agent on imperfect demonstrations."""
    config = _resolved("mimesim.train.warmstart:WarmConfig", recipe, settings, seed, out)
    if _shown(config, dry_run=dry_run, json=json):
        return
    from mimesim.train.warmstart import warm_start as run

    with _Bar("warm start", quiet=quiet) as bar:
        result = run(config, on_progress=bar.steps)
    say(f"{result['steps']} updates\ncheckpoint -> {result['checkpoint']}", json=json)
    _result(result, json=json)


@app.command("agent")
def agent(
    recipe: Recipe = None,
    settings: Set = None,
    seed: Seed = None,
    out: Out = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train an agent against a frozen user with GRPO, with CSD where csd.alpha is above 0."""
    config = _resolved("mimesim.train.agent:AgentConfig", recipe, settings, seed, out)
    if _shown(config, dry_run=dry_run, json=json):
        return
    from mimesim.train.agent import train_agent

    with _Bar("training the agent", quiet=quiet) as bar:
        result = train_agent(config, on_batch=bar.batches(config.batches))
    curve = result["curve"]
    first, last = _mean(curve[:10]), _mean(curve[-10:])
    say(
        f"training success {first:.1%} -> {last:.1%} (first and last 10 batches; user "
        f"{result['user']}, judge rule, seed {result['seed']})\n"
        f"checkpoint -> {result['checkpoint']}",
        json=json,
    )
    _result(
        {
            **{k: v for k, v in result.items() if k != "curve"},
            "before": {"training_success": first},
            "after": {"training_success": last},
        },
        json=json,
    )


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

    overrides = list(settings or [])
    overrides += [f"seed={seed}"] if seed is not None else []
    overrides += [f"out={out.resolve()}"] if out is not None else []
    return configs.load(Registry("config", {}).load(target), recipe or [], overrides=overrides)


def _shown(config: Any, *, dry_run: bool, json: bool) -> bool:
    if not dry_run:
        return False
    from mimesim import config as configs

    resolved = configs.dump(config)
    if json:
        emit_json(resolved)
    else:
        for key, value in configs.flatten(resolved):
            stdout().print(f"{key} = {value!r}", markup=False)
    return True


def _mean(rows: Sequence[dict[str, float]]) -> float:
    values = [row["episode/success"] for row in rows if "episode/success" in row]
    return sum(values) / len(values) if values else 0.0


def _result(result: dict[str, Any], *, json: bool) -> None:
    if json:
        emit_json({k: v for k, v in result.items() if k != "losses"})


class _Bar:
    """One bar on a terminal, a line every tenth elsewhere."""

    def __init__(self, label: str, *, quiet: bool) -> None:
        console = Console(stderr=True, highlight=False)
        self._console = console
        self._quiet = quiet
        self._live = console.is_terminal and not quiet
        self._told = -1
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[text]}"),
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
            self._console.print(f"{self._label}: {text}", markup=False)

    def __enter__(self) -> _Bar:
        """Start the bar."""
        self._progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop the bar."""
        self._progress.stop()
