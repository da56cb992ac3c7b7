"""The lines of a record of the user-sim index: metrics, the null of calibration, values by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mimesim.bench.suites.usi import index, scoring
from mimesim.bench.suites.usi.features import DIMENSIONS, FEATURES, NAMES
from mimesim.bench.suites.usi.index import MeasuredSet
from mimesim.bench.suites.usi.scoring import Against
from mimesim.errors import ConfigError
from mimesim.results.suite import FloorRow, Metric, PerKey
from mimesim.results.values import Estimate
from mimesim.stats import NULL_RANGE, null_ece

Way = Literal["higher", "lower", "nearer", "none"]
_SCALES: Mapping[str, tuple[str, Way]] = {"ECE": ("", "lower")}
_BIASED = {
    "ECE": "resampled tasks bias it upwards: read it beside the perfect simulator",
    "USI5": "resampled tasks bias it downwards: read it beside people or runs of one user",
}
_ABOUT = {
    "D1": "courtesy and form",
    "D2": "how information is given",
    "D3": "questions and certainty",
    "D4": "emotion and changes of plan",
    "D1s": "of D1 what needs no word list",
}
RARE = 5
"""Hits below which a rate of a side swings the index."""


def index_metrics(found: Against, eval_: Sequence[float]) -> list[Metric]:
    """Return the scores of the index; `eval_` is the agreement of surveys, one a batch, or empty."""
    metrics = []
    for name in index.SCORES:
        spread = f"sd over {found.shape[1]} batches {found.spread[name]:.3g}"
        scored = found.scores[name].value is not None
        notes = (
            _ABOUT.get(name, ""),
            spread if scored and found.shape[1] > 1 else "",
            _BIASED.get(name, "") if scored else "",
        )
        unit, way = _SCALES.get(name, ("points", "higher"))
        note = "; ".join(filter(None, notes))
        metrics.append(Metric(name, found.scores[name], unit, way, note=note))
    if eval_:
        value = sum(eval_) / len(eval_)
        agreed = Estimate(value, n=len(eval_), method="mean over batches")
        metrics.append(Metric("Eval", agreed, "points", "higher", unit_of_n="batches"))
        parts = [found.scores[name].value for name in (*DIMENSIONS, "ECE")]
        known = [one for one in parts if one is not None]
        if len(known) == len(parts):
            six = Estimate(index.usi6(known[:-1], known[-1], value), n=found.n, method="of means")
            metrics.insert(len(index.SCORES), Metric("USI6", six, "points", "higher"))
    return metrics


def feature_metric(
    name: str,
    estimate: Estimate,
    ours: Mapping[str, int],
    theirs: Mapping[str, int] | None = None,
    note: str = "",
) -> Metric:
    """Return a feature of the user; `ours` and `theirs` are hits by feature, few of them are told."""
    one = FEATURES[NAMES.index(name)]
    sides = [side[name] for side in (ours, theirs) if side is not None and name in side]
    rare = f"rare: {min(sides)} hits" if sides and min(sides) < RARE else ""
    if theirs is not None and sides and max(sides) == 0:
        note, rare = "on neither side", ""
    notes = [text for text in (note, rare) if text]
    way: Way = "none" if theirs is None else "nearer"
    return Metric(name, estimate, one.unit, way, note="; ".join(notes))


def plain_metrics(ours: MeasuredSet) -> list[Metric]:
    """Return what is no feature: length and success, plain means."""
    n = len(ours.rows)
    turns = sum(one.row.turns for one in ours.rows) / n
    user_turns = sum(one.row.user_turns for one in ours.rows) / n
    known = [one.success for one in ours.rows if one.success is not None]
    success = Estimate(100 * sum(known) / len(known) if known else None, n=len(known))
    return [
        Metric("turns", Estimate(turns, n=n), "turns", note="of both sides"),
        Metric("user_turns", Estimate(user_turns, n=n), "turns"),
        Metric("success", success, "%"),
    ]


def null_floor(
    options: Mapping[str, Any],
    found: Against,
    ours: MeasuredSet,
    theirs: MeasuredSet,
    difficulty: Mapping[str, float],
) -> list[FloorRow]:
    """Return the calibration error of a perfect simulator that played the same tasks as often."""
    kind = drawn_at(options)
    observed = found.scores["ECE"].value
    tasks = [task for task in found.tasks if task in difficulty]
    if observed is None or not tasks:
        return []
    rates = scoring.pooled_rates(ours, theirs, tasks, difficulty) if kind == "pooled" else None
    null = null_ece(
        [difficulty[task] for task in tasks],
        scoring.design_of(ours, theirs, tasks),
        rates=rates,
    )
    share = f"{null.share_at_least(observed):.1%} of perfect simulators are at least this far off"
    if options.get("difficulty") == "self":  # bins of one side's luck: the other regresses
        share = (
            "bins are made from the user's own outcomes, so how many are this far off is unknown"
        )
    note = f"sd {null.sd:.4f}; {share}"
    value = Estimate.of(null.interval)
    return [FloorRow("ECE", "perfect simulator", value, note, NULL_RANGE)]


def drawn_at(options: Mapping[str, Any]) -> str:
    """Return whose rates the perfect simulator has.

    Raises:
        ConfigError: an unknown name.
    """
    kind = str(options.get("null", "difficulty"))
    if kind not in ("difficulty", "pooled"):
        raise ConfigError(f"null is {kind!r}", where="suite usi", expected="difficulty or pooled")
    return kind


def by_key(ours: MeasuredSet) -> dict[str, PerKey]:
    """Return features and success by task, means over its conversations, for paired comparisons."""
    rows: dict[str, list[index.Measured]] = {}
    for one in ours.rows:
        rows.setdefault(one.key, []).append(one)
    clusters = {key: found[0].cluster for key, found in rows.items()}
    found: dict[str, PerKey] = {}
    for place, feature in enumerate(FEATURES):
        means = {
            key: feature.scale * sum(one.row.values[place] for one in same) / len(same)
            for key, same in rows.items()
        }
        found[feature.name] = PerKey(means, clusters)
    known = {key: [s.success for s in same if s.success is not None] for key, same in rows.items()}
    rates = {key: 100 * sum(values) / len(values) for key, values in known.items() if values}
    return {**found, "success": PerKey(rates, {key: clusters[key] for key in rates})}
