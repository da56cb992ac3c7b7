"""Simulated against human success: the error, the gaps, the behaviors behind them, a better mixture."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimesim import jsonio, stats
from mimesim.bench.calibration.causes import Cause, Labeled, causes
from mimesim.bench.calibration.fitting import Fit, Kind, fit
from mimesim.bench.calibration.gaps import Gaps, gaps
from mimesim.bench.calibration.sides import Side, own_difficulty, side_of
from mimesim.bench.suites.base import Inputs, SuiteFacts
from mimesim.bench.suites.difficulty import read_difficulty
from mimesim.bench.suites.sessions import SessionSet, read_sessions
from mimesim.errors import UsageError
from mimesim.judges.annotate import Dialogue
from mimesim.judges.base import Judge
from mimesim.judges.labeling import labels_of, work_on
from mimesim.judges.stored import Stored, Work, ask_judges, states
from mimesim.results import Estimate
from mimesim.results.suite import FloorRow, Metric, PerKey, SuiteScore
from mimesim.scenarios import behaviors

SCHEMA = "mimesim.calibration/1"
LABELS, RECORD = "labels.jsonl", "calibration.json"


@dataclass(frozen=True, slots=True)
class Asked:
    """What `mimesim calibrate` is asked.

    Attributes:
        simulated, human: sources of conversations, see `read_sessions`.
        simulated_trial, human_trial: only this trial of a source; None = all.
        difficulty: file of frozen difficulties; None = bins from the outcomes themselves.
        labeler: judge that labels behaviors; empty = none are labeled.
        fitted: whether a mixture is fitted.
        draws: of the intervals.
    """

    simulated: str
    human: str
    simulated_trial: int | None = None
    human_trial: int | None = None
    difficulty: Path | None = None
    labeler: str = "rule"
    fitted: bool = True
    seed: int = 0
    draws: int = stats.DRAWS
    concurrency: int = 8


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Everything that came out.

    Attributes:
        score: the numbers of the suite `calibration`.
        causes: empty where no behaviors were labeled.
        fit: None where none was wanted or possible; `no_fit` says why.
        labels: states of the labels, by labeler.
    """

    score: SuiteScore
    gaps: Gaps
    causes: tuple[Cause, ...] = ()
    fit: Fit | None = None
    no_fit: str = ""
    labels: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, `schema` first."""
        return {
            "schema": SCHEMA,
            "score": self.score.to_json(),
            "gaps": self.gaps.to_json(),
            "behaviors": [one.to_json() for one in self.causes],
            "mixture": None if self.fit is None else self.fit.to_json(),
            "no_mixture": self.no_fit,
            "labels": dict(self.labels),
        }


def calibrate(asked: Asked, out: Path | str) -> Calibrated:
    """Compare simulated with human success and keep labels and record in `out`.

    Raises:
        UsageError: a source that cannot be read, no common task, a labeler that cannot be reached.
    """
    simulated = _part(asked.simulated, asked.simulated_trial)
    human = _part(asked.human, asked.human_trial)
    options = {} if asked.difficulty is None else {"difficulty": str(asked.difficulty)}
    inputs = Inputs(simulated, human, draws=asked.draws, seed=asked.seed, options=options)
    found, rates, score = _scored(inputs)
    folder = Path(out)
    labeled: tuple[Cause, ...] = ()
    told: Mapping[str, Any] = {}
    if asked.labeler:
        stored = _labels(asked, (simulated, human), folder / LABELS)
        told = {asked.labeler: states(stored)}
        labeled = tuple(_causes(simulated, human, stored, asked.seed))
    fitted, reason = _fitted(asked, simulated, side_of(human), rates)
    whole = Calibrated(score, found, labeled, fitted, reason, told)
    jsonio.write_json(folder / RECORD, whole.to_json())
    return whole


def _part(source: str, trial: int | None) -> SessionSet:
    whole = read_sessions(source)
    part = whole if trial is None else whole.where(trial=trial)
    if not part.sessions:
        trials = sorted({one.trial for one in whole.sessions})
        raise UsageError(
            f"no conversation of trial {trial}",
            where=source,
            expected=f"one of the trials {', '.join(map(str, trials)) or '(none)'}",
        )
    return part


class Calibration:
    """The suite `calibration`: success under simulated users against success under people."""

    facts = SuiteFacts(
        name="calibration",
        title="success under simulated users against success under people (ECE)",
        needs=("people",),
        source="method.md 11, benchmarks.md 8 (OdysSim, arXiv 2606.14199)",
        options={"difficulty": "file of frozen difficulties, task -> success rate"},
    )

    def works(self, inputs: Inputs, judge: Judge) -> Iterable[Work]:
        """Return nothing: outcomes need no judge."""
        return ()

    def score(self, inputs: Inputs) -> SuiteScore:
        """Score.

        Raises:
            UsageError: no people, or no common task.
        """
        return _scored(inputs)[2]


SUITE = Calibration()


def _scored(inputs: Inputs) -> tuple[Gaps, Mapping[str, float], SuiteScore]:
    if inputs.people is None:
        raise UsageError(
            "calibration compares with people",
            where="calibration",
            expected="--human FILE with conversations about the same tasks",
        )
    simulated, human = side_of(inputs.sessions), side_of(inputs.people)
    file = inputs.options.get("difficulty")
    rates, warning = (
        own_difficulty(simulated, human) if file is None else (read_difficulty(file), "")
    )
    found = gaps(simulated, human, rates, seed=inputs.seed, draws=inputs.draws)
    return found, rates, _record(found, (simulated, human), inputs, warning)


def _record(found: Gaps, sides: tuple[Side, Side], inputs: Inputs, warning: str) -> SuiteScore:
    simulated, human = sides
    agents = sorted({a for a in (inputs.sessions.agent, _agent(inputs.people)) if a})
    bins = [
        Metric(
            f"gap {one.low:g}-{one.high:g}",
            Estimate.of(one.gap).times(100),
            unit="points",
            direction="nearer",
            unit_of_n="tasks",
        )
        for one in found.bins
    ]
    excluded = {f"simulated: {k}": v for k, v in simulated.left_out.items() if v}
    excluded |= {f"human: {k}": v for k, v in human.left_out.items() if v}
    alone = (
        ("tasks only simulated", found.only_simulated),
        ("tasks only human", found.only_human),
        ("tasks without a difficulty", found.unknown),
    )
    excluded |= {name: n for name, n in alone if n}
    clusters = {task: task for task in simulated.rates}
    return SuiteScore(
        suite="calibration",
        metrics=(
            Metric(
                "ece",
                Estimate(found.ece, n=found.common, method=_ECE),
                direction="lower",
                unit_of_n="tasks",
                note=f"{found.share_at_least:.1%} of perfect simulators are as far off",
            ),
            Metric(
                "gap",
                Estimate.of(found.overall).times(100),
                unit="points",
                direction="nearer",
                unit_of_n="tasks",
            ),
            Metric("simulated success", Estimate(100 * found.simulated, n=simulated.n), unit="%"),
            Metric("human success", Estimate(100 * found.human, n=human.n), unit="%"),
            *bins,
        ),
        roles={
            "user": inputs.sessions.user,
            "people": inputs.people.user if inputs.people else "",
            "agent": ", ".join(agents),
        },
        seeds=inputs.sessions.seeds,
        floors=(FloorRow("ece", "perfect simulator", Estimate.of(found.null)),),
        excluded=excluded,
        warnings=tuple(filter(None, [warning, _two_agents(agents)])),
        by_key={"success": PerKey(simulated.rates, clusters)},
        provenance={"files": {**inputs.sessions.hashes, **_hashes(inputs.people)}},
    )


_ECE = "mean over runs and batches; see the null, not an interval: resampling biases it upwards"


def _two_agents(agents: Sequence[str]) -> str:
    told = ", ".join(agents)
    return f"the two sides met different agents: {told}" if len(agents) > 1 else ""


def _agent(people: SessionSet | None) -> str:
    return people.agent if people else ""


def _hashes(people: SessionSet | None) -> Mapping[str, str]:
    return people.hashes if people else {}


def _labels(asked: Asked, sides: tuple[SessionSet, SessionSet], file: Path) -> list[Stored]:
    known = [one for side in sides for one in side.sessions if one.success is not None]
    dialogues = [Dialogue(one.id, one.turns) for one in known]
    asking = ask_judges(
        [asked.labeler],
        lambda judge: work_on(dialogues, judge, seed=asked.seed),
        file,
        concurrency=asked.concurrency,
    )
    return asyncio.run(asking)[asked.labeler]


def _causes(
    simulated: SessionSet, human: SessionSet, stored: Sequence[Stored], seed: int
) -> list[Cause]:
    shown = {one.item: names for one in stored if (names := labels_of(one)) is not None}

    def side(sessions: SessionSet) -> list[Labeled]:
        return [
            Labeled(one.task or one.id, one.success, shown[one.id])
            for one in sessions.sessions
            if one.success is not None and one.id in shown
        ]

    ours, theirs = side(simulated), side(human)
    return causes(ours, theirs, behaviors.ids(), seed=seed) if ours and theirs else []


def _fitted(
    asked: Asked, simulated: SessionSet, human: Side, rates: Mapping[str, float]
) -> tuple[Fit | None, str]:
    if not asked.fitted:
        return None, "not asked for"
    kinds = [
        Kind(one.task, one.kind, one.success)
        for one in simulated.sessions
        if one.success is not None and one.kind
    ]
    try:
        return fit(kinds, human.rates, rates, seed=asked.seed), ""
    except UsageError as error:
        return None, str(error)


def as_users(found: Fit) -> str:
    """Return the mixture as the `users` table of a training recipe, TOML; tiny shares left out."""
    lines = []
    for kind, weight in found.weights.items():
        if weight >= 0.005 and "+" not in kind:
            lines += ["[[users]]", f'name = "scripted:{kind}"', f"weight = {weight:.3f}", ""]
    return "\n".join(lines)
