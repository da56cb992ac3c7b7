"""Two scores compared on what they have in common: paired differences, one row per metric.

Conversations are paired by task and trial (or by id), so that what a task does to everybody falls
out of the difference; clusters are resampled as one. p values flip signs and are corrected by Holm
over the metrics of a suite. What stands on one side only is counted, never scored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mimesim import stats
from mimesim.errors import DataError, UsageError
from mimesim.results.leaderboard import differing
from mimesim.results.suite import PerKey, SuiteScore
from mimesim.results.values import Estimate


@dataclass(frozen=True, slots=True)
class Paired:
    """The difference of one metric, first minus second.

    Attributes:
        value: with its interval; `n` is the pairs.
        p: two-sided, by flipped signs; p_holm: corrected for the metrics of the suite.
        alone: values that only the first, and only the second side has.
    """

    metric: str
    unit: str
    value: Estimate
    p: float | None
    alone: tuple[int, int]
    p_holm: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "metric": self.metric,
            "unit": self.unit,
            "difference": self.value.value,
            "ci95": self.value.brief()["ci95"],
            "pairs": self.value.n,
            "p": self.p,
            "p_holm": self.p_holm,
            "only_a": self.alone[0],
            "only_b": self.alone[1],
        }


@dataclass(frozen=True, slots=True)
class SuiteComparison:
    """Two records of one suite.

    Attributes:
        users: who was measured, first and second.
        unpaired: metrics that both have but not by key, e.g. those of a whole set.
        mixed: which of mode, agent, judge and people differ; that is in the numbers, too.
    """

    suite: str
    users: tuple[str, str]
    rows: tuple[Paired, ...]
    unpaired: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "suite": self.suite,
            "a": self.users[0],
            "b": self.users[1],
            "mixed": list(self.mixed),
            "rows": [row.to_json() for row in self.rows],
            "unpaired": list(self.unpaired),
        }


def compare(
    first: Mapping[str, SuiteScore],
    second: Mapping[str, SuiteScore],
    *,
    mixed: bool = False,
    seed: int = 0,
    draws: int = stats.DRAWS,
) -> list[SuiteComparison]:
    """Compare two sides, suite by suite.

    Args:
        first: where a record was read -> record, one per suite.
        second: the other side.
        mixed: whether modes, agents, judges and people may differ.
        seed: of the resampling.
        draws: of the resampling.

    Raises:
        UsageError: no suite is common, one side has a suite twice, or two records do not compare.
    """
    left, right = _by_suite(first), _by_suite(second)
    common = [suite for suite in left if suite in right]
    if not common:
        raise UsageError(
            f"no suite is common: {', '.join(left)} against {', '.join(right)}",
            expected="two scores of the same suite, made alike",
        )
    return [_compared(left[s], right[s], mixed, seed, draws) for s in common]


def _by_suite(records: Mapping[str, SuiteScore]) -> dict[str, tuple[str, SuiteScore]]:
    found: dict[str, tuple[str, SuiteScore]] = {}
    for place, record in records.items():
        if record.suite in found:
            raise UsageError(
                f"suite {record.suite!r} stands there twice: {found[record.suite][0]} and {place}",
                expected="one score of a suite on either side",
                mend="name the file of the one that is meant",
            )
        found[record.suite] = (place, record)
    return found


def _compared(
    left: tuple[str, SuiteScore],
    right: tuple[str, SuiteScore],
    mixed: bool,  # noqa: FBT001 - passed on
    seed: int,
    draws: int,
) -> SuiteComparison:
    (place, a), (other, b) = left, right
    places = {place: a, other if other != place else f"{other} (again)": b}
    unlike = differing(places, mixed=mixed)
    units = {metric.name: metric.unit for metric in a.metrics}
    names = [name for name in a.by_key if name in b.by_key]
    rows = [_difference(name, units.get(name, ""), a, b, seed, draws) for name in names]
    if not any(row.value.n for row in rows):
        raise DataError(
            "nothing is common to the two scores",
            where=f"{place}, {other}",
            expected="the same tasks or conversations on both sides"
            + _examples(a.by_key, b.by_key),
        )
    corrected = stats.holm([row.p for row in rows])
    rows = [replace(row, p_holm=p) for row, p in zip(rows, corrected, strict=True)]
    theirs = {metric.name for metric in b.metrics}
    whole = [m.name for m in a.metrics if m.name in theirs and m.name not in names]
    users = (a.roles.get("user", place), b.roles.get("user", other))
    return SuiteComparison(a.suite, users, tuple(rows), tuple(whole), unlike)


def _difference(
    name: str, unit: str, a: SuiteScore, b: SuiteScore, seed: int, draws: int
) -> Paired:
    mine, theirs = a.by_key[name], b.by_key[name]
    keys = [key for key in mine.values if key in theirs.values]
    clusters = {key: mine.clusters.get(key, key) for key in keys}
    panel = stats.Panel([{key: mine.values[key] - theirs.values[key] for key in keys}], clusters)
    alone = (len(mine.values) - len(keys), len(theirs.values) - len(keys))
    interval = stats.panel_means([panel], [[1.0]], seed, draws)[0]
    p = stats.sign_flip([panel], [1.0], seed, draws)
    return Paired(name, unit, Estimate.of(interval), p, alone)


def _examples(left: Mapping[str, PerKey], right: Mapping[str, PerKey]) -> str:
    shown = [
        next((key for one in side.values() for key in one.values), "") for side in (left, right)
    ]
    return f"; the first has e.g. {shown[0]!r}, the second {shown[1]!r}" if all(shown) else ""
