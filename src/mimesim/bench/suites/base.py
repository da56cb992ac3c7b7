"""What a suite of benchmarks is: facts about it, what it asks judges, and how it scores.

Three layers, each stored and resumable, so that a new judge never simulates again and a new
statistic never judges again:

    simulate -> episodes.jsonl     (rollout, or conversations that exist)
    judge    -> verdicts.jsonl     (judges.stored; suites without a judge skip it)
    score    -> one SuiteScore     (pure: the same inputs give the same record)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from mimesim.bench.suites.sessions import SessionSet
from mimesim.judges.base import Judge
from mimesim.judges.stored import Stored, Work
from mimesim.results.suite import Mode, SuiteScore
from mimesim.rollout.engine import RunSummary
from mimesim.rollout.events import OnEvent
from mimesim.stats import DRAWS

Need = Literal["people", "partner", "judge", "data"]


AT_THE_DESK: Mapping[str, Any] = {"gym": "support-desk", "episodes": 24}
"""A small run that needs no model and no data."""


@dataclass(frozen=True, slots=True)
class SuiteFacts:
    """What `bench list` tells.

    Attributes:
        name: as typed. title: one line on what is measured.
        needs: people (conversations of people to compare with), partner (a live assistant),
            judge, data (official files, named by the user).
        adds: of these what it can do without, but says more with.
        source: paper or repository of the definition.
        license: terms of the official data, printed by `check-data`.
        options: keys that the suite takes by `--set`, with one line each.
        judge: who judges where none is named; empty = it must be named, or none is needed.
        plays: config keys of a run whose conversations fit the suite; `bench simulate` starts from
            them, and so does the suite where no episodes are given. Empty = it plays none by itself.
            A suite with a protocol of its own `Simulates`.
        raw: whether it reads texts as recorded, see `read_sessions`.
        corpora: formats of the official data, for `check-data`; empty = any conversations do.
    """

    name: str
    title: str
    needs: tuple[Need, ...] = ()
    adds: tuple[Need, ...] = ()
    source: str = ""
    license: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    judge: str = ""
    plays: Mapping[str, Any] = field(default_factory=lambda: dict(AT_THE_DESK))
    raw: bool = False
    corpora: tuple[str, ...] = ()

    @property
    def asks_judge(self) -> bool:
        """Whether a judge is asked, of need or where one is named."""
        return "judge" in (*self.needs, *self.adds)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a suite judges and scores.

    Attributes:
        sessions: the conversations of the user that is measured.
        people: conversations to compare with; None = the suite's own, where it has some.
        verdicts: what judges said, by `Suite.works`; empty without a judge.
        mode: see `SuiteScore`.
        draws: of every bootstrap. seed: of bootstraps, orders and permutations.
        options: of this suite.
    """

    sessions: SessionSet
    people: SessionSet | None = None
    verdicts: Sequence[Stored] = ()
    mode: Mode = "fixed"
    draws: int = DRAWS
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a suite with a protocol of its own is asked to play; see `Simulates`.

    Attributes:
        user: door name of the user that is measured. user_options: its settings.
        out: run folder; resumes.
        data: official files, where the suite has some; empty = its own small set.
        people: source of people's conversations, where the protocol starts from them.
        judge, partner: who judges and who answers while it is played; empty = the suite's own.
        seeds: trials, each with streams of its own.
        limit: at most so many items (of each file). quick: plumbing only.
        options: of the suite, as far as they concern what is played.
        on_event: told what happens.
    """

    user: str
    out: Path
    user_options: Mapping[str, Any] = field(default_factory=dict)
    data: str = ""
    people: str = ""
    judge: str = ""
    partner: str = ""
    seeds: tuple[int, ...] = (0,)
    limit: int | None = None
    quick: bool = False
    concurrency: int = 8
    options: Mapping[str, Any] = field(default_factory=dict)
    on_event: OnEvent | None = None


@runtime_checkable
class Simulates(Protocol):
    """A suite whose conversations are not those of `mimesim run`."""

    def simulate(self, asked: Simulation) -> RunSummary:
        """Play what is missing in `asked.out`.

        Raises:
            UsageError: an unknown party, missing data, or a folder of another run.
        """
        ...


class Suite(Protocol):
    """A benchmark. Outsiders add one by an entry point in `mimesim.suites`."""

    @property
    def facts(self) -> SuiteFacts:
        """What it is."""
        ...

    def works(self, inputs: Inputs, judge: Judge) -> Iterable[Work]:
        """Return what there is to ask `judge`; nothing where the suite needs none.

        Raises:
            UsageError: the inputs do not fit.
        """
        ...

    def score(self, inputs: Inputs) -> SuiteScore:
        """Score; pure, on the CPU, without a network.

        Raises:
            UsageError: the inputs do not fit, e.g. nothing is common to both sides.
        """
        ...


@runtime_checkable
class ChecksData(Protocol):
    """A suite whose official data has a shape of its own."""

    def check_data(self, data: str) -> Mapping[str, str]:
        """Return what was found, name -> figure, e.g. how many rows of how many expected.

        Raises:
            UsageError: it is not that data, or damaged.
        """
        ...
