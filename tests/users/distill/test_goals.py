"""Goals: requests in the second person, never the whole opening in silence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.corpora.base import HumanTurn
from mimesim.users import guards
from mimesim.users.distill.goals import goal_of, quotes


def goal(*texts: str) -> str:
    turns = [HumanTurn("agent" if i % 2 else "user", text) for i, text in enumerate(texts)]
    found = goal_of(turns)
    return found.text if found else ""


@pytest.mark.parametrize(
    ("opening", "expected"),
    [
        ("Hi, I need to return my kettle please", "return your kettle"),
        ("I'm looking for a cheap place to stay, thanks!", "find a cheap place to stay"),
        ("Hello! Could you please help me change my address?", "change your address"),
        ("I would like a table for two", "get a table for two"),
        ("how do i reset the router?", "find out: how do you reset the router"),
        ("just wanted to check on the status of a refund", "check on the status of a refund"),
        ("My name is Mira and I need to RSVP to a party", "RSVP to a party"),
        ("what can you tell me about the Copper Inn?", "find out about the Copper Inn"),
        ("My parcel never came.", "settle this: your parcel never came"),
        ("bonjour, mon colis est perdu", "settle this: bonjour, mon colis est perdu"),
    ],
)
def test_requests(opening: str, expected: str) -> None:
    assert goal(opening) == expected


def test_later_requests_follow_and_confirmations_do_not() -> None:
    text = goal(
        "hello",
        "Hi!",
        "I need a train to Oak Hill",
        "There is one at noon. Shall I book it?",
        "Yes please book it. I also want to find a museum.",
        "Done.",
        "thank you, bye",
    )
    assert text == "get a train to Oak Hill; find a museum"


def test_courtesies_are_no_goal() -> None:
    assert goal("hello", "Hi!", "thanks, bye") == ""


def test_the_opening_is_not_quoted_whole_where_that_can_be_had() -> None:
    opening = "book a small room for my sister in the old house by the river"
    found = goal(f"please {opening}", "When?", "Friday")
    assert not quotes(f"please {opening}", found)


def test_the_places_of_the_requests_are_kept() -> None:
    found = goal_of([HumanTurn("user", "Hi there. I need a lamp. Cheers")])
    assert found is not None
    assert found.said == ((0, "I need a lamp."),)


@given(st.lists(st.text(min_size=1, max_size=120), min_size=1, max_size=4))
def test_any_talk_has_a_goal_of_bounded_length_or_none(texts: list[str]) -> None:
    turns = [HumanTurn("user", text) for text in texts if text.strip()]
    found = goal_of(turns)
    if found is not None:
        assert found.text.strip()
        assert len(guards.words(found.text)) < 250
        assert all(place.quote in turns[place.turn].text for place in found.said)
