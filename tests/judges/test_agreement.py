"""Agreement and kappa against values computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.judges.agree import rated_rows
from mimesim.judges.agreement import (
    Agreement,
    agreement,
    compare,
    ordinal_agreement,
    slot_score,
)
from mimesim.seeds import generator
from mimesim.stats.correlations import spearman


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


def test_spearman_by_hand() -> None:
    assert spearman([(1, 2), (2, 4), (3, 9)]) == pytest.approx(1)
    assert spearman([(1, 3), (2, 2), (3, 1)]) == pytest.approx(-1)
    # ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5)
    assert spearman([(1, 1), (2, 2), (2, 3), (5, 4)]) == pytest.approx(0.9486832980505138)
    assert spearman([(1, 1), (1, 2)]) is None
    assert spearman([]) is None


def test_both_denominators_and_what_is_missing() -> None:
    found = compare([1.0, 0.9, None, 0.2, 0.0], [0.8, 0.1, 0.5, None, 0.1])
    assert (found.asked, found.n, found.missing) == (5, 3, (1, 1))
    assert found.share.value == pytest.approx(2 / 3)
    assert found.share_of_all.value == pytest.approx(2 / 5)
    assert found.share_of_all.n == 5
    assert found.means == (pytest.approx(1.9 / 3), pytest.approx(1 / 3))
    assert found.share.low is not None
    assert found.share.low < 2 / 3


def test_no_verdict_at_all_is_unknown_not_zero() -> None:
    found = compare([None, None], [0.5, None])
    assert (found.asked, found.n) == (2, 0)
    for one in (found.share, found.kappa, found.weighted, found.spearman):
        assert (one.value, one.low) == (None, None)
    assert found.share_of_all.value == 0
    assert found.means == (None, None)


def test_scores_out_of_range_are_a_bug_of_the_caller() -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        compare([1.5], [0.5])


def test_intervals_hold_the_value_and_repeat() -> None:
    rng = generator(3, "t")
    first = [rng.random() for _ in range(60)]
    second = [min(1.0, max(0.0, x + rng.uniform(-0.3, 0.3))) for x in first]
    found, again = compare(first, second, seed=1), compare(first, second, seed=1)
    assert found == again
    for one in (found.kappa, found.weighted, found.spearman):
        assert one.value is not None
        assert one.low is not None
        assert one.high is not None
        assert one.low < one.value < one.high


def test_labels_of_slots() -> None:
    assert [slot_score(label, "B") for label in ("A", "B", "Tie", "tie")] == [0, 1, 0.5, 0.5]
    with pytest.raises(ValueError, match="'C'"):
        slot_score("C", "A")


def test_published_correlations_of_judge_and_people(test_data: Path) -> None:
    rows = rated_rows(test_data / "mirrorbench" / "judge_vs_human.jsonl")
    found = {row.measure: row.comparison for row in rows}
    for metric, value in {"gteval": 0.6969429335, "pi_pairwise": 0.6078102069}.items():
        assert found[metric].n == 100
        assert found[metric].spearman.value == pytest.approx(value, abs=1e-9)
    assert found["gteval"].means == (pytest.approx(0.5345), pytest.approx(0.578))
    assert found["pi_pairwise"].means == (pytest.approx(0.515), pytest.approx(0.628333, abs=1e-6))
