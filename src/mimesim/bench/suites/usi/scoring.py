"""Estimates of the index: rows with intervals, distances from people, and what noise alone gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mimesim.bench.suites.usi import index
from mimesim.bench.suites.usi.features import FEATURES
from mimesim.bench.suites.usi.index import SCORES, Cells, MeasuredSet, Scores
from mimesim.results.suite import FloorRow
from mimesim.results.values import Estimate
from mimesim.stats import CUTS, Design, difficulty_bin
from mimesim.stats.intervals import bounds, resampled_weights

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Values = dict[str, "Array"]


@dataclass(frozen=True, slots=True)
class Resampling:
    """How intervals are made: draws, and the seed added to the standard one."""

    draws: int
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Against:
    """A user beside people.

    Attributes:
        scores: name of `index.SCORES` -> estimate, mean over batches; value None = not known.
        spread: the same -> population sd over batches.
        rows: feature -> estimate of the user's row. people: of the people's.
        dice: feature -> likeness of the two rows in [0, 1], mean over batches.
        tasks: paired ones. n: conversations of the user that are paired.
        shape: runs and batches that are paired.
    """

    scores: Mapping[str, Estimate]
    spread: Mapping[str, float]
    rows: Mapping[str, Estimate]
    people: Mapping[str, Estimate]
    dice: Mapping[str, float]
    tasks: tuple[str, ...]
    n: int
    shape: tuple[int, int]


def rows_of(measured: MeasuredSet, how: Resampling) -> dict[str, Estimate]:
    """Return the row of a set without any to compare with: features, mean over runs."""
    names = list(dict.fromkeys(one.cluster for one in measured.rows))
    cells = [Cells.of(measured.run(run).rows, names, paired=False) for run in measured.runs]

    def row(weights: Array) -> Values:
        return _by_feature("", _mean([one.row(weights) for one in cells]))

    found, method = _estimated(row, len(names), how, "tasks or people")
    n = len(measured.rows)
    return {name: Estimate(*values, n=n, method=method) for name, values in found.items()}


def against(
    ours: MeasuredSet,
    theirs: MeasuredSet,
    difficulty: Mapping[str, float],
    how: Resampling,
) -> Against | None:
    """Compare runs of a user with batches of people, paired by task.

    Returns:
        None where no task is common.
    """
    known = {one.key for one in theirs.rows}
    names = [key for key in dict.fromkeys(one.key for one in ours.rows) if key in known]
    if not names:
        return None
    runs = [Cells.of(ours.run(run).rows, names) for run in ours.runs]
    batches = [Cells.of(theirs.run(batch).rows, names) for batch in theirs.runs]
    member = index.bins_of(names, difficulty)

    def all_batches(weights: Array) -> list[Scores]:
        found = [index.compare(runs, batch, member, weights) for batch in batches]
        return [one for one in found if one is not None]

    estimates, method = _estimated(
        lambda weights: _flat(all_batches(weights)), len(names), how, "tasks"
    )
    once = all_batches(_once(len(names)))
    used = sum(one.key in set(names) for one in ours.rows)
    return _against(
        estimates,
        method,
        once,
        tasks=tuple(names),
        n=used,
        shape=(sum(bool(run.counts.any()) for run in runs), len(once)),
    )


def unpaired(ours: MeasuredSet, theirs: MeasuredSet, how: Resampling) -> Against:
    """Compare the rows of two sets that have no tasks in common; calibration does not exist then."""
    import numpy as np

    sides, sizes = [], []
    for measured in (ours, theirs):
        names = list(dict.fromkeys(one.cluster for one in measured.rows))
        sides.append(
            [Cells.of(measured.run(run).rows, names, paired=False) for run in measured.runs]
        )
        sizes.append(len(names))

    def scores(weights: Array) -> Scores:
        parts = np.split(weights, [sizes[0]], axis=1)
        rows = [
            _mean([one.row(part) for one in cells])
            for cells, part in zip(sides, parts, strict=True)
        ]
        return index.scores_of(rows[0], rows[1], np.full(len(weights), np.nan))

    estimates, method = _estimated(
        lambda weights: _flat([scores(weights)]), sizes, how, "tasks or people of each side"
    )
    once = [scores(_once(sum(sizes)))]
    return _against(estimates, method, once, tasks=(), n=len(ours.rows), shape=(1, 1))


def pair_floors(
    measured: MeasuredSet, difficulty: Mapping[str, float], name: str
) -> tuple[FloorRow, ...]:
    """Return what two runs of one and the same user score against each other: what noise gives.

    The mean over all pairs of runs stands with the least and the most of them.
    """
    names = list(dict.fromkeys(one.key for one in measured.rows))
    cells = [Cells.of(measured.run(run).rows, names) for run in measured.runs]
    member, once = index.bins_of(names, difficulty), _once(len(names))
    pairs = [
        index.compare([cells[i]], cells[j], member, once)
        for i, j in itertools.combinations(range(len(cells)), 2)
    ]
    found: dict[str, list[float]] = {}
    for pair in pairs:
        for score, values in pair.values.items() if pair else ():
            if values[0] == values[0]:  # not nan
                found.setdefault(score, []).append(float(values[0]))
    rows = []
    for score in SCORES:
        all_ = found.get(score, [])
        if all_:
            method = f"mean, least and most of {len(all_)} pairs"
            value = Estimate(sum(all_) / len(all_), min(all_), max(all_), len(names), method)
            rows.append(FloorRow(score, name, value, covers=f"least to most of {len(all_)} pairs"))
    return tuple(rows)


def design_of(ours: MeasuredSet, theirs: MeasuredSet, tasks: Sequence[str]) -> Design:
    """Return how often each run and batch has a known end of each task."""
    return Design(_known_ends(ours, tasks), _known_ends(theirs, tasks))


def _known_ends(side: MeasuredSet, tasks: Sequence[str]) -> Array:
    import numpy as np

    run, place = ({key: i for i, key in enumerate(keys)} for keys in (side.runs, tasks))
    found = np.zeros((len(run), len(place)), dtype=int)
    for one in side.rows:
        if one.key in place and one.success is not None:
            found[run[one.run], place[one.key]] += 1
    return found


def success_rates(measured: MeasuredSet, least: int = 1) -> dict[str, float]:
    """Return the success rate of every task with `least` known ends or more."""
    outcomes: dict[str, list[float]] = {}
    for one in measured.rows:
        if one.success is not None:
            outcomes.setdefault(one.key, []).append(one.success)
    return {
        task: sum(values) / len(values) for task, values in outcomes.items() if len(values) >= least
    }


def pooled_rates(
    ours: MeasuredSet, theirs: MeasuredSet, tasks: Sequence[str], difficulty: Mapping[str, float]
) -> list[float]:
    """Return for each task the success rate of its bin, both sides pooled."""
    wanted = set(tasks)
    bins: dict[int, list[float]] = {}
    for one in (*ours.rows, *theirs.rows):
        if one.key in wanted and one.success is not None:
            bins.setdefault(difficulty_bin(difficulty[one.key]), []).append(one.success)
    rates = {place: sum(values) / len(values) for place, values in bins.items()}
    return [rates.get(difficulty_bin(difficulty[task]), 0.0) for task in tasks]


def bin_sizes(tasks: Sequence[str], difficulty: Mapping[str, float]) -> list[int]:
    """Return how many of the tasks stand in each bin."""
    places = [difficulty_bin(difficulty[task]) for task in tasks if task in difficulty]
    return [places.count(place) for place in range(len(CUTS) + 1)]


def _against(
    estimates: Mapping[str, tuple[float | None, float | None, float | None]],
    method: str,
    once: Sequence[Scores],
    **shape: Any,
) -> Against:
    import numpy as np

    n = shape["n"]
    named = {name: Estimate(*values, n=n, method=method) for name, values in estimates.items()}
    spread = {
        name: float(np.std([one.values[name][0] for one in once])) if len(once) > 1 else 0.0
        for name in SCORES
    }
    dice = np.mean([one.dice[0] for one in once], axis=0)
    return Against(
        scores={name: named[name] for name in SCORES},
        spread=spread,
        rows={one.name: named[f"ours/{one.name}"] for one in FEATURES},
        people={one.name: named[f"theirs/{one.name}"] for one in FEATURES},
        dice={one.name: float(value) for one, value in zip(FEATURES, dice, strict=True)},
        **shape,
    )


def _flat(batches: Sequence[Scores]) -> Values:
    """Return everything that gets an interval, mean over batches."""
    found = {name: _mean([one.values[name] for one in batches]) for name in SCORES}
    for side, rows in (
        ("ours/", [one.ours for one in batches]),
        ("theirs/", [one.theirs for one in batches]),
    ):
        found |= _by_feature(side, _mean(rows))
    return found


def _by_feature(side: str, row: Array) -> Values:
    return {f"{side}{one.name}": row[:, i] * one.scale for i, one in enumerate(FEATURES)}


def _mean(parts: Sequence[Array]) -> Array:
    found: Array = sum(parts[1:], parts[0]) / len(parts)
    return found


def _once(size: int) -> Array:
    import numpy as np

    return np.ones((1, size))


def _estimated(
    compute: Callable[[Array], Values],
    sizes: int | Sequence[int],
    how: Resampling,
    unit: str,
) -> tuple[dict[str, tuple[float | None, float | None, float | None]], str]:
    """Return name -> value, low and high of everything that `compute` makes, and the method."""
    import numpy as np

    parts = [sizes] if isinstance(sizes, int) else list(sizes)
    point = {name: float(values[0]) for name, values in compute(_once(sum(parts))).items()}
    if min(parts) < 2 or how.draws < 1:
        method = "no interval from one cluster" if min(parts) < 2 else "no interval asked for"
        return {name: (_known(value), None, None) for name, value in point.items()}, method
    drawn: dict[str, list[Array]] = {name: [] for name in point}
    for weights in _weights(parts, how):
        for name, values in compute(weights).items():
            drawn[name].append(values)
    found: dict[str, tuple[float | None, float | None, float | None]] = {}
    for name, value in point.items():
        if value != value:  # nan: not known
            found[name] = (None, None, None)
        else:
            found[name] = (value, *bounds(np.concatenate(drawn[name])))
    method = f"bootstrap over {' and '.join(map(str, parts))} {unit}, {how.draws} draws"
    return found, method


def _weights(sizes: Sequence[int], how: Resampling) -> Iterator[Array]:
    """Yield chunks of weights; the sides of an unpaired comparison are drawn one after the other."""
    import numpy as np

    rng = np.random.default_rng(index.SEED + how.seed)
    if len(sizes) == 1:
        yield from resampled_weights(rng, sizes[0], how.draws)
        return
    sides = [np.random.default_rng([index.SEED + how.seed, place]) for place in range(len(sizes))]
    chunks = [
        resampled_weights(one, size, how.draws) for one, size in zip(sides, sizes, strict=True)
    ]
    for parts in zip(*chunks, strict=True):
        yield np.concatenate(parts, axis=1)


def _known(value: float) -> float | None:
    return value if value == value else None
