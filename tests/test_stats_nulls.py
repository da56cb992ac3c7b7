"""Perfect simulators are flagged as often as promised, whoever played what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mimesim.stats import Design, ece, null_ece, outcome_table, swapped_ece

TASKS = [f"t{i}" for i in range(60)]
SIMULATORS = 300


def _side(rng: np.random.Generator, rates: Any, sizes: tuple[int, ...]) -> list[dict[str, float]]:
    """Let a side play; run i plays the first sizes[i] tasks."""
    return [
        {task: float(rng.random() < p) for task, p in zip(TASKS[:size], rates, strict=False)}
        for size in sizes
    ]


def _error(runs: list[dict[str, float]], batches: list[dict[str, float]], rates: Any) -> float:
    found = [ece(r, b, rates) for r in runs for b in batches]
    return sum(one.n * (one.value or 0) for one in found) / sum(one.n for one in found)


@pytest.mark.parametrize("rates_of", ["frozen", "own"])
@pytest.mark.parametrize(
    "sizes", [((60,), (60,)), ((60, 60), (60, 60)), ((60, 6, 6, 6), (60, 6))], ids=str
)
def test_one_perfect_simulator_in_twenty_is_flagged(
    rates_of: str, sizes: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    rng = np.random.default_rng(7)
    flagged = 0
    for seed in range(SIMULATORS):
        chances = rng.random(len(TASKS))
        runs, batches = (_side(rng, chances, size) for size in sizes)
        tables = [outcome_table(side, TASKS) for side in (runs, batches)]
        if rates_of == "frozen":
            difficulty = dict(zip(TASKS, chances.tolist(), strict=True))
            played = [(~np.isnan(table)).astype(int) for table in tables]
            design = Design(played[0], played[1], by_tasks=True)
            null = null_ece(list(difficulty.values()), design, draws=200, seed=seed)
        else:
            pooled = np.nanmean(np.concatenate(tables), axis=0)
            difficulty = dict(zip(TASKS, pooled.tolist(), strict=True))
            null = swapped_ece(pooled.tolist(), *tables, draws=200, seed=seed)
        flagged += _error(runs, batches, difficulty) > (null.interval.high or 0) + 1e-9
    assert 0.02 <= flagged / SIMULATORS <= 0.09


def test_a_simulator_that_is_too_easy_is_flagged() -> None:
    rng = np.random.default_rng(1)
    runs, batches = _side(rng, [0.9] * 60, (60, 60)), _side(rng, [0.4] * 60, (60, 60))
    tables = [outcome_table(side, TASKS) for side in (runs, batches)]
    pooled = np.concatenate(tables).mean(axis=0)
    difficulty = dict(zip(TASKS, pooled.tolist(), strict=True))
    null = swapped_ece(pooled.tolist(), *tables)
    assert null.share_at_least(_error(runs, batches, difficulty)) < 0.01


def test_pairs_weigh_alike_or_by_their_tasks() -> None:
    runs = np.array([[1, 1, 1], [1, 0, 0]])
    batches = np.array([[1, 1, 1], [0, 0, 0]])
    by_pairs, by_tasks = Design(runs, batches).scale, Design(runs, batches, by_tasks=True).scale
    assert by_pairs.tolist() == [[pytest.approx(1 / 6), 0], [pytest.approx(1 / 2), 0]]
    assert by_tasks == pytest.approx(1 / 4)
    for design in (Design(runs, batches), Design(runs, batches, by_tasks=True)):
        null = null_ece([0.5] * 3, design, rates=[1.0] * 3, draws=10)
        assert null.samples == (0.0,) * 10
    with pytest.raises(ValueError, match="a common task"):
        null_ece([0.5], Design(runs[1:, 1:2], batches[:1, :1]))


def test_equal_errors_are_equal_however_they_were_summed() -> None:
    runs = [dict.fromkeys(TASKS[:1], 1.0)]
    null = swapped_ece([0.5], outcome_table(runs, TASKS[:1]), np.array([[0.0]]))
    assert null.share_at_least(1 + 1e-12) == 1.0
