"""The token record: what it accepts, what it becomes, and the invariants it refuses to break."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.errors import CallerError
from mimesim.rollout.tokens import TokenRecord, TokenRollout, TurnSpan


def record() -> TokenRecord:
    made = TokenRecord(prompt_ids=(1, 2, 3, 4), header=2)
    made.add_reply([10, 11, 9], [-1.0, -2.0, -0.5])
    made.add_context([5, 6, 7, 8], header=2)
    made.add_reply([12, 9], [-0.25, -0.75])
    return made


def test_a_record_of_two_replies() -> None:
    rollout = record().finish()
    assert rollout.prompt_ids == (1, 2, 3, 4)
    assert rollout.completion_ids == (10, 11, 9, 5, 6, 7, 8, 12, 9)
    assert rollout.env_mask == (1, 1, 1, 0, 0, 0, 0, 1, 1)
    assert rollout.logprobs == (-1.0, -2.0, -0.5, 0.0, 0.0, 0.0, 0.0, -0.25, -0.75)
    assert rollout.spans == (TurnSpan(0, 3, 2), TurnSpan(7, 9, 2))
    assert rollout.turn_tokens() == [3, 2]


def test_a_record_is_cut_after_the_policys_last_token() -> None:
    made = record()
    made.add_context([5, 6, 7], header=2)
    assert made.finish() == record().finish()
    assert made.replies == 2


def test_the_header_is_that_of_the_context_before_the_reply() -> None:
    made = TokenRecord((1, 2, 3), header=3)
    made.add_reply([9], [-1.0])
    made.add_context([5, 6], header=1)
    made.add_reply([9], [-1.0])
    assert [s.header for s in made.finish().spans] == [3, 1]


def test_a_given_assistant_turn_is_not_trained_on() -> None:
    """C-RL-06: only sampled tokens train, not an assistant turn that the prompt held."""
    made = TokenRecord((1, 20, 21, 22, 2), header=1)  # 20..22: an assistant turn of the history
    made.add_reply([10, 9], [-1.0, -1.0])
    rollout = made.finish()
    assert sum(rollout.env_mask) == 2
    assert rollout.prompt_ids == (1, 20, 21, 22, 2)


def test_unknown_log_probs_are_not_zero() -> None:
    made = TokenRecord((1,), header=1)
    made.add_reply([9, 9], None)
    assert all(value != value for value in made.finish().logprobs)


def test_nothing_sampled_is_no_record() -> None:
    made = TokenRecord((1, 2), header=1)
    with pytest.raises(CallerError, match="at least one reply"):
        made.finish()
    with pytest.raises(CallerError, match="at least one token"):
        made.add_reply([], [])


@pytest.mark.parametrize(
    "broken",
    [
        {"env_mask": (1, 1, 1, 0, 0, 0, 0, 1)},
        {"logprobs": (0.0,)},
        {"env_mask": (1, 1, 1, 1, 0, 0, 0, 1, 1)},  # a user token would be trained on
        {"env_mask": (1, 1, 1, 0, 0, 0, 0, 1, 0)},
        {"spans": ()},
        {"spans": (TurnSpan(0, 3, 2),)},
        {"spans": (TurnSpan(0, 3, 2), TurnSpan(7, 8, 2))},
    ],
    ids=["short mask", "short log-probs", "extra 1", "missing 1", "no span", "early end", "cut"],
)
def test_broken_invariants_are_refused(broken: dict[str, object]) -> None:
    with pytest.raises(CallerError):
        replace(record().finish(), **broken)


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 99), min_size=1, max_size=5), st.integers(0, 4)),
        min_size=1,
        max_size=6,
    )
)
def test_any_conversation_makes_a_sound_record(turns: list[tuple[list[int], int]]) -> None:
    made = TokenRecord((1, 2), header=1)
    for ids, context in turns:
        made.add_reply(ids, [-1.0] * len(ids))
        made.add_context([7] * context, header=1)
    rollout: TokenRollout = made.finish()
    assert rollout.turn_tokens() == [len(ids) for ids, _ in turns]
    assert [t for s in rollout.spans for t in rollout.completion_ids[s.start : s.end]] == [
        t for ids, _ in turns for t in ids
    ]
    assert sum(rollout.env_mask) == sum(len(ids) for ids, _ in turns)
    assert rollout.env_mask[-1] == 1
