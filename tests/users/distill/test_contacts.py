"""Contact data leaves no trace, and what belonged together still does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.corpora.base import HumanDialogue, HumanTurn
from mimesim.users.distill.contacts import pseudonymized


def dialogue(*texts: str, name: str = "d1") -> HumanDialogue:
    turns = tuple(HumanTurn("agent" if i % 2 else "user", text) for i, text in enumerate(texts))
    return HumanDialogue(name, turns, outcome={"note": texts[0]})


def texts(found: HumanDialogue) -> list[str]:
    return [turn.text for turn in found.turns]


SECRETS = [
    "wilma.kade@post.example.org",
    "(312) 867-4402",
    "+44 20 7946 1234",
    "4111 1111 1111 1111",
    "417-22-9981",
    "48 Larch Hollow Road",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_contact_data_is_replaced_everywhere_alike(secret: str) -> None:
    whole = dialogue(f"it is {secret} ok", f"You said {secret.upper()}?", f"yes, {secret}.")
    made, counts = pseudonymized(whole, seed=1)
    assert sum(counts.values()) == 1
    assert secret.lower() not in repr(made).lower()
    first, second, third = texts(made)
    stand_in = first.removeprefix("it is ").removesuffix(" ok")
    assert second == f"You said {stand_in}?"
    assert third == f"yes, {stand_in}."


def test_names_that_are_given_and_asked_for() -> None:
    made, _ = pseudonymized(
        dialogue("my name is Wilma Kade", "Thanks, Wilma! Your user name?", "wkade77", "Ok Wilma."),
        seed=1,
    )
    joined = " ".join(texts(made))
    assert not any(word in joined for word in ("Wilma", "Kade", "wkade77"))
    first = texts(made)[0].removeprefix("my name is ").split()[0]
    assert texts(made)[3] == f"Ok {first}."


def test_a_name_that_is_a_word_leaves_the_word_alone() -> None:
    made, _ = pseudonymized(
        dialogue("hi", "May I have your name?", "Will", "Thanks, Will.", "it will rain"), seed=1
    )
    assert "Will" not in " ".join(texts(made))
    assert texts(made)[4] == "it will rain"


def test_numbers_of_orders_stay_and_unlabelled_long_numbers_do_not() -> None:
    made, _ = pseudonymized(
        dialogue("order number 3348917502", "And?", "it says 5598210034 here"), seed=1
    )
    assert "3348917502" in texts(made)[0]
    assert "5598210034" not in texts(made)[2]


def test_an_address_in_free_form_that_was_asked_for() -> None:
    made, _ = pseudonymized(
        dialogue("hi", "What is your full address?", "The Old Mill, Tarn"), seed=1
    )
    assert "Tarn" not in texts(made)[2]


def test_every_conversation_and_every_seed_has_its_own() -> None:
    one = dialogue("mail x.kade@post.example.org")
    other = dialogue("mail x.kade@post.example.org", name="d2")
    made = {texts(pseudonymized(d, seed=s)[0])[0] for d, s in ((one, 1), (one, 2), (other, 1))}
    assert len(made) == 3
    assert pseudonymized(one, seed=1) == pseudonymized(one, seed=1)


def test_ids_and_outcomes_too() -> None:
    mail = "x.kade@post.example.org"
    made, _ = pseudonymized(dialogue(f"I am {mail}", name=f"chat {mail}"), seed=1)
    assert mail not in made.id + str(made.outcome)


@given(st.from_regex(r"[a-z]{2,8}\.[a-z]{2,8}@[a-z]{3,8}\.(com|org)", fullmatch=True), st.text())
def test_no_address_survives(mail: str, around: str) -> None:
    made, _ = pseudonymized(dialogue(f"{around} {mail} {around}"), seed=0)
    assert mail not in texts(made)[0]
