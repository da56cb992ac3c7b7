"""The `mimesim` command: mounts one file per verb, lazily, and turns errors into exit codes.

`mimesim --help` imports no verb: names and summaries stand in the table below, and a verb's file is
imported when the verb is used.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

import mimesim
from mimesim.cli.output import INTERRUPTED, WRONG_USE, note, show_error, tolerant
from mimesim.errors import EnvironmentFault, UsageError
from mimesim.registry import closest


class Verb(NamedTuple):
    """Where a verb lives and what it does."""

    module: str
    summary: str


VERBS: dict[str, Verb] = {
    "demo": Verb("demo", "The whole loop on the embedded default."),
    "doctor": Verb("doctor", "Check the environment and say how to mend it."),
    "data": Verb("data", "Look at human conversations."),
    "scenarios": Verb("scenarios", "Compose the cases that users bring."),
    "behaviors": Verb("behaviors", "Look at the 13 realistic behaviors."),
    "tasks": Verb("tasks", "Look at the tasks that train and measure user models."),
    "gyms": Verb("gyms", "Look at the gyms and make tasks."),
    "users": Verb("users", "Look at the users an agent can meet."),
    "validate": Verb("validate", "Check input files; all errors at once."),
    "review": Verb("review", "Check the user's side of stored episodes, offline."),
    "run": Verb("run", "Run episodes: agent x user x gym."),
    "judge": Verb("judge", "Set judges against each other, or against people."),
    "annotate": Verb("annotate", "Label which behaviors occur where."),
    "train": Verb("train", "Train a user or an agent."),
    "plan": Verb("plan", "What a training would cost: time, memory, tokens, calls."),
    "eval": Verb("eval", "Evaluate agents against users."),
    "serve": Verb("serve", "Serve a user behind an OpenAI-compatible endpoint."),
    "calibrate": Verb("calibrate", "Set simulated success against people's."),
    "bench": Verb("bench", "Measure how human a user is."),
    "export": Verb("export", "Write episodes for other tools."),
    "import": Verb("import_", "Make episodes of others' transcripts."),
    "view": Verb("view", "Show episodes in the terminal."),
    "report": Verb("report", "Make the report of stored results."),
}
"""All verbs, in the order of the help text; one without a file is left out."""

INTRO = """MimeSim: learn user simulators, measure them, and train agents against them.

Try:  mimesim demo      the whole loop on this machine, no key, no GPU
      mimesim run --gym support-desk --agent scripted:eager --user scripted:realistic
      mimesim doctor    what is installed, what is missing, how to mend it
      mimesim --help    all verbs"""


class LazyVerbs(TyperGroup):
    """A group whose verbs are imported when they are used."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the verbs that have a file."""
        return [name for name, verb in VERBS.items() if _exists(verb)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the verb; for a help listing, a stand-in that has only a summary."""
        verb = VERBS.get(cmd_name)
        if verb is None or not _exists(verb):
            return None
        if self._listing:
            return TyperCommand(cmd_name, help=verb.summary, short_help=verb.summary)
        return _load(cmd_name, verb)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the list of verbs without importing one."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the verb, or name the nearest one.

        Raises:
            UsageError: there is no such verb.
        """
        name = args[0]
        known = self.list_commands(ctx)
        if not name.startswith("-") and name not in known:
            raise UsageError(
                f"no verb {name!r}{closest(name, known)}", expected="one of " + ", ".join(known)
            )
        return super().resolve_command(ctx, args)


def _exists(verb: Verb) -> bool:
    return importlib.util.find_spec(f"mimesim.cli.{verb.module}") is not None


def _load(name: str, verb: Verb) -> Any:
    """Import a verb's file: `app` is a group of verbs, `command` a single one."""
    module = importlib.import_module(f"mimesim.cli.{verb.module}")
    inside: dict[str, Any] = vars(module)
    app = inside.get("app")
    if app is None:
        app = typer.Typer(add_completion=False)
        app.command(name, help=inside["command"].__doc__)(inside["command"])
    built = typer.main.get_command(app)
    built.name = name
    return built


app = typer.Typer(
    cls=LazyVerbs,
    add_completion=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Learn user simulators, measure them, and train agents against them.",
)


@app.callback()
def main(
    ctx: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    """Learn user simulators, measure them, and train agents against them."""
    if version:
        typer.echo(f"mimesim {mimesim.__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(INTRO)
        raise typer.Exit


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    command = typer.main.get_command(app)
    try:
        code = command.main(_spelled_out(arguments), prog_name="mimesim", standalone_mode=False)
    except UsageError as error:
        show_error(error)
        return error.exit_code
    except typer.TyperException as error:
        # Typer says nothing where a verb is missing: it has shown the help instead.
        message = " ".join(error.format_message().split()).rstrip(".") or "a verb is missing"
        show_error(UsageError(message, mend="see --help of the verb"))
        return WRONG_USE
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:  # typer makes this code of Ctrl-C
        note("interrupted; what was finished is kept, the same command goes on where it was")
    return code if isinstance(code, int) else 0


def _spelled_out(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a bare `--compat` as its first profile.

    Typer knows no option whose value may be left out.
    """
    given = list(arguments)
    for place, word in enumerate(given[:-1]):
        if word == "--compat" and given[place + 1].startswith("-"):
            given[place] = "--compat=userrl"
    return [*given[:-1], "--compat=userrl"] if given[-1:] == ["--compat"] else given


def run() -> None:
    """Entry point of the `mimesim` command."""
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - kept open
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - kept open
    tolerant(sys.stdout, sys.stderr)
    warnings.showwarning = _show_warning
    for name in ("SIGTERM", "SIGHUP"):  # asked to end: keep the state, as for Ctrl-C
        number = signal.Signals.__members__.get(name)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)
    try:
        code = invoke(sys.argv[1:])
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # typer makes the one into the other
        code = 0  # the reader of our output went away, e.g. `| head`
        _drop_output()
    except OSError as error:
        code = WRONG_USE
        show_error(
            EnvironmentFault(
                error.strerror or str(error),
                where=str(error.filename or ""),
                expected="places that can be read and written, with free space",
                mend="free space, or choose other places; everything written before is kept",
            )
        )
        _drop_output()
    sys.exit(code)


def _show_warning(message: Warning | str, *place: object, **more: object) -> None:
    note(f"warning: {message}")


def _interrupt(number: int, frame: object) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def _drop_output() -> None:
    """Send what is left in the buffer of stdout nowhere, so that leaving does not fail on it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
