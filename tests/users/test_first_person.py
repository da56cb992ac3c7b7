"""What is told to a customer comes out of the customer's own mouth."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.users.first_person import first_person, wishes


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("get your money back", "get my money back"),
        ("find out where your order A-4037 is", "find out where my order A-4037 is"),
        ("tell them you are moving", "tell them i am moving"),
        ("tell them you're moving", "tell them i'm moving"),
        ("return the lamp you bought", "return the lamp i bought"),
        ("return the lamp that you do not like", "return the lamp that i do not like"),
        ("make them send you a new one", "make them send me a new one"),
        ("find a table for you and your wife", "find a table for me and my wife"),
        ("find out why they charged you twice", "find out why they charged me twice"),
        ("get back what was taken from you", "get back what was taken from me"),
        ("keep the room you've booked", "keep the room i've booked"),
        ("book it yourself", "book it myself"),
        ("swap the case for one like yours", "swap the case for one like mine"),
        ("find out: were you charged", "find out: was i charged"),
        ("Die Nummer ist falsch, deine Lampe", "Die Nummer ist falsch, deine Lampe"),
        ("see the youth hostel", "see the youth hostel"),
    ],
)
def test_forms(told: str, said: str) -> None:
    assert first_person(told) == said


def test_a_goal_of_several_requests_falls_apart() -> None:
    goal = "find out where is your order A-4037; speak to a manager"
    assert wishes(goal.replace("out", "out:")) == wishes(goal)
    assert wishes(goal) == ["find out where is my order A-4037", "speak to a manager"]
    assert wishes("You want to return a lamp.") == ["return a lamp"]
    assert wishes("You want your money back.") == ["get my money back"]


@given(
    st.lists(
        st.sampled_from(
            [
                "you",
                "your",
                "yours",
                "yourself",
                "are",
                "were",
                "send",
                "lamp",
                "the",
                ",",
                ".",
                ";",
                "paid",
            ]
        )
    )
)
def test_nobody_is_addressed_any_more(words: list[str]) -> None:
    assert not re.search(r"\byou(?:r|rs|rself)?\b", first_person(" ".join(words)).lower())
