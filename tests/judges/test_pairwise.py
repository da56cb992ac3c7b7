"""Balanced order: exact balance, golden order, and a biased judge that cannot shift a rate."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.judges.base import Failed, Verdict
from mimesim.judges.pairwise import Order, Pair, Preference, balanced_orders, compare, compare_both
from mimesim.judges.rubric import RubricJudge
from mimesim.models.scripted import Scripted

PAIR = Pair(subject="mine is long", reference="theirs", criterion="Which is longer?")


def longer(messages: object, sampling: object) -> str:
    """Prefer the text that says "long", wherever it stands."""
    text = messages[-1].content  # type: ignore[index]
    first = text.index("| mine is long") < text.index("| theirs")
    return f'{{"reason": "", "winner": "{"A" if first else "B"}"}}'


def test_golden_order() -> None:
    orders = balanced_orders([f"c{n}" for n in range(7)], benchmark="pt", seed=0)
    placed = {"c5": "AB", "c0": "BA", "c3": "AB", "c2": "BA", "c4": "AB", "c1": "BA", "c6": "AB"}
    assert {key: order.value for key, order in orders.items()} == placed


@given(
    ids=st.lists(st.text(max_size=5), unique=True, max_size=30),
    seed=st.integers(0, 99),
    sample=st.integers(0, 3),
)
def test_orders_are_balanced_and_do_not_depend_on_the_list(
    ids: list[str], seed: int, sample: int
) -> None:
    orders = balanced_orders(ids, benchmark="b", seed=seed, sample=sample)
    first = sum(order is Order.SUBJECT_FIRST for order in orders.values())
    assert first - (len(ids) - first) in (0, 1)
    assert orders == balanced_orders(ids[::-1], benchmark="b", seed=seed, sample=sample)


def test_other_samples_and_seeds_give_other_orders() -> None:
    ids = [str(n) for n in range(40)]
    plain = balanced_orders(ids, benchmark="b")
    assert plain != balanced_orders(ids, benchmark="b", sample=1)
    assert plain != balanced_orders(ids, benchmark="b", seed=1)
    with pytest.raises(ValueError, match="unique"):
        balanced_orders(["a", "a"], benchmark="b")


@pytest.mark.parametrize("order", list(Order))
def test_the_winner_is_told_as_subject_or_reference(order: Order) -> None:
    result = asyncio.run(compare(RubricJudge(Scripted(longer)), PAIR, order, seed=1))
    assert isinstance(result, Preference)
    assert (result.score, result.consistent) == (1.0, None)
    swapped = Pair(PAIR.reference, PAIR.subject, PAIR.criterion)
    result = asyncio.run(compare(RubricJudge(Scripted(longer)), swapped, order, seed=1))
    assert isinstance(result, Preference)
    assert result.score == 0.0


@pytest.mark.parametrize(
    ("replies", "score", "consistent"),
    [
        (["A", "B"], 1.0, True),
        (["B", "A"], 0.0, True),
        (["A", "A"], 0.5, False),
        (["tie", "TIE"], 0.5, True),
        (["tie", "B"], 0.75, False),
    ],
)
def test_both_orders_average_and_show_a_bias(
    replies: list[str], score: float, consistent: bool
) -> None:
    model = Scripted([f'{{"winner": "{reply}"}}' for reply in replies])
    result = asyncio.run(compare_both(RubricJudge(model), PAIR, seed=1))
    assert isinstance(result, Preference)
    assert (result.score, result.consistent) == (score, consistent)
    assert all(isinstance(one, Verdict) for one in result.results)
    assert result.usage.calls == 2


@pytest.mark.parametrize("replies", [["both"] * 3, ['{"winner": "A"}', *["both"] * 3]])
def test_one_order_without_a_verdict_leaves_none(replies: list[str]) -> None:
    result = asyncio.run(compare_both(RubricJudge(Scripted(replies)), PAIR, seed=1))
    assert isinstance(result, Failed)
