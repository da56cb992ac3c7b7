"""Means over panels, flipped signs and Holm's correction, against sums done by hand."""

from __future__ import annotations

import pytest

from mimesim.stats import Panel, holm, macro_mean_ci, panel_means, sign_flip

ONE = {"a": "a", "b": "b", "c": "c", "d": "d"}


def test_a_panel_is_the_mean_over_its_columns() -> None:
    panel = Panel([{"a": 1.0, "b": 0.0}, {"a": 1.0}, {}], ONE)
    assert panel.mean == 0.75
    assert Panel([{}], {}).mean is None


def test_weightings_share_the_panels() -> None:
    first, second = Panel([{"a": 1.0, "b": 0.0}], ONE), Panel([{"a": 1.0, "c": 1.0}], ONE)
    both, plain, alone, none = panel_means(
        [first, second], [[3, 1], [1, 1], [0, 1], [0, 0]], draws=500
    )
    assert (both.value, plain.value, alone.value) == (0.625, 0.75, 1.0)
    assert (alone.low, alone.high) == (1.0, 1.0)
    assert (none.value, none.low, none.n) == (None, None, 0)
    with pytest.raises(ValueError, match="argument 2"):
        panel_means([first], [[1, 1]])


def test_one_column_has_the_interval_of_a_plain_mean_over_groups() -> None:
    values = {key: float(i % 3 == 0) for i, key in enumerate("abcdefghijklmnopqrst")}
    own = {key: key for key in values}
    (found,) = panel_means([Panel([values], own)], [[2.0]])
    known = macro_mean_ci([(list(values.values()), list(values))])
    assert found.value == known.value
    assert found.low == pytest.approx(known.low, abs=0.051)
    assert found.high == pytest.approx(known.high, abs=0.051)


def test_columns_over_the_same_tasks_make_nothing_more_certain() -> None:
    values = {key: float(i % 2) for i, key in enumerate("abcdefghijkl")}
    own = {key: key for key in values}
    (single,) = panel_means([Panel([values], own)], [[1.0]])
    (nine,) = panel_means([Panel([values] * 9, own)], [[1.0]])
    assert (nine.low, nine.high) == (single.low, single.high)
    assert "9 columns" in nine.method


def test_one_cluster_gives_no_interval() -> None:
    (found,) = panel_means([Panel([{"a": 1.0, "b": 0.0}], {"a": "x", "b": "x"})], [[1.0]])
    assert (found.value, found.low) == (0.5, None)


def test_signs_are_flipped_by_cluster() -> None:
    """Four equal differences: of 16 sign patterns two are as extreme."""
    panel = Panel([{"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}], ONE)
    assert sign_flip([panel], [1.0]) == 2 / 16
    assert sign_flip([Panel([*panel.columns] * 9, ONE)], [1.0]) == 2 / 16
    assert sign_flip([Panel([{"a": 0.0, "b": 0.0}], ONE)], [1.0]) == 1.0
    assert sign_flip([Panel([{}], ONE)], [1.0]) is None
    many = {str(i): 1.0 for i in range(40)}
    assert sign_flip([Panel([many], {key: key for key in many})], [1.0]) == 1 / 10_001


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.06, None, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
