"""Derived seeds: stable values, identity of the stream only, no global state."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from mimesim import jsonio
from mimesim.seeds import derive, fingerprint, from_state, generator, plain, state_of

NAMES = st.lists(st.one_of(st.text(max_size=8), st.integers()), max_size=4)


def test_values_are_fixed_for_ever() -> None:
    """A change here changes every stored run."""
    assert derive(7, "episode", "toy-001", 0) == 4993521369816834233
    assert fingerprint("mimesim") == "c36f8a727da3ce43"


@given(st.integers(), NAMES)
def test_seeds_fit_a_signed_field_and_repeat(root: int, names: list[str | int]) -> None:
    seed = derive(root, *names)
    assert 0 <= seed < 2**63
    assert seed == derive(root, *names)


@given(st.integers(0, 99), NAMES, NAMES)
def test_other_names_are_other_streams(
    root: int, one: list[str | int], two: list[str | int]
) -> None:
    same = [(type(n), n) for n in one] == [(type(n), n) for n in two]
    assert (derive(root, *one) == derive(root, *two)) == same


def test_a_plain_stream_is_that_of_the_standard_library() -> None:
    assert plain(3).random() == 0.23796462709189137


def test_a_number_is_not_its_text() -> None:
    assert derive(1, 2) != derive(1, "2")
    assert derive(1, "a", "b") != derive(1, "ab")


def test_generators_leave_the_global_one_alone() -> None:
    state = random.getstate()
    assert generator(1, "x").random() == generator(1, "x").random()
    assert random.getstate() == state


def test_lone_surrogates_are_names_too() -> None:
    assert derive(1, "\ud83d") != derive(1, "\ud83e")


def test_a_generator_goes_on_from_its_state() -> None:
    rng = generator(1, "x")
    rng.gauss(0, 1)
    twin = from_state(jsonio.loads(jsonio.dumps(state_of(rng))))
    assert [rng.gauss(0, 1) for _ in range(5)] == [twin.gauss(0, 1) for _ in range(5)]
    assert [rng.random() for _ in range(5)] == [twin.random() for _ in range(5)]
