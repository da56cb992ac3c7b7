"""A mixture of behaviors under which the agent succeeds as often as under people.

The weights are fitted on one half of the tasks and checked on the other, both ways round: what
counts is the error on tasks that the weights never saw. Kinds of people meet different tasks, so their
success is compared inside bins of like difficulty, and weighed by the tasks of the bins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mimesim import seeds, stats
from mimesim.bench.calibration.gaps import by_bin
from mimesim.errors import UsageError
from mimesim.stats import Interval
from mimesim.stats.intervals import bounds, resampled_weights

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

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
        gain: what the error fell by, over tasks.
        simulated: success under the shares as they were; fitted: under the weights; human: of people;
            all weighed alike by the tasks of the bins.
        reach: lowest and highest success that any mixture of the kinds gives.
        left_out: kinds with too few conversations.
    """

    weights: Mapping[str, float]
    before: Mapping[str, float]
    error_before: float
    error_after: float
    gain: Interval
    simulated: float
    human: float
    fitted: float
    reach: tuple[float, float]
    left_out: Mapping[str, int]

    @property
    def helps(self) -> bool:
        """Whether the error on unseen tasks fell by more than chance."""
        return self.gain.above_zero

    @property
    def miss(self) -> float:
        """Success under the weights minus that of people, on the tasks that they were fitted on."""
        return self.fitted - self.human

    @property
    def in_reach(self) -> bool:
        """Whether human success lies between the kinds' rates."""
        return self.reach[0] <= self.human <= self.reach[1]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        told = {"helps": self.helps, "miss": self.miss, "in_reach": self.in_reach}
        return asdict(self) | told


def fit(
    simulated: Sequence[Kind],
    human: Mapping[str, float],
    difficulty: Mapping[str, float],
    *,
    seed: int = 0,
    draws: int = stats.DRAWS,
) -> Fit:
    """Fit the weights of the kinds of simulated people.

    Args:
        simulated: conversations whose kind is known.
        human: task -> success under people.
        difficulty: task -> frozen success rate, which chooses the bin. Rates made from these outcomes
            would put tasks together by how they happened to end: give all tasks one rate instead.
        seed: of the two halves and the interval.
        draws: of the interval.

    Raises:
        UsageError: fewer than two kinds with enough conversations, or fewer than two tasks.
    """
    rows = [one for one in simulated if one.task in human and one.task in difficulty]
    sizes = Counter(one.kind for one in rows)
    kinds = [kind for kind, n in sizes.items() if n >= LEAST]
    if len(kinds) < 2:
        raise UsageError(
            f"only {len(kinds)} kinds of people have {LEAST} conversations or more",
            where="calibrate --fit",
            expected="at least two, e.g. episodes of scripted:realistic",
        )
    rows = [one for one in rows if one.kind in kinds]
    before = [sizes[kind] / len(rows) for kind in kinds]
    halves = [
        _Tasks.of(rows, tasks, kinds, human, difficulty)
        for tasks in _halves(sorted({one.task for one in rows}), seed)
    ]
    errors, gain = _unseen(halves, before, seed, draws)
    whole = _Tasks.of(rows, sorted({one.task for one in rows}), kinds, human, difficulty)
    weights = _weights(whole, before)
    by_kind = whole.rates()
    return Fit(
        weights=dict(sorted(zip(kinds, weights, strict=True), key=lambda one: -one[1])),
        before=dict(zip(kinds, before, strict=True)),
        error_before=errors[0],
        error_after=errors[1],
        gain=gain,
        simulated=math.fsum(w * r for w, r in zip(before, by_kind, strict=True)),
        human=math.fsum(human[task] for task in whole.names) / len(whole.names),
        fitted=math.fsum(w * r for w, r in zip(weights, by_kind, strict=True)),
        reach=(min(by_kind), max(by_kind)),
        left_out={kind: n for kind, n in sizes.items() if kind not in kinds},
    )


