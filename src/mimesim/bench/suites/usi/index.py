"""From conversations to rows, from two rows to the index: pairing, Dice, calibration, resampling.

A run of the measured user (one trial of every task) is paired with a batch of people on the tasks
that both have. Rows are means over conversations, and Dice compares rows, not conversations, so
everything here is linear in how often each task counts: one weight per task gives the point value,
a matrix of weights all resampled ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mimesim.bench.suites.difficulty import task_key
from mimesim.bench.suites.sessions import Session, SessionSet
from mimesim.bench.suites.usi.features import DIMENSIONS, FEATURES, NAMES, Row, measure
from mimesim.bench.suites.usi.lexicon import Lexicon
from mimesim.results.suite import Mode
from mimesim.stats import CUTS, difficulty_bin

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

SEED = 1234
"""Of the standard resampling."""
STRUCTURAL_D1 = ("short_msg_rate", "dash_rate", "verbosity_cv", "repeat_rate")
SCORES = (*DIMENSIONS, "D1s", "ECE", "USI5")


@dataclass(frozen=True, slots=True)
class Measured:
    """One conversation, measured.

    Attributes:
        key: its task, for pairing. cluster: what is resampled as one without pairs.
        success: None = unknown.
    """

    key: str
    cluster: str
    run: int
    row: Row
    success: float | None


@dataclass(frozen=True, slots=True)
class MeasuredSet:
    """Conversations of one kind of user, measured; `left_out` says what is not among them."""

    rows: tuple[Measured, ...]
    left_out: Mapping[str, int]

    @property
    def runs(self) -> list[int]:
        """Return the numbers of the runs (trials, batches), in order."""
        return sorted({one.run for one in self.rows})

    def run(self, number: int) -> MeasuredSet:
        """Return one run."""
        return MeasuredSet(tuple(one for one in self.rows if one.run == number), self.left_out)

    @property
    def dropped(self) -> int:
        """How many messages held no word and were dropped."""
        return sum(one.row.dropped for one in self.rows)

    @property
    def hits(self) -> dict[str, int]:
        """Return feature -> turns (or conversations) that carry its rate; numbers have none."""
        totals = [sum(one.row.hits[i] for one in self.rows) for i in range(len(NAMES))]
        return {
            one.name: total
            for one, total in zip(FEATURES, totals, strict=True)
            if one.kind != "number"
        }


def measure_all(sessions: SessionSet, lexicon: Lexicon, mode: Mode) -> MeasuredSet:
    """Measure every conversation; those in which the user says nothing are left out and counted."""
    rows, lost = [], Counter[str]()
    for one in sessions.sessions:
        row = measure(one, lexicon, mode)
        if row is None:
            lost["no_user_turn"] += 1
        else:
            key = task_key(one.task or one.id)
            cluster = key if one.task else one.cluster
            rows.append(Measured(key, cluster, one.trial, row, _success(one, mode)))
    return MeasuredSet(tuple(rows), dict(lost))


def _success(session: Session, mode: Mode) -> float | None:
    """Return 1, 0 or None; any reward counts only in `compat`, or where nothing else is known."""
    told = session.success if mode == "fixed" else None
    if told is None and session.reward is not None:
        told = session.reward > 0
    if told is None:
        told = session.success
    return None if told is None else float(told)


@dataclass(frozen=True, slots=True)
class Cells:
    """Sums of one run or batch over an ordered list of clusters.

    Attributes:
        sums: clusters x features. counts: conversations of each cluster.
        success: mean success of each cluster; nan = unknown.
    """

    sums: Array
    counts: Array
    success: Array

    @classmethod
    def of(cls, rows: Iterable[Measured], names: Sequence[str], *, paired: bool = True) -> Cells:
        """Sum conversations by task, or by cluster where nothing is paired."""
        import numpy as np

        place = {name: i for i, name in enumerate(names)}
        used = [one for one in rows if (one.key if paired else one.cluster) in place]
        index = np.array([place[one.key if paired else one.cluster] for one in used], dtype=int)
        sums = np.zeros((len(names), len(NAMES)))
        won, known = np.zeros(len(names)), np.zeros(len(names))
        if used:
            np.add.at(sums, index, np.array([one.row.values for one in used]))
            told = np.array([np.nan if one.success is None else one.success for one in used])
            np.add.at(won, index, np.nan_to_num(told))
            np.add.at(known, index, ~np.isnan(told))
        with np.errstate(invalid="ignore"):
            return cls(sums, np.bincount(index, minlength=len(names)), won / known)

    def row(self, weights: Array, among: Array | None = None) -> Array:
        """Return draws x features: the mean over conversations under each row of weights."""
        import numpy as np

        inside = np.ones(len(self.counts)) if among is None else among
        with np.errstate(invalid="ignore"):
            total = weights @ (self.counts * inside)
            found: Array = (weights @ (self.sums * inside[:, None])) / total[:, None]
        return found


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of one batch under each row of weights.

    Attributes:
        values: name of `SCORES` -> draws; `ECE` and `USI5` are nan where success is unknown.
        dice: draws x features.
        ours, theirs: draws x features, the rows compared.
    """

    values: Mapping[str, Array]
    dice: Array
    ours: Array
    theirs: Array


