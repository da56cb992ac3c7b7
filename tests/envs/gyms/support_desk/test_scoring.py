"""The desk's score as pure functions."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.envs.gyms.support_desk.scoring import (
    Call,
    Identity,
    agrees,
    allowed,
    canon,
    evidence,
    procedure,
    total,
)

names = st.lists(st.sampled_from("abcd"), max_size=6)


def calls(letters: list[str]) -> list[Call]:
    return [Call(letter, {}) for letter in letters]


def longest(first: list[str], second: list[str]) -> int:
    """The definition, tried out: the longest subsequence of `first` found in `second`."""

    def within(part: tuple[str, ...]) -> bool:
        rest = iter(second)
        return all(letter in rest for letter in part)

    return max(
        size for size in range(len(first) + 1) for part in combinations(first, size) if within(part)
    )


@given(names, names.filter(bool))
def test_procedure_is_the_longest_common_subsequence(done: list[str], gold: list[str]) -> None:
    assert procedure(calls(done), calls(gold)) == pytest.approx(longest(done, gold) / len(gold))


def test_a_call_agrees_when_every_gold_value_does() -> None:
    gold = Call("verify", {"name": "Ida Bram", "phone": "(415) 555-0142"})
    assert agrees(Call("verify", {"name": "IDA  bram", "phone": "415 555 0142", "x": "1"}), gold)
    assert not agrees(Call("verify", {"name": "ida bram"}), gold)
    assert not agrees(Call("verify", {"name": "ida bram", "phone": "415 555 0143"}), gold)
    assert not agrees(Call("check", dict(gold.arguments)), gold)


@pytest.mark.parametrize(
    ("verified", "left", "early", "asked_out", "right"),
    [
        (True, False, False, False, {"denied"}),
        (False, False, False, False, {"escalated"}),
        (False, False, False, True, {"escalated", "denied"}),
        (False, True, True, True, {"abandoned"}),
        (True, True, False, False, {"denied", "abandoned"}),
    ],
)
def test_allowed_resolutions(
    verified: bool, left: bool, early: bool, asked_out: bool, right: set[str]
) -> None:
    identity = Identity(verified, left, asked_out)
    assert allowed("denied", identity, left_unverified=early) == right


def test_the_three_parts_add_up_to_one() -> None:
    assert total(1, 1, 1) == pytest.approx(1)
    assert total(0.75, 0.75, 1) == pytest.approx(0.85)
    assert evidence(("a", "b", "c", "d"), {"a"}, {"b"}) == 0.5
    assert evidence(("a", "b"), {"z"}) == 0


@given(st.text(max_size=40))
def test_canon_is_idempotent(text: str) -> None:
    assert canon(canon(text)) == canon(text)
