"""Simulated against human success: the error, the gaps, the behaviors behind them, a better mixture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from mimesim import jsonio, stats
from mimesim.bench.calibration.causes import Cause, causes
from mimesim.bench.calibration.fitting import Fit, Kind, fit
from mimesim.bench.calibration.gaps import Gaps, NullFrom, gaps
from mimesim.bench.calibration.labels import label, labeled
from mimesim.bench.calibration.sides import Side, own_difficulty, side_of
from mimesim.bench.suites.base import Inputs, SuiteFacts
from mimesim.bench.suites.difficulty import FAR, read_difficulty
from mimesim.bench.suites.sessions import SessionSet, read_sessions
from mimesim.errors import UsageError
from mimesim.judges.base import Judge
from mimesim.judges.stored import Work, states
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
        null_from: `difficulty` or `swapped`, see `stats.nulls`; empty = the former with frozen ones.
        labeler: judge that labels behaviors; empty = none are labeled.
        fitted: whether a mixture is fitted.
        draws: of the intervals.
    """

    simulated: str
    human: str
    simulated_trial: int | None = None
    human_trial: int | None = None
    difficulty: Path | None = None
    null_from: str = ""
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

    def brief(self) -> dict[str, Any]:
        """Return what `calibrate --json` prints: the record without its lists of tasks."""
        whole = self.to_json()
        return {**whole, "score": self.score.brief()}


def calibrate(asked: Asked, out: Path | str) -> Calibrated:
    """Compare simulated with human success and keep labels and record in `out`.

    Raises:
        UsageError: a source that cannot be read, no common task, a labeler that cannot be reached.
    """
    simulated = _part(asked.simulated, asked.simulated_trial)
    human = _part(asked.human, asked.human_trial)
    options = {
        "difficulty": None if asked.difficulty is None else str(asked.difficulty),
        "null": asked.null_from or None,
    }
    inputs = Inputs(
        simulated,
        human,
        draws=asked.draws,
        seed=asked.seed,
        options={key: value for key, value in options.items() if value is not None},
    )
    found, rates, score = _scored(inputs)
    folder = Path(out)
    found_causes: tuple[Cause, ...] = ()
    told: Mapping[str, Any] = {}
    if asked.labeler:
        both = (simulated, human)
        stored = label(
            both, asked.labeler, folder / LABELS, seed=asked.seed, concurrency=asked.concurrency
        )
        told = {asked.labeler: states(stored)}
        ours, theirs = labeled(both, stored)
        if ours and theirs:
            found_causes = tuple(causes(ours, theirs, behaviors.ids(), seed=asked.seed))
    fitted, reason = _fitted(asked, simulated, side_of(human), rates)
    whole = Calibrated(score, found, found_causes, fitted, reason, told)
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
        options={
            "difficulty": "file of frozen difficulties, task -> success rate",
            "null": "perfect simulators: difficulty (default with such a file), drawn at its rates; "
            "swapped (else), outcomes of each task dealt anew to both sides",
        },
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
    null = _null_from(inputs.options)
    found = gaps(simulated, human, rates, null_from=null, seed=inputs.seed, draws=inputs.draws)
    same = inputs.sessions.shared(inputs.people)
    warnings = [
        warning,
        f"{same} conversations stand on both sides, word for word" if same else "",
        _FAR.format(100 * found.off_map) if null == "difficulty" and found.off_map > FAR else "",
    ]
    return found, rates, _record(found, (simulated, human), inputs, warnings)


_FAR = (
    "the difficulties are {:.0f} points or more from the success of both sides, so a perfect "
    "simulator drawn at them is not one of these tasks; take the null from swapped outcomes"
)


def _null_from(options: Mapping[str, Any]) -> NullFrom:
    frozen = "difficulty" in options
    value = options.get("null", "difficulty" if frozen else "swapped")
    if value not in get_args(NullFrom):
        raise UsageError(f"null is {value!r}", expected=" or ".join(get_args(NullFrom)))
    if value == "difficulty" and not frozen:
        raise UsageError(
            "a null from difficulties needs frozen ones: ours are made from the outcomes",
            where="calibration",
            expected="--difficulty FILE, or the null from swapped outcomes",
        )
    return "difficulty" if value == "difficulty" else "swapped"


def _record(
    found: Gaps, sides: tuple[Side, Side], inputs: Inputs, warnings: Sequence[str]
) -> SuiteScore:
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
    excluded = {k: v for k, v in simulated.left_out.items() if v}
    excluded |= {f"people: {k}": v for k, v in human.left_out.items() if v}
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
        floors=(
            FloorRow("ece", "perfect simulator", Estimate.of(found.null), covers=stats.NULL_RANGE),
        ),
        excluded=excluded,
        warnings=tuple(filter(None, [*warnings, _two_agents(agents)])),
        by_key={"success": PerKey(simulated.rates, clusters)},
        provenance={"files": {**inputs.sessions.hashes, **_hashes(inputs.people)}},
    )


_ECE = "mean over pairs of a run and a batch, by their tasks; see the null, not an interval: resampling biases it upwards"


def _two_agents(agents: Sequence[str]) -> str:
    told = ", ".join(agents)
    return f"the two sides met different agents: {told}" if len(agents) > 1 else ""


def _agent(people: SessionSet | None) -> str:
    return people.agent if people else ""


def _hashes(people: SessionSet | None) -> Mapping[str, str]:
    return people.hashes if people else {}


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
    if asked.difficulty is None:
        rates = dict.fromkeys(rates, 0.5)  # bins from these outcomes would pick whom they favor
    try:
        return fit(kinds, human.rates, rates, seed=asked.seed, draws=asked.draws), ""
    except UsageError as error:
        return None, str(error)
