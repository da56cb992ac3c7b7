"""Agreement and kappa against values computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.judges.agreement import Agreement, agreement, ordinal_agreement


def test_a_table_computed_by_hand() -> None:
    """20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: share .7, chance .5, kappa .4."""
    first = ["y"] * 25 + ["n"] * 25
    second = ["y"] * 20 + ["n"] * 5 + ["y"] * 10 + ["n"] * 15
    found = agreement(first, second)
    assert (found.n, found.excluded, found.share) == (50, 0, 0.7)
    assert found.kappa == pytest.approx(0.4)


def test_items_without_a_verdict_are_left_out_and_counted() -> None:
    found = agreement(["a", None, "b", "b"], ["a", "a", None, "a"])
    assert (found.n, found.excluded, found.share) == (2, 2, 0.5)
    assert agreement([None], ["a"]) == Agreement(0, 1, None, None)


def test_kappa_is_undefined_when_only_one_label_occurs() -> None:
    assert agreement(["a", "a"], ["a", "a"]) == Agreement(2, 0, 1.0, None)
    assert agreement(["a", "a"], ["b", "b"]).kappa == 0.0


def test_quadratic_weights_forgive_near_misses() -> None:
    grades, near, far = [1, 2, 3, 4, 5], [2, 2, 3, 4, 5], [5, 2, 3, 4, 5]
    assert ordinal_agreement(grades, near).share == ordinal_agreement(grades, far).share == 0.8
    near_kappa, far_kappa = (ordinal_agreement(grades, other).kappa for other in (near, far))
    assert near_kappa == pytest.approx(1 - 0.2 / 3.4)  # chance: 2 + 1.36 + 0.2 ** 2
    assert far_kappa is not None
    assert near_kappa is not None
    assert far_kappa < near_kappa


def test_lists_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="argument"):
        agreement(["a"], [])


LABELS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=2, max_size=30
)


@given(pairs=LABELS)
def test_kappa_is_symmetric_bounded_and_one_only_for_equal_lists(
    pairs: list[tuple[str, str]],
) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    found = agreement(first, second)
    assert found == agreement(second, first)
    if found.kappa is not None:
        assert -1 <= found.kappa <= 1
        assert (found.kappa == pytest.approx(1)) == (first == second)
