"""Paired differences between arms, by task: intervals, p values, training seeds.

Per gym and user the scores of a task are averaged over the training seeds of each arm and
subtracted; users are columns over the same tasks. The interval resamples tasks (in clusters), the p
value flips their signs. Neither speaks of other training runs: for that there is the t interval over
seeds that both arms have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from mimesim import stats
from mimesim.bench import averages
from mimesim.bench.rows import NOBODY, GymCell, grouped
from mimesim.results import UNKNOWN, Difference, Estimate

FEW_SEEDS = 3
"""Training seeds below which it is said how few they are."""
SHARED = (
    "Users share checkpoints and tasks: positive differences under several users are not so many "
    "independent trials."
)
Values = Callable[[GymCell], Mapping[str, float]]


class _Measure(NamedTuple):
    """What is compared: how a cell's tasks are valued, and how its gyms are weighed."""

    name: str
    values: Values
    weights: Mapping[str, float]


def compare(cells: Sequence[GymCell], labels: Sequence[str], baseline: str) -> list[Difference]:
    """Return the differences between arms, p values corrected by Holm within each measure.

    Args:
        cells: of all arms.
        labels: the arms in order.
        baseline: what the others are compared with; "" = every arm with each before it.
    """
    pairs = [(label, baseline) for label in labels if label != baseline]
    if not baseline:
        pairs = [(after, before) for before, after in combinations(labels, 2)]
    found: list[Difference] = []
    for place, measure in enumerate(_measures(cells)):
        rows = [_difference(cells, pair, measure, headline=place == 0) for pair in pairs]
        corrected = stats.holm([row.p for row in rows])
        found += [replace(row, p_holm=p) for row, p in zip(rows, corrected, strict=True)]
    return found


def _measures(cells: Sequence[GymCell]) -> list[_Measure]:
    """Return the averages over gyms, and success in each gym that is in no average."""
    gyms = list(grouped(cells))
    inside = [gym for gym in gyms if gym in averages.WEIGHTS]
    found = []
    if inside:
        names = ("weighted", "unweighted") if len(inside) > 1 else ("weighted",)
        for name in names:
            weights = {gym: averages.weight(gym, name) for gym in inside}
            shown = f"{name} average" if len(inside) > 1 else f"score in {inside[0]}"
            found.append(_Measure(shown, lambda cell: cell.scores, weights))
    outside = [gym for gym in gyms if gym not in averages.WEIGHTS]
    return found + [_Measure(f"success in {g}", lambda cell: cell.wins, {g: 1.0}) for g in outside]


def _difference(
    cells: Sequence[GymCell], pair: tuple[str, str], measure: _Measure, *, headline: bool
) -> Difference:
    mine, theirs = ([c for c in cells if c.arm == label] for label in pair)
    panels, weights = _panels(mine, theirs, measure)
    per_seed = {}
    for name, a, b in _by_seed(mine, theirs):
        value = _value(a, b, measure)
        if value is not None:
            per_seed[name] = value
    per_user = {}
    for user in dict.fromkeys(c.user for c in mine if c.user != NOBODY):
        a, b = ([c for c in side if c.user in (user, NOBODY)] for side in (mine, theirs))
        value = _value(a, b, measure)
        if value is not None:
            per_user[user] = value
    over = Estimate.of(stats.t_interval(list(per_seed.values()))) if per_seed else UNKNOWN
    return Difference(
        *pair,
        value=Estimate.of(stats.panel_means(panels, [weights])[0]),
        measure=measure.name,
        headline=headline,
        per_seed=per_seed,
        note=_note(max(1, len(per_seed)), per_user, _lost(mine, theirs, measure)),
        over_seeds=over,
        p=stats.sign_flip(panels, weights),
        per_user=per_user,
    )


def _panels(
    mine: Sequence[GymCell], theirs: Sequence[GymCell], measure: _Measure
) -> tuple[list[stats.Panel], list[float]]:
    """Return the differences by gym, users as columns; what one side lacks is left out."""
    panels, weights = [], []
    other = grouped(theirs)
    for gym, own in grouped(mine).items():
        weight = measure.weights.get(gym, 0.0)
        if not weight or gym not in other:
            continue
        columns = []
        for user in dict.fromkeys(cell.user for cell in own):
            a = _by_task([c for c in own if c.user == user], measure.values)
            b = _by_task([c for c in other[gym] if c.user == user], measure.values)
            columns.append({task: a[task] - b[task] for task in a if task in b})
        panels.append(stats.Panel(columns, own[0].clusters))
        weights.append(weight)
    return panels, weights


def _by_task(cells: Sequence[GymCell], values: Values) -> dict[str, float]:
    """Return the mean over the training seeds of each task."""
    found: dict[str, list[float]] = {}
    for cell in cells:
        for task, value in values(cell).items():
            found.setdefault(task, []).append(value)
    return {task: sum(known) / len(known) for task, known in found.items()}


def _value(mine: Sequence[GymCell], theirs: Sequence[GymCell], measure: _Measure) -> float | None:
    """Return the weighted mean of the differences, without an interval."""
    panels, weights = _panels(mine, theirs, measure)
    known = [(p.mean, w) for p, w in zip(panels, weights, strict=True) if p.mean is not None]
    total = sum(w for _, w in known)
    return sum(mean * w for mean, w in known if mean is not None) / total if known else None


def _lost(mine: Sequence[GymCell], theirs: Sequence[GymCell], measure: _Measure) -> int:
    """Return how many (gym, user, task) only one side has a value of."""
    sides = [
        {
            (c.gym, c.user, task)
            for c in side
            if c.gym in measure.weights
            for task in measure.values(c)
        }
        for side in (mine, theirs)
    ]
    return len(sides[0] ^ sides[1])


def _by_seed(
    mine: Sequence[GymCell], theirs: Sequence[GymCell]
) -> list[tuple[str, Sequence[GymCell], Sequence[GymCell]]]:
    """Return the checkpoints to compare: of equal training seeds, or each with the only one."""
    own, other = (list(dict.fromkeys(c.seed for c in side)) for side in (mine, theirs))
    if len(other) == 1:
        pairs = [(seed, other[0]) for seed in own]
    elif len(own) == 1:
        pairs = [(own[0], seed) for seed in other]
    else:
        pairs = [(seed, seed) for seed in own if seed in other]
    if len(pairs) < 2:
        return []
    return [
        (
            f"seed {b if len(own) == 1 else a}",
            [c for c in mine if c.seed == a],
            [c for c in theirs if c.seed == b],
        )
        for a, b in pairs
    ]


def _note(seeds: int, per_user: Mapping[str, float], lost: int) -> str:
    parts = ["interval over tasks, for these checkpoints"]
    if seeds < FEW_SEEDS:
        parts.append(f"{seeds} training seed{'' if seeds == 1 else 's'} only")
    if len(per_user) > 1:
        above = sum(value > 0 for value in per_user.values())
        parts.append(f"above 0 under {above} of {len(per_user)} users")
    if lost:
        parts.append(f"{lost} unpaired tasks left out")
    return "; ".join(parts)
