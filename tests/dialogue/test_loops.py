"""Loops: courtesies and verbatim repetition end a conversation, ordinary talk does not."""

from __future__ import annotations

import pytest

from mimesim.dialogue.loops import is_courtesy, loop_detected
from mimesim.dialogue.types import PublicMessage, Role


def talk(*texts: str) -> list[PublicMessage]:
    """Alternate from the user."""
    roles = (Role.USER, Role.AGENT)
    return [PublicMessage(roles[i % 2], text) for i, text in enumerate(texts)]


@pytest.mark.parametrize(
    "text",
    ["thanks!", "You\u2019re welcome!", "thank you so much", "My pleasure, bye!", "bye, thanks",
     "Great, thanks again, have a nice day :)"],
)  # fmt: skip
def test_courtesies(text: str) -> None:
    assert is_courtesy(text)


@pytest.mark.parametrize(
    "text",
    ["thanks, and the invoice?", "ok", "welcome back to the flat", "thanks but no", "", "great"],
)
def test_what_is_more_than_a_courtesy(text: str) -> None:
    assert not is_courtesy(text)


def test_two_courtesy_pairs_are_a_loop() -> None:
    """C-STOP-06: a question among the thanks begins the count anew."""
    start = ("where is it", "It is on its way.")
    pair = ("thanks!", "You're welcome!")
    again = ("thank you so much", "My pleasure, bye!")
    assert not loop_detected(talk(*start, *pair))
    assert not loop_detected(talk(*start, *pair, again[0]))
    assert loop_detected(talk(*start, *pair, *again))
    asked = ("thanks, and the invoice?", "Sent.")
    assert not loop_detected(talk(*start, *pair, *asked, *again))


def test_verbatim_repetition_needs_both_sides() -> None:
    pair = ("and what else?", "Nothing else.")
    assert not loop_detected(talk(*pair * 3))
    assert loop_detected(talk(*pair * 3, "And what else?"))
    stubborn = [t for i in range(4) for t in ("refund now", f"I tried option {i}.")]
    assert not loop_detected(talk(*stubborn, "refund now"))


def test_messages_of_one_side_in_a_row_count_as_one() -> None:
    first, second = PublicMessage(Role.AGENT, "You're welcome!"), PublicMessage(Role.AGENT, "Bye!")
    said = talk("thanks!", "x", "bye, thanks")
    assert loop_detected([said[0], first, second, said[2], first, second])
    other = PublicMessage(Role.AGENT, "Your parcel is here.")
    assert not loop_detected([said[0], first, other, said[2], first, second])


def test_tools_are_looked_through() -> None:
    noise = PublicMessage(Role.TOOL, "r", owner=Role.AGENT)
    said = talk("thanks!", "You're welcome!", "bye", "Goodbye!")
    assert loop_detected([said[0], noise, *said[1:3], noise, said[3]])
