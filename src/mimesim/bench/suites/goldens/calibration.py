"""Golden checks of success: pass^k, the calibration error and what chance alone makes of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

from mimesim import jsonio, seeds
from mimesim.bench.suites.difficulty import FROZEN, frozen_difficulty, task_key
from mimesim.bench.suites.goldens.base import Check, holds, numbers
from mimesim.bench.suites.usi import published
from mimesim.stats import Design, NullEce, difficulty_bin, ece, null_ece, pass_k
from mimesim.stats.correlations import pearson

RUNS = "tau_bench/gpt4o_airline_trajectories.jsonl"
MAP = "tau_bench/tau_usi_difficulty.json"
MAP_HASH = "b119bd4da4a736b7b46c33af79046ac8eb21cb8a6c836d192d9d528e11e9d88d"
_NULLS = {
    "1 x 1": (1, 1, "", 0.076, 0.029),
    "1 x 3": (1, 3, "", 0.076, 0.020),
    "3 x 3": (3, 3, "", 0.076, 0.013),
    "airline, 1 x 1": (1, 1, "airline", 0.133, 0.053),
}
"""Runs and batches -> the shape, and the mean and sd of a perfect simulator."""


@cache
def _successes(path: Path) -> dict[str, tuple[int, int]]:
    """Return task -> successes, trials of the airline runs."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for line in jsonio.read_jsonl(path):
        counts = found[f"airline_{line.value['task_id']}"]
        counts[0] += line.value["reward"] > 0
        counts[1] += 1
    return {task: (won, played) for task, (won, played) in found.items()}


def _passes(path: Path) -> dict[str, float | None]:
    counts = list(_successes(path).values())
    found = {f"pass^{k}": pass_k(counts, k).value for k in range(1, 5)}
    return {**found, **{f"pass@{k}": pass_k(counts, k, "any").value for k in range(1, 5)}}


def _tally(path: Path) -> str:
    tally = Counter(won for won, _ in _successes(path).values())
    return " ".join(str(tally[won]) for won in range(5))


def _correlation(path: Path) -> dict[str, float | None]:
    counts, rates = _successes(path), frozen_difficulty()
    return {"Pearson": pearson([(won / n, rates[task]) for task, (won, n) in counts.items()])}


def _map_facts() -> dict[str, float]:
    rates = frozen_difficulty()
    found = {"tasks": float(len(rates)), "mean": _mean(list(rates.values()))}
    for domain in ("retail", "airline"):
        found[domain] = _mean([rate for task, rate in rates.items() if task.startswith(domain)])
    for place in range(5):
        inside = [rate for rate in rates.values() if difficulty_bin(rate) == place]
        found[f"bin {place}"] = float(len(inside))
        found[f"mean {place}"] = _mean(inside)
    return found


def _airline_bins() -> str:
    places = Counter(
        difficulty_bin(rate)
        for task, rate in frozen_difficulty().items()
        if task.startswith("airline")
    )
    return " ".join(str(places[place]) for place in range(5))


def _toys() -> dict[str, float | None]:
    rates = {"a": 0.1, "b": 0.5, "c": 0.5, "e": 0.95}
    ours, theirs = {"a": 1, "b": 1, "c": 0, "e": 1}, {"a": 0, "b": 1, "c": 1, "e": 1}
    one = {"x": 0.5, "y": 0.5}
    return {
        "three bins": ece(ours, theirs, rates).value,
        "one bin": ece({"x": 1, "y": 0}, {"x": 1, "y": 1}, one).value,
        "no common task": ece({"x": 1}, {"y": 1}, one).value,
    }


def _edges() -> str:
    return " ".join(str(difficulty_bin(rate)) for rate in (0.0, 0.2, 0.8, 1.0))


def _bounded() -> str:
    """Draw success at random, and look for an error below the gap of all rates."""
    rng, tasks = seeds.generator(0, "golden", "ece"), list(frozen_difficulty())
    for _ in range(50):
        some = rng.sample(tasks, 40)
        ours, theirs = ({t: float(rng.random() < 0.5) for t in some} for _ in range(2))
        value = ece(ours, theirs, frozen_difficulty()).value
        if value is None or value + 1e-12 < abs(sum(ours.values()) - sum(theirs.values())) / 40:
            return f"{value} is below the gap"
    return "never below the gap"


def _null(runs: int, batches: int, domain: str) -> NullEce:
    rates = [rate for task, rate in frozen_difficulty().items() if task.startswith(domain)]
    return null_ece(rates, Design.full(runs, batches, len(rates)))


def _nulls() -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name, (runs, batches, domain, _, _) in _NULLS.items():
        null = _null(runs, batches, domain)
        found |= {f"{name} mean": null.interval.value, f"{name} sd": null.sd}
    return found


def _table() -> str:
    """Make every printed rate and difference from the counts; differences before rounding."""
    told = published.table()["success"]
    n, rows = told["conversations"], told["row"]
    people = rows[0]["successes"]
    wrong = [
        row["subject"]
        for row in rows
        if f"{100 * row['successes'] / n:.1f}" != f"{row['rate']:.1f}"
        or f"{100 * (row['successes'] - people) / n:.1f}" != f"{row.get('difference', 0.0):.1f}"
    ]
    return ", ".join(wrong) or "all agree"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


CHECKS: list[Check] = [
    numbers(
        "pass_k/airline",
        {
            "pass^1": 0.42,
            "pass^2": 0.82 / 3,
            "pass^3": 0.22,
            "pass^4": 0.20,
            "pass@1": 0.42,
            "pass@2": 0.566667,
            "pass@3": 0.66,
            "pass@4": 0.72,
        },
        _passes,
        file=RUNS,
    ),
    holds("pass_k/tasks with 0 to 4 successes", "14 12 10 4 10", _tally, file=RUNS),
    numbers("pass_k/success and difficulty", {"Pearson": 0.549316}, _correlation, file=RUNS),
    holds("ece/map in the package", MAP_HASH, lambda: seeds.file_fingerprint(FROZEN, 64)),
    holds("ece/map in the data", MAP_HASH, lambda path: seeds.file_fingerprint(path, 64), file=MAP),
    numbers(
        "ece/map",
        {
            "tasks": 165.0,
            "mean": 0.648769,
            "retail": 0.640445,
            "airline": 0.667915,
            **dict(zip((f"bin {i}" for i in range(5)), (4.0, 17.0, 37.0, 66.0, 41.0), strict=True)),
            **dict(
                zip(
                    (f"mean {i}" for i in range(5)),
                    (0.0871, 0.3056, 0.5179, 0.7055, 0.8726),
                    strict=True,
                )
            ),
        },
        _map_facts,
        tolerance={f"mean {i}": 5.1e-5 for i in range(5)},
    ),
    holds("ece/airline tasks by bin", "1 4 14 17 14", _airline_bins),
    holds("ece/edges of bins", "0 1 4 4", _edges),
    numbers("ece/toys", {"three bins": 0.5, "one bin": 0.5, "no common task": None}, _toys),
    holds(
        "ece/task keys",
        "retail_12 airline_7",
        lambda: " ".join(map(task_key, ("retail_12_3", "airline_7"))),
    ),
    holds("ece/at least the gap", "never below the gap", _bounded),
    numbers(
        "ece/perfect simulator",
        {
            f"{name} {what}": value
            for name, (*_, mean, sd) in _NULLS.items()
            for what, value in (("mean", mean), ("sd", sd))
        },
        _nulls,
        tolerance=0.003,
    ),
    holds("ece/published success", "all agree", _table),
]
