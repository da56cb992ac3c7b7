"""Correlations, tests on counts, and the bootstrap of any statistic, against values by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimesim.stats import mean_ci
from mimesim.stats.correlations import kendall, pearson, sample_deviation, spearman
from mimesim.stats.proportions import binomial_p, f1, mcnemar, two_proportions
from mimesim.stats.recomputed import statistic_ci

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12)


def test_correlations_by_hand() -> None:
    pairs = [(1.0, 1.0), (2.0, 2.0), (2.0, 3.0), (5.0, 4.0)]
    assert kendall(pairs) == pytest.approx(5 / math.sqrt(5 * 6))
    assert pearson([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) == pytest.approx(1)
    assert sample_deviation([1, 2, 3]) == 1
    for measure in (spearman, pearson, kendall):
        assert measure([]) is None
        assert measure([(1.0, 2.0)]) is None
        assert measure([(1.0, 2.0), (1.0, 3.0)]) is None, "one side does not vary"


@settings(max_examples=50)
@given(PAIRS)
def test_correlations_turn_with_one_side(pairs: list[tuple[int, int]]) -> None:
    turned = [(a, -b) for a, b in pairs]
    for measure in (spearman, pearson, kendall):
        one, other = measure(pairs), measure(turned)
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert -1 - 1e-9 <= one <= 1 + 1e-9
            assert one == pytest.approx(-other)


def test_tests_on_counts() -> None:
    assert binomial_p(0, 0) == 1
    assert binomial_p(1, 4) == pytest.approx(2 * 5 / 16)
    assert mcnemar(3, 10) == mcnemar(10, 3)
    assert two_proportions(5, 5, 7, 7) is None
    assert f1(0, 0, 0) == 0
    with pytest.raises(ValueError, match="k must lie"):
        binomial_p(3, 2)


def test_a_recomputed_mean_is_the_bootstrap_of_the_mean() -> None:
    values, clusters = [0.0, 1.0, 1.0, 0.0, 1.0, 0.5], ["a", "a", "b", "c", "c", "d"]
    found = statistic_ci(values, clusters, lambda v: sum(v) / len(v), seed=3, draws=500)
    plain = mean_ci(values, clusters, seed=3, draws=500)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
    assert statistic_ci(values, ["a"] * 6, lambda v: sum(v), seed=0, draws=10).low is None
    assert statistic_ci(values, clusters, lambda v: None, seed=0, draws=10).value is None
