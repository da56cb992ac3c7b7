"""A mixture of behaviors under which the agent succeeds as often as under people.

The weights are fitted on one half of the tasks and checked on the other, both ways round: what
counts is the error on tasks that the weights never saw.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mimesim import seeds
from mimesim.bench.calibration.gaps import by_bin
from mimesim.errors import UsageError

_SHRINK = 2.0
_RIDGE = 0.01
_STEPS = 4_000
_RATE = 0.5
LEAST = 10
"""Conversations of a kind below which it cannot be weighted."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One simulated conversation: its task, what kind of person was asked for, its end."""

    task: str
    kind: str
    success: bool


@dataclass(frozen=True, slots=True)
class Fit:
    """The mixture and whether it helps.

    Attributes:
        weights: kind -> share of conversations, the largest first. before: shares as simulated.
        error_before, error_after: sum_b n_b/n |simulated - human| on tasks that the weights of a
            half never saw, mean over both halves.
        simulated, human: success as it was; fitted: success under the weights, on all tasks.
        reach: lowest and highest success that any mixture of the kinds gives.
        left_out: kinds with too few conversations.
    """

    weights: Mapping[str, float]
    before: Mapping[str, float]
    error_before: float
    error_after: float
    simulated: float
    human: float
    fitted: float
    reach: tuple[float, float]
    left_out: Mapping[str, int]

    @property
    def helps(self) -> bool:
        """Whether the error on unseen tasks fell."""
        return self.error_after < self.error_before

    @property
    def in_reach(self) -> bool:
        """Whether human success lies between the kinds' rates."""
        return self.reach[0] <= self.human <= self.reach[1]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self) | {"helps": self.helps, "in_reach": self.in_reach}


def fit(
    simulated: Sequence[Kind],
    human: Mapping[str, float],
    difficulty: Mapping[str, float],
    *,
    seed: int = 0,
) -> Fit:
    """Fit the weights of the kinds of simulated people.

    Args:
        simulated: conversations whose kind is known.
        human: task -> success under people.
        difficulty: task -> frozen success rate, which chooses the bin.
        seed: of the two halves.

    Raises:
        UsageError: fewer than two kinds with enough conversations, or fewer than two tasks.
    """
    rows = [one for one in simulated if one.task in human and one.task in difficulty]
    sizes = _count(one.kind for one in rows)
    kinds = [kind for kind, n in sizes.items() if n >= LEAST]
    if len(kinds) < 2:
        raise UsageError(
            f"only {len(kinds)} kinds of people have {LEAST} conversations or more",
            where="calibrate --fit",
            expected="at least two, e.g. episodes of scripted:realistic",
        )
    rows = [one for one in rows if one.kind in kinds]
    tasks = sorted({one.task for one in rows})
    halves = _halves(tasks, seed)
    before = {kind: n / len(rows) for kind, n in _count(one.kind for one in rows).items()}
    errors = []
    for own, other in (halves, halves[::-1]):
        weights = _weights(rows, own, before, human, difficulty)
        errors.append([_error(rows, other, w, human, difficulty) for w in (before, weights)])
    weights = _weights(rows, tasks, before, human, difficulty)
    rates = [_rate(rows, tasks, {kind: 1.0}) for kind in kinds]
    return Fit(
        weights=dict(sorted(weights.items(), key=lambda one: -one[1])),
        before=before,
        error_before=math.fsum(one[0] for one in errors) / 2,
        error_after=math.fsum(one[1] for one in errors) / 2,
        simulated=_rate(rows, tasks, before),
        human=math.fsum(human[task] for task in tasks) / len(tasks),
        fitted=_rate(rows, tasks, weights),
        reach=(min(rates), max(rates)),
        left_out={kind: n for kind, n in sizes.items() if kind not in kinds},
    )


def _halves(tasks: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    if len(tasks) < 2:
        raise UsageError("one task cannot be halved", where="calibrate --fit", expected="more")
    order = sorted(tasks, key=lambda task: seeds.derive(seed, "halves", task))
    middle = len(order) // 2
    return order[:middle], order[middle:]


def _weights(
    rows: Sequence[Kind],
    tasks: Sequence[str],
    before: Mapping[str, float],
    human: Mapping[str, float],
    difficulty: Mapping[str, float],
) -> dict[str, float]:
    """Minimize sum_b n_b/n (sum_k w_k s_kb - h_b)^2 + ridge |w - before|^2 over shares.

    Rates of a kind in a bin are drawn towards the bin's rate, since they rest on few conversations.
    Multiplicative steps keep the weights positive with sum 1.
    """
    import numpy as np

    kinds = list(before)
    bins = list(by_bin(tasks, difficulty).values())
    size = np.asarray([len(b) for b in bins], dtype=float)
    share = size / size.sum()
    aim = np.asarray([math.fsum(human[t] for t in b) / len(b) for b in bins])
    table = np.empty((len(bins), len(kinds)))
    for i, inside in enumerate(map(frozenset, bins)):
        here = [one for one in rows if one.task in inside]
        middle = math.fsum(one.success for one in here) / len(here) if here else 0.5
        for j, kind in enumerate(kinds):
            of_kind = [one.success for one in here if one.kind == kind]
            table[i, j] = (sum(of_kind) + _SHRINK * middle) / (len(of_kind) + _SHRINK)
    start = np.asarray([before[kind] for kind in kinds])
    w = start.copy()
    for _ in range(_STEPS):
        slope = 2 * table.T @ (share * (table @ w - aim)) + 2 * _RIDGE * (w - start)
        w = w * np.exp(-_RATE * slope)
        w /= w.sum()
    return {kind: float(one) for kind, one in zip(kinds, w, strict=True)}


def _error(
    rows: Sequence[Kind],
    tasks: Sequence[str],
    weights: Mapping[str, float],
    human: Mapping[str, float],
    difficulty: Mapping[str, float],
) -> float:
    off = [
        len(inside)
        * abs(_rate(rows, inside, weights) - math.fsum(human[t] for t in inside) / len(inside))
        for inside in by_bin(tasks, difficulty).values()
    ]
    return math.fsum(off) / len(tasks)


def _rate(rows: Sequence[Kind], tasks: Sequence[str], weights: Mapping[str, float]) -> float:
    """Return weighted success; kinds that do not occur in these tasks give their weight away."""
    inside = frozenset(tasks)
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for one in rows:
        if one.task in inside and weights.get(one.kind, 0.0) > 0:
            by_kind[one.kind].append(one.success)
    total = math.fsum(weights[kind] for kind in by_kind)
    if not total:
        return 0.0
    return math.fsum(weights[k] * sum(won) / len(won) for k, won in by_kind.items()) / total


def _count(kinds: Any) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for kind in kinds:
        found[kind] += 1
    return dict(found)