def as_users(found: Fit) -> str:
    """Return the mixture as the `users` table of a training recipe, TOML; tiny shares left out."""
    lines = []
    joint = math.fsum(weight for kind, weight in found.weights.items() if "+" in kind)
    if joint >= _TINY:
        lines.append(f"# {joint:.1%} of the weight is on several behaviors at once: not in here")
    for kind, weight in found.weights.items():
        if weight >= _TINY and "+" not in kind:
            lines += ["[[users]]", f'name = "scripted:{kind}"', f"weight = {weight:.3f}", ""]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Tasks:
    """Some tasks: which bin each is in, how people fared, how often each kind met it and won."""

    names: Sequence[str]
    member: Array  # tasks x bins
    human: Array
    met: Array  # tasks x kinds
    won: Array

    @classmethod
    def of(
        cls,
        rows: Sequence[Kind],
        names: Sequence[str],
        kinds: Sequence[str],
        human: Mapping[str, float],
        difficulty: Mapping[str, float],
    ) -> _Tasks:
        import numpy as np

        place = {task: i for i, task in enumerate(names)}
        bins = by_bin(names, difficulty)
        member = np.zeros((len(names), len(bins)))
        for column, inside in enumerate(bins.values()):
            member[[place[task] for task in inside], column] = 1
        met, won = np.zeros((2, len(names), len(kinds)))
        for one in rows:
            if one.task in place:
                at = place[one.task], kinds.index(one.kind)
                met[at] += 1
                won[at] += one.success
        return cls(names, member, np.asarray([human[task] for task in names]), met, won)

    def binned(self, weights: Array, shrink: float = 0.0) -> tuple[Array, Array, Array]:
        """Return success of each kind in each bin, that of people, and the share of each bin.

        Args:
            weights: draws x tasks, how often each task counts; the first axis of what is returned.
            shrink: conversations at the bin's rate that are added to every kind. A kind that was not
                met in a bin has the bin's rate in any case.
        """
        import numpy as np

        size = weights @ self.member
        met, won = (
            np.stack([(weights * column) @ table for column in self.member.T], axis=1)
            for table in (self.met, self.won)
        )
        some = np.maximum(met.sum(axis=2), _NONE)
        middle = (won.sum(axis=2) / some)[:, :, None]
        added = max(shrink, _NONE)
        rates = (won + added * middle) / (met + added)
        people = (weights * self.human) @ self.member / np.maximum(size, _NONE)
        return rates, people, size / size.sum(axis=1, keepdims=True)

    def rates(self) -> list[float]:
        """Return the success of each kind, bins weighed by all tasks."""
        rates, _, share = self.binned(self.once)
        return [float(one) for one in share[0] @ rates[0]]

    def errors(self, weights: Array, shares: Sequence[Sequence[float]]) -> Array:
        """Return draws x mixtures: the error of each mixture under each row of task weights."""
        import numpy as np

        rates, people, share = self.binned(weights)
        off = np.abs(rates @ np.asarray(shares).T - people[:, :, None])
        found: Array = (share[:, :, None] * off).sum(axis=1)
        return found

    @property
    def once(self) -> Array:
        """One row of weights: every task once."""
        import numpy as np

        return np.ones((1, len(self.names)))


_TINY = 0.005
_NONE = 1e-9


def _halves(tasks: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    if len(tasks) < 2:
        raise UsageError("one task cannot be halved", where="calibrate --fit", expected="more")
    order = sorted(tasks, key=lambda task: seeds.derive(seed, "halves", task))
    middle = len(order) // 2
    return order[:middle], order[middle:]


def _unseen(
    halves: Sequence[_Tasks], before: Sequence[float], seed: int, draws: int
) -> tuple[tuple[float, float], Interval]:
    """Return the errors before and after on tasks that the weights never saw, and what was gained.

    The weights stay as they are; only the tasks that judge them are resampled, half by half.
    """
    import numpy as np

    points, drawn = [], []
    for place, (own, other) in enumerate((halves, halves[::-1])):
        shares = (before, _weights(own, before))
        rng = np.random.default_rng([seed, place])
        chunks = resampled_weights(rng, len(other.names), draws)
        points.append(other.errors(other.once, shares)[0])
        drawn.append(np.concatenate([other.errors(chunk, shares) for chunk in chunks]))
    first, second = (float(one) for one in np.mean(points, axis=0))
    samples = np.mean(drawn, axis=0)
    n = sum(len(half.names) for half in halves)
    method = f"bootstrap over the tasks of each half, {draws} draws"
    interval = Interval(first - second, *bounds(samples[:, 0] - samples[:, 1]), n, method)
    return (first, second), interval


def _weights(tasks: _Tasks, before: Sequence[float]) -> list[float]:
    """Minimize sum_b n_b/n (sum_k w_k s_kb - h_b)^2 + ridge |w - before|^2 over shares.

    Rates of a kind in a bin are drawn towards the bin's rate, since they rest on few conversations.
    Multiplicative steps keep the weights positive with sum 1.
    """
    import numpy as np

    (table,), (aim,), (share,) = tasks.binned(tasks.once, _SHRINK)
    start = np.asarray(before)
    w = start.copy()
    for _ in range(_STEPS):
        slope = 2 * table.T @ (share * (table @ w - aim)) + 2 * _RIDGE * (w - start)
        w = w * np.exp(-_RATE * slope)
        w /= w.sum()
    return [float(one) for one in w]
