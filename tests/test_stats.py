"""Checks of intervals and text statistics against published and hand-computed values."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim import stats


def test_cluster_bootstrap_repeats_a_published_interval() -> None:
    hits = [(i, (7 * i + 3 * j) % 6) for i in range(40) for j in range(i % 3 + 1)]
    found = stats.mean_ci([100 * h / 5 for _, h in hits], [i for i, _ in hits], seed=1234)
    assert found.n == 79
    assert found.value == pytest.approx(55.949367, abs=1e-6)
    assert (found.low, found.high) == pytest.approx((49.577465, 61.379310), abs=1e-6)
    assert "40 clusters" in found.method
    by_case = stats.mean_ci([100 * h / 5 for _, h in hits], seed=1234)
    assert (by_case.low, by_case.high) == pytest.approx((48.607595, 63.291139), abs=1e-6)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(266, 300, 84.5801, 91.7755), (277, 300, 88.7590, 94.8372), (300, 300, 98.7357, 100)],
)
def test_wilson_golden(k: int, n: int, low: float, high: float) -> None:
    found = stats.wilson(k, n)
    assert (100 * found.low, 100 * found.high) == pytest.approx((low, high), abs=1e-4)


def test_nothing_observed_is_unknown_not_zero() -> None:
    for empty in (stats.wilson(0, 0), stats.mean_ci([]), stats.t_interval([])):
        assert (empty.value, empty.low, empty.high, empty.n) == (None, None, None, 0)
    one = stats.mean_ci([1.0, 0.0], ["task", "task"])
    assert (one.value, one.low) == (0.5, None)
    assert not one.above_zero
    assert not one.resolved


def test_all_alike_outcomes_keep_an_honest_interval() -> None:
    found = stats.rate_ci([True] * 20, [i // 2 for i in range(20)])
    assert (found.value, found.high, found.n) == (1.0, pytest.approx(1.0), 20)
    assert found.low == pytest.approx(stats.wilson(10, 10).low)
    assert stats.rate_ci([False, False], ["a", "b"]).high > 0.5
    assert stats.rate_ci([True, False], ["a", "b"]).value == 0.5


def test_a_weighted_mean_of_groups_by_hand() -> None:
    groups = [([1.0, 0.0], ["a", "b"]), ([0.5, 0.5], ["c", "d"]), ([], [])]
    found = stats.macro_mean_ci(groups, weights=[3, 1, 100])
    assert found.value == pytest.approx((3 * 0.5 + 1 * 0.5) / 4)
    assert (found.low, found.high) == pytest.approx((0.125, 0.875))
    assert (found.n, "weighted mean of 2 groups" in found.method) == (4, True)
    even = stats.macro_mean_ci(groups, weights=[2, 2, 2])
    plain = stats.macro_mean_ci(groups)
    assert (even.value, even.low, even.high) == (plain.value, plain.low, plain.high)
    assert stats.macro_mean_ci([([], [])], weights=[1]).value is None
    with pytest.raises(ValueError, match="zip"):
        stats.macro_mean_ci(groups, weights=[1])


def test_paired_difference_uses_common_keys_only() -> None:
    a = dict.fromkeys(range(10), 1.0) | {"only a": 0.0}
    b = {i: float(i < 4) for i in range(10)}
    found = stats.paired_difference(a, b, {k: k for k in a})
    assert (found.value, found.n) == (0.6, 10)
    assert found.above_zero
    assert "1 unpaired" in found.method
    other = stats.paired_difference(b, a, {k: k for k in a})
    assert other.high < 0
    assert other.resolved
    assert not other.above_zero


def test_pairing_within_clusters_widens_the_interval() -> None:
    a = {i: float(i % 20 < 10) for i in range(200)}
    b = dict.fromkeys(a, 0.0)
    fine = stats.paired_difference(a, b, {k: k for k in a})
    coarse = stats.paired_difference(a, b, {k: k // 10 for k in a})
    assert coarse.high - coarse.low > 2 * (fine.high - fine.low)


def _run(outer: int, inner: int, gain: float) -> stats.PairedRun:
    keys = range(100)
    a = {k: float(k < 50 + 100 * gain) for k in keys}
    return stats.PairedRun(outer, inner, a, {k: float(k < 50) for k in keys}, {k: k for k in keys})


def test_hierarchical_covers_the_spread_of_seeds() -> None:
    alike = stats.hierarchical_paired([_run(s, r, 0.2) for s in (0, 1) for r in (0, 1, 2)])
    apart = stats.hierarchical_paired(
        [_run(0, 0, 0.4), _run(0, 1, 0.3), _run(1, 0, 0.0), _run(1, 1, 0.1)]
    )
    assert alike.interval.value == pytest.approx(0.2)
    assert alike.interval.above_zero
    assert apart.interval.value == pytest.approx(0.2)
    assert apart.interval.high - apart.interval.low > alike.interval.high - alike.interval.low
    assert [s.value for s in apart.per_seed] == pytest.approx([0.4, 0.3, 0.0, 0.1])
    assert "2 SFT seeds, 4 runs and 100 clusters" in apart.interval.method


def test_hierarchical_weighs_outer_seeds_alike_and_is_reproducible() -> None:
    runs = [_run(0, 0, 0.3), _run(1, 0, 0.0), _run(1, 1, 0.0), _run(1, 2, 0.0)]
    first = stats.hierarchical_paired(runs, seed=5)
    assert first.interval.value == pytest.approx(0.15)
    assert first == stats.hierarchical_paired(runs, seed=5)
    with pytest.raises(ValueError, match="each pair of seeds once"):
        stats.hierarchical_paired([runs[0], runs[0]])


@pytest.mark.parametrize(
    ("degrees", "t"),
    [(1, 12.7062), (2, 4.30265), (3, 3.18245), (4, 2.77645), (9, 2.26216), (30, 2.04227)],
)
def test_student_quantiles(degrees: int, t: float) -> None:
    assert stats.t_quantile(degrees) == pytest.approx(t, abs=1e-4)


def test_t_interval_by_hand() -> None:
    found = stats.t_interval([22.8, 11.4, 28.6])
    assert found.value == pytest.approx(20.9333, abs=1e-4)
    assert found.low == pytest.approx(20.9333 - 4.30265 * 8.75062 / math.sqrt(3), abs=1e-3)


def test_pass_k_golden() -> None:
    counts = [(4, 4), (2, 4), (0, 4), (1, 4)]
    assert [stats.pass_k(counts, k).value for k in (1, 2, 3, 4)] == pytest.approx(
        [0.4375, 0.291667, 0.25, 0.25], abs=1e-6
    )
    airline = [(c, 4) for c, many in enumerate((14, 12, 10, 4, 10)) for _ in range(many)]
    assert [stats.pass_k(airline, k).value for k in (1, 2, 3, 4)] == pytest.approx(
        [0.42, 0.273333, 0.22, 0.20], abs=1e-6
    )
    any_of = stats.pass_k([*counts, (1, 1)], 4, "any")
    assert (any_of.value, any_of.n) == (0.75, 4)
    assert "1 tasks with fewer" in any_of.method


def test_ece_by_hand_and_undefined() -> None:
    difficulty = {"a": 0.1, "b": 0.1, "c": 0.8, "d": 1.0}
    found = stats.ece(
        {"a": 1, "b": 0, "c": 1, "d": 1}, {"a": 0, "b": 0, "c": 1, "d": 0}, difficulty
    )
    assert found.value == pytest.approx(0.5)
    assert found.bins == ((2, 0.5, 0.0), (2, 1.0, 0.5))
    assert stats.ece({"x": 1.0}, {"y": 1.0}, difficulty).value is None


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.floats(0, 1)), min_size=1))
def test_ece_is_at_least_the_gap_of_rates(rows: list[tuple[bool, bool, float]]) -> None:
    sim, human, hard = ({str(i): float(r[c]) for i, r in enumerate(rows)} for c in range(3))
    gap = abs(sum(sim.values()) - sum(human.values())) / len(rows)
    assert stats.ece(sim, human, hard).value >= gap - 1e-9


def test_lexical_golden() -> None:
    tokens = list("abacabde")
    assert stats.mattr(tokens, 3) == pytest.approx(0.888889, abs=1e-6)
    assert stats.mattr(tokens) == pytest.approx(0.625)
    assert stats.hdd(tokens, 5) == pytest.approx(0.75)
    assert stats.yule_k(tokens) == pytest.approx(1250)
    assert stats.yule_k(list("aaaa")) == pytest.approx(7500)
    assert stats.distinct_n(tokens, 1) == pytest.approx(0.625)
    assert stats.distinct_n(tokens, 2) == pytest.approx(0.857143, abs=1e-6)
    assert (stats.mattr([]), stats.hdd([]), stats.yule_k([]), stats.distinct_n([], 2)) == (0,) * 4


def test_text_profile_counts_texts_and_words() -> None:
    found = stats.text_profile(["Hi there!", "no", "it's  3 o'clock"])
    assert (found.n, found.tokens, found.median_words) == (3, 8, 2)
    assert found.mean_words == pytest.approx(8 / 3)
    assert stats.text_profile([]).tokens == 0


def test_import_loads_no_numpy() -> None:
    code = "import sys, mimesim.stats, mimesim.results; print('numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
