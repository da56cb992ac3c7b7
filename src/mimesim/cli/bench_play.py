"""Playing the conversations of a suite: by its own protocol, else as `mimesim run` does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mimesim.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from mimesim.bench.suites.base import Simulates, Suite

USER = "scripted:realistic"
_FEW = 6
"""Conversations of a quick run."""

User = Annotated[
    str | None,
    typer.Option("--user", "--simulator", help="The user that is measured (scripted:realistic)."),
]
UserOptions = Annotated[
    list[str] | None,
    typer.Option("--user-option", help="Setting of the user: key=value, TOML values. Repeatable."),
]
Partner = Annotated[
    str, typer.Option("--partner", help="Who answers the user, in a suite with its own protocol.")
]
Data = Annotated[str, typer.Option("--data", help="Official data of the suite; else its own set.")]
Seeds = Annotated[
    str, typer.Option("--seeds", help="Trials of the protocol, e.g. 0,1,2; left out: --seed.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A handful of conversations: plumbing only.")]


@dataclass(frozen=True, slots=True)
class Play:
    """What is to be played, and where; empty = what the suite does by itself.

    Attributes:
        settings: `key=value`: options of a suite with its own protocol, else keys of the run.
        user_options: the same of the user.
    """

    out: Path
    user: str | None = None
    agent: str | None = None
    partner: str = ""
    judge: str = ""
    data: str = ""
    people: str = ""
    gym: str | None = None
    tasks: Path | None = None
    scenarios: Path | None = None
    count: int | None = None
    seeds: tuple[int, ...] = (0,)
    concurrency: int = 8
    settings: Sequence[str] = ()
    user_options: Sequence[str] = ()
    quick: bool = False
    quiet: bool = False

    @property
    def free(self) -> bool:
        """Whether a gym, tasks or scenarios were named instead of what the suite plays."""
        return any(one is not None for one in (self.gym, self.tasks, self.scenarios))


def folder_for(suite: str, user: str | None, *, quick: bool) -> Path:
    """Return where a suite plays a user unless told: one folder for each."""
    words = f"{suite}-{user or USER}" + ("-quick" if quick else "")
    return Path("out") / "bench" / re.sub(r"[^\w.-]+", "-", words).strip("-")


def read_seeds(text: str, seed: int) -> tuple[int, ...]:
    """Return seeds from `0,1,2`; empty = `seed` alone.

    Raises:
        ConfigError: no numbers.
    """
    words = [word.strip() for word in text.split(",")] if text else [str(seed)]
    if not all(word.isdecimal() for word in words):
        raise ConfigError(f"--seeds {text!r} are no numbers", expected="e.g. 0,1,2")
    return tuple(map(int, words))


def own_protocol(suite: Suite) -> bool:
    """Tell whether a suite plays its conversations by a protocol of its own."""
    from mimesim.bench.suites.base import Simulates

    return isinstance(suite, Simulates)


def play(suite: Suite, wanted: Play) -> None:
    """Play what is missing: by the suite's protocol, or as a run in a gym.

    Raises:
        UsageError: the suite plays nothing by itself, or wants something else.
    """
    from mimesim.bench.suites.base import Simulates

    if isinstance(suite, Simulates) and not wanted.free:
        _by_protocol(suite, wanted)
    else:
        _as_a_run(suite, wanted)


def _by_protocol(suite: Simulates, wanted: Play) -> None:
    from mimesim import config
    from mimesim.bench.suites.base import Simulation
    from mimesim.cli.progress import Progress

    if wanted.agent is not None:
        raise ConfigError(
            "the suite has a protocol of its own, without an agent",
            expected="--partner where somebody answers, or --gym of conversations to play",
        )
    with Progress(quiet=wanted.quiet) as progress:
        suite.simulate(
            Simulation(
                user=wanted.user or USER,
                out=wanted.out,
                user_options=config.plain_overrides(wanted.user_options),
                options=config.plain_overrides(wanted.settings),
                data=wanted.data,
                people=wanted.people,
                judge=wanted.judge,
                partner=wanted.partner,
                seeds=wanted.seeds,
                limit=wanted.count,
                quick=wanted.quick,
                concurrency=wanted.concurrency,
                on_event=progress.tell,
            )
        )


def _as_a_run(suite: Suite, wanted: Play) -> None:
    from mimesim import jsonio
    from mimesim.cli import run

    facts = suite.facts
    if wanted.partner or wanted.data:
        raise UsageError(
            f"suite {facts.name!r} has no protocol of its own",
            expected="no --partner and no --data; --agent and --gym, or --scenarios",
        )
    if not facts.plays and not wanted.free:
        raise UsageError(
            f"suite {facts.name!r} plays no conversations by itself",
            expected="--episodes <file>, or --gym of conversations to play",
        )
    if len(wanted.seeds) > 1:
        raise UsageError(
            f"{len(wanted.seeds)} seeds in one folder",
            expected="one seed a folder; `mimesim bench report` sets the folders side by side",
        )
    keys = {} if wanted.free else dict(facts.plays)
    run.command(
        gym=wanted.gym,
        tasks=wanted.tasks,
        scenarios=wanted.scenarios,
        user=wanted.user,
        agent=wanted.agent,
        judge=wanted.judge or None,
        episodes=wanted.count or (_FEW if wanted.quick else None),
        seed=wanted.seeds[0],
        set_=[
            *(f"{key}={jsonio.dumps(value)}" for key, value in keys.items()),
            *(f"user_options.{text}" for text in wanted.user_options),
            *wanted.settings,
        ],
        out=wanted.out,
        quiet=wanted.quiet,
    )
