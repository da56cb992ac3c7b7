"""What a person told, in whose words, and what brought it out."""

from __future__ import annotations

from mimesim.corpora.base import HumanTurn
from mimesim.users.distill.base import Fact
from mimesim.users.distill.facts import facts_in, unlocked


def talk(*texts: str, opens: str = "user") -> list[HumanTurn]:
    sides = ("user", "agent") if opens == "user" else ("agent", "user")
    return [HumanTurn(sides[i % 2], text) for i, text in enumerate(texts)]  # type: ignore[arg-type]


def by_key(*texts: str) -> dict[str, Fact]:
    return {fact.key: fact for fact in facts_in(talk(*texts)).facts}


def test_told_at_once_or_when_asked() -> None:
    facts = by_key(
        "I need a table for 4 people",
        "Gladly. What day would you like to come?",
        "Friday, please. At 14:30.",
        "And what name is it under?",
        "Sure, it's Mira Olten",
    )
    assert {key: fact.value for key, fact in facts.items()} == {
        "people": "4",
        "day": "Friday",
        "time": "14:30",
        "customer_name": "Mira Olten",
    }
    assert facts["people"].asked is None
    assert facts["time"].asked is None
    assert facts["day"].said == (2, "Friday, please.")
    assert facts["day"].asked == (1, "What day would you like to come?")
    assert facts["customer_name"].asked is not None


def test_what_was_said_before_was_not_held_back() -> None:
    facts = by_key("It was on Friday", "What day was it?", "Friday, as I said")
    assert facts["day"].asked is None
    assert len(facts) == 1


def test_a_vague_value_takes_the_key_of_the_question() -> None:
    facts = by_key("hello", "What is the name of the host?", "The host is Ada Quist")
    assert facts["host"].value == "Ada Quist"


def test_free_answers_keep_their_words_and_lose_their_frame() -> None:
    facts = by_key("hi", "What color is the lamp?", "um, it's dark green please")
    assert (facts["color"].value, facts["color"].said.quote) == (
        "dark green",
        "um, it's dark green please",
    )


def test_yes_no_and_no_preference() -> None:
    facts = by_key(
        "hi",
        "Do you have a membership?",
        "No I don't",
        "Did you keep the warranty card?",
        "yes",
        "Do you have a price range in mind?",
        "it does n't really matter",
    )
    values = {key: fact.value for key, fact in facts.items()}
    assert values["membership"] == "no"
    assert values["keep_warranty_card"] == "yes"
    assert values["price_range"] == "no preference"


def test_what_is_not_known_is_no_fact() -> None:
    heard = facts_in(talk("hi", "What is your tracking code?", "I don't know, sorry"))
    assert heard.facts == ()
    assert heard.unknown == {"tracking code": (2, "I don't know, sorry")}


def test_a_second_value_gets_a_number() -> None:
    facts = by_key("a room on Friday", "Done.", "and a train on Sunday", "Done.", "on Friday")
    assert {key: fact.value for key, fact in facts.items()} == {"day": "Friday", "day_2": "Sunday"}


def test_stories_and_questions_are_no_values() -> None:
    facts = by_key(
        "hi",
        "What is the reason for the return?",
        "well I bought it for my aunt and she had told me she wanted one but then she got one",
        "What color is it?",
        "why do you ask?",
    )
    assert facts == {}


def test_the_question_unlocks_what_it_brought_out() -> None:
    turns = talk(
        "hello",
        "At what time can you be here?",
        "2 pm",
        "Where are you departing from?",
        "oak hill",
        "How many tickets?",
        "two tickets",
    )
    asked = [fact for fact in facts_in(turns).facts if fact.asked]
    assert {fact.key for fact in asked} == {"time", "departure", "tickets"}
    assert all(unlocked(fact.key, fact.asked.quote) for fact in asked if fact.asked)
