"""Values that tell by their form what they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.users.distill.values import values_in


def told(text: str) -> dict[str, str]:
    return {found.key: found.value for found in values_in(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Order number is 55-1270", {"order_id": "55-1270"}),
        ("my account: AC-7781 is locked", {"account_id": "AC-7781"}),
        ("mail me at mira.o@example.org.", {"email": "mira.o@example.org"}),
        ("call (555) 214-7781", {"phone": "(555) 214-7781"}),
        ("it came on 3 March 2025", {"date": "3 March 2025"}),
        ("on 2025-03-03", {"date": "2025-03-03"}),
        ("a refund of $40.50", {"amount": "$40.50"}),
        ("next Friday please", {"day": "next Friday"}),
        ("I must arrive by 19:45", {"arrival_time": "19:45"}),
        ("I want to leave after 8 am", {"departure_time": "8 am"}),
        ("table for 6 at 14:30", {"people": "6", "time": "14:30"}),
        ("3 people and 4 nights", {"people": "3", "nights": "4"}),
        ("it is just me", {"people": "just me"}),
        ("a cheap hotel in the east", {"price_range": "cheap", "area": "east"}),
        ("some modern european food", {"food": "modern european"}),
        ("a train from oak hill to fen end on monday", {"departure": "oak hill", "destination": "fen end", "day": "monday"}),
        ("does n't matter as long as it has free wifi", {"wifi": "yes"}),
        ("I do not need parking", {"parking": "no"}),
        ("my name is Mira Olten", {"customer_name": "Mira Olten"}),
        ("a hotel called the copper bed and breakfast", {"name": "copper bed and breakfast"}),
        ("I'd like to see the Holy Well Garden", {"name": "Holy Well Garden"}),
        ("it says 3348917502", {"number": "3348917502"}),
    ],
)  # fmt: skip
def test_forms(text: str, expected: dict[str, str]) -> None:
    assert told(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Can You Help Me",
        "I want to go to bed",
        "do they have parking there",
        "that's all for today",
        "North Hill Road",
        "",
    ],
)
def test_words_that_are_no_values(text: str) -> None:
    assert not set(told(text)) - {"name"} or told(text) == {}


@given(st.text(max_size=200))
def test_any_text_is_read_and_values_stand_where_they_are_said_to(text: str) -> None:
    ends = 0
    for found in values_in(text):
        assert ends <= found.start <= found.end <= len(text)
        ends = found.end
        assert found.key
        assert found.value
