"""Group-aware splits: nothing that belongs together parts, and shares are filled in hash order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mimesim import seeds
from mimesim.corpora.splits import PARTS, Components, Dealt, Member, Shares, deal


def dealt(
    size: int,
    pairs: list[tuple[int, int]],
    pins: dict[int, str] | None = None,
    shares: Shares = Shares(0.1, 0.1),  # noqa: B008 - a frozen value
) -> Dealt:
    components = Components(size)
    for pair in pairs:
        components.join(*pair)
    members = [
        Member(0, seeds.derive(0, "order", f"d{n}"), (pins or {}).get(n, "")) for n in range(size)
    ]
    return deal(members, components, size, shares)


def parts(found: Dealt) -> list[str]:
    return [PARTS[part] for part in found.parts]


def test_shares_are_met_exactly_without_groups() -> None:
    found = Counter(parts(dealt(200, [])))
    assert found == {"train": 160, "validation": 20, "test": 20}


def test_a_component_too_large_for_a_share_goes_to_training() -> None:
    chain = [(n, n + 1) for n in range(59)]
    found = dealt(100, chain)
    assert set(parts(found)[:60]) == {"train"}
    assert Counter(parts(found)) == {"train": 80, "validation": 10, "test": 10}
    assert found.counts[0]["largest_component"] == 60
    assert found.counts[0]["components"] == 41


def test_what_a_source_fixes_stays_and_counts_for_the_shares() -> None:
    pins = dict.fromkeys(range(10), "test") | {10: "train", 11: "validation"}
    found = dealt(100, [(20, 0), (21, 10), (22, 11)], pins)
    told = parts(found)
    assert told[:10] == ["test"] * 10
    assert (told[10], told[11]) == ("train", "validation")
    assert (told[20], told[21], told[22]) == ("test", "train", "validation"), "free ones follow"
    assert Counter(told)["test"] == 11, "nothing more was dealt to a full part"
    assert Counter(told)["validation"] == 10
    assert found.counts[0]["fixed_by_source"] == 12


def test_a_source_that_parts_its_own_groups_is_counted() -> None:
    found = dealt(10, [(0, 1), (1, 2)], {0: "train", 1: "test"})
    assert parts(found)[:3] == ["train", "test", "test"], "the free one follows the stricter"
    assert found.counts[0]["parted_by_source"] == 1


def test_no_shares_mean_training_only() -> None:
    assert set(parts(dealt(50, [], shares=Shares(0, 0)))) == {"train"}


def test_every_corpus_fills_its_own_shares() -> None:
    members = [Member(n % 2, seeds.derive(0, "order", str(n)), "") for n in range(200)]
    found = deal(members, Components(200), 200, Shares(0.1, 0.2))
    for corpus in (0, 1):
        assert found.counts[corpus]["test"] == 20
        assert found.counts[corpus]["validation"] == 10


@given(
    st.integers(2, 60),
    st.lists(st.tuples(st.integers(0, 59), st.integers(0, 59)), max_size=60),
    st.randoms(use_true_random=False),
)
def test_no_component_parts(size: int, raw: list[tuple[int, int]], rng: object) -> None:
    pairs = [(a % size, b % size) for a, b in raw]
    found = dealt(size, pairs)
    for one, other in pairs:
        assert found.parts[one] == found.parts[other]
        assert found.keys[one] == found.keys[other]
    rng.shuffle(pairs)  # type: ignore[attr-defined]
    assert dealt(size, [(b, a) for a, b in pairs]).parts == found.parts
    counts = Counter(parts(found))
    assert counts["test"] <= round(0.1 * size)
    assert counts["validation"] <= round(0.1 * size)
