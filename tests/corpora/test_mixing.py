"""Ratios of a mix: by taking away, in hash order."""

from __future__ import annotations

from array import array

import pytest

from mimesim.corpora import mixing
from mimesim.errors import ConfigError


@pytest.mark.parametrize(
    ("available", "shares", "taken"),
    [
        ([100, 50], [None, None], [100, 50]),
        ([100, 100], [1, 1], [100, 100]),
        ([100, 50], [1, 1], [50, 50]),
        ([100, 50], [0.8, 0.2], [100, 25]),
        ([100, 50], [80, 20], [100, 25]),
        ([100, 0], [1, 1], [0, 0]),
        ([30, 30, 30], [1, 2, 3], [10, 20, 30]),
    ],
)
def test_amounts(available: list[int], shares: list[float | None], taken: list[int]) -> None:
    assert mixing.amounts(available, shares) == taken


def test_all_or_none() -> None:
    mixing.check_shares([])
    mixing.check_shares([None, None])
    mixing.check_shares([1, 2])
    with pytest.raises(ConfigError, match="1 of 2 sources have no 'share'"):
        mixing.check_shares([1, None])


def test_the_first_in_order_stay() -> None:
    sources = array("H", [0, 1, 0, 1, 0])
    ones = array("q", [1] * 5)
    order = [4, 3, 2, 1, 0]
    assert mixing.thin_out(order, sources, ones, [2, 1]) == [4, 3, 2]
    assert mixing.thin_out(order, sources, ones, [0, 9]) == [3, 1]


def test_weights_are_words() -> None:
    sources, words = array("H", [0, 0, 0]), array("q", [5, 5, 5])
    assert mixing.thin_out([0, 1, 2], sources, words, [6]) == [0, 1]