def bins_of(names: Sequence[str], difficulty: Mapping[str, float]) -> Array:
    """Return clusters x bins: 1 where a task belongs to a bin; a task without a difficulty has none."""
    import numpy as np

    member = np.zeros((len(names), len(CUTS) + 1))
    for place, name in enumerate(names):
        if name in difficulty:
            member[place, difficulty_bin(difficulty[name])] = 1
    return member


def compare(runs: Sequence[Cells], batch: Cells, member: Array, weights: Array) -> Scores | None:
    """Compare the mean row of the runs with a batch, on the tasks of each pair.

    Returns:
        None where no run has a task of the batch.
    """
    import numpy as np

    shared = [(run.counts > 0) & (batch.counts > 0) for run in runs]
    pairs = [(run, both) for run, both in zip(runs, shared, strict=True) if both.any()]
    if not pairs:
        return None
    union = np.any([both for _, both in pairs], axis=0)
    ours = np.mean([run.row(weights, both) for run, both in pairs], axis=0)
    theirs = batch.row(weights, union)
    errors = [calibration(run, batch, member, weights) for run, _ in pairs]
    known = [error for error in errors if error is not None]
    unknown = np.full(len(weights), np.nan)
    return scores_of(ours, theirs, np.mean(known, axis=0) if known else unknown)


def scores_of(ours: Array, theirs: Array, error: Array) -> Scores:
    """Return the scores of two rows (draws x features) and a calibration error (draws)."""
    import numpy as np

    low, total = np.minimum(np.abs(ours), np.abs(theirs)), np.abs(ours) + np.abs(theirs)
    with np.errstate(invalid="ignore"):
        dice = np.where(total == 0, 1.0, 2 * low / np.where(total == 0, 1.0, total))
    groups = {d: [i for i, f in enumerate(FEATURES) if f.dimension == d] for d in DIMENSIONS}
    groups["D1s"] = [NAMES.index(name) for name in STRUCTURAL_D1]
    values = {name: 100 * dice[:, columns].mean(axis=1) for name, columns in groups.items()}
    values["ECE"] = error
    values["USI5"] = np.mean([*(values[d] for d in DIMENSIONS), 100 * (1 - error)], axis=0)
    return Scores(values, dice, ours, theirs)


def calibration(run: Cells, batch: Cells, member: Array, weights: Array) -> Array | None:
    """Return the calibration error of a run against a batch under each row of weights."""
    import numpy as np

    inside = ~np.isnan(run.success) & ~np.isnan(batch.success) & (member.sum(axis=1) > 0)
    if not inside.any():
        return None
    gap = np.where(inside, run.success - batch.success, 0)[:, None] * member
    with np.errstate(invalid="ignore"):
        found: Array = np.abs(weights @ gap).sum(axis=1) / (weights @ inside)
    return found


def dice(ours: float, theirs: float) -> float:
    """Return 2 min / sum of two sizes, 1 where both are 0."""
    total = abs(ours) + abs(theirs)
    return 2 * min(abs(ours), abs(theirs)) / total if total else 1.0


def usi5(dimensions: Sequence[float], error: float) -> float:
    """Return the index of four dimensions and a calibration error."""
    return (sum(dimensions) + 100 * (1 - error)) / (len(dimensions) + 1)


def usi6(dimensions: Sequence[float], error: float, survey: float) -> float:
    """Return the index with the agreement of surveys as a sixth part."""
    return (sum(dimensions) + survey + 100 * (1 - error)) / (len(dimensions) + 2)
