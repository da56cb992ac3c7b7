"""Questions of agents: a key each, and which facts they ask for."""

from __future__ import annotations

import pytest

from mimesim.users.briefing import asked_for
from mimesim.users.questions import questions_in


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("What day will you be staying ?", ["day"]),
        ("Sure. What day and time would you like to travel?", ["day", "time"]),
        ("How many people will it be for?", ["people"]),
        ("Which part of town do you prefer?", ["area"]),
        ("Do you have a price range in mind?", ["price_range"]),
        ("Could you provide me with the name of the host, please?", ["host"]),
        ("May I have your name, please?", ["customer_name"]),
        ("Please provide your order number and e-mail address.", ["order_id", "email"]),
        ("Where are you departing from?", ["departure"]),
        ("When are you planning to arrive at the party?", ["arrival_time"]),
        ("Please provide the name of the lock manufacturer.", ["lock_manufacturer"]),
    ],
)
def test_what_is_asked_for(text: str, keys: list[str]) -> None:
    found = questions_in(text)
    assert [question.key for question in found] == keys
    assert not any(question.polar for question in found)
    assert all(question.quote in text for question in found)


def test_a_yes_or_no_is_wanted() -> None:
    (question,) = questions_in("Hello. Do you have any dietary restrictions?")
    assert (question.key, question.polar) == ("dietary_restrictions", True)


@pytest.mark.parametrize(
    "text",
    [
        "Your table is booked.",
        "Is there anything else I can help you with?",
        "Would you like me to book it for you?",
        "Shall I send the details?",
        "Their phone number is 01223 576412. Anything else?",
        "The phone number is 01223576412, any further questions?",
        "",
    ],
)
def test_what_asks_for_no_fact(text: str) -> None:
    assert questions_in(text) == []


def test_another_wording_asks_for_the_same_fact() -> None:
    names = ["arrival_time", "host", "people", "day_2", "parking"]
    assert asked_for("So when will you get there?", names) == ("arrival_time",)
    assert asked_for("Who is the host?", names) == ("host",)
    assert asked_for("How large is your party?", names) == ("people",)
    assert asked_for("What day is it?", names) == ("day_2",)
    assert asked_for("Do you require parking at the venue?", names) == ("parking",)
    assert asked_for("Fine, one moment.", names) == ()
