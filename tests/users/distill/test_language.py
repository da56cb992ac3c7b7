"""Rules of English words run on English alone."""

from __future__ import annotations

import sys

import pytest

from mimesim.corpora.base import HumanDialogue, HumanTurn
from mimesim.users.distill.contacts import pseudonymized
from mimesim.users.distill.language import is_english, language_of
from mimesim.users.distill.scenario import distill

GERMAN = (
    "Guten Tag, Meine Bestellung ist noch nicht angekommen.",
    "Guten Tag! Wie lautet Ihre Bestellnummer?",
    "Die Nummer Der Bestellung ist A-4037-B. Mein Name ist Mira Olten, Telefon 0170 2345678.",
)
FRENCH = (
    "Bonjour, Mon Colis est perdu depuis mardi, pouvez-vous me dire quoi faire ?",
    "Votre nom ?",
    "Je m'appelle Odile Varon",
)


def dialogue(*texts: str, language: str = "") -> HumanDialogue:
    turns = tuple(HumanTurn("agent" if i % 2 else "user", text) for i, text in enumerate(texts))
    return HumanDialogue("d", turns, language=language)


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("texts", [GERMAN, FRENCH])
def test_no_false_facts_in_other_languages(
    texts: tuple[str, ...], installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not installed:
        monkeypatch.setitem(sys.modules, "py3langid", None)
    found = distill(dialogue(*texts))
    assert found is not None
    assert {fact.key for fact in found.facts} <= {"number", "phone"}
    assert all(fact.asked is None for fact in found.facts)
    assert "your" not in found.goal
    assert "you" not in found.goal.split()


def test_the_goal_is_no_greeting() -> None:
    found = distill(dialogue("Guten Tag.", "Hallo!", "Mein Paket ist seit Dienstag verschwunden."))
    assert found is not None
    assert found.goal == "settle this: Mein Paket ist seit Dienstag verschwunden"


def test_the_goal_is_no_number_where_something_else_is_said() -> None:
    found = distill(dialogue("Die Nummer ist 0170 2345678. Das Paket ist nicht angekommen."))
    assert found is not None
    assert found.goal == "settle this: Das Paket ist nicht angekommen"


def test_contact_data_is_replaced_in_other_languages() -> None:
    made, counts = pseudonymized(dialogue(*GERMAN), seed=1, region="DE")
    joined = " ".join(turn.text for turn in made.turns)
    assert not any(part in joined for part in ("2345678", "0170", "Mira", "Olten"))
    assert "A-4037-B" in joined
    assert counts == {"phone": 1, "name": 1}


def test_languages() -> None:
    assert language_of(dialogue("I need help with my order please")) == "en"
    assert language_of(dialogue("anything", language="de-AT")) == "de"
    assert not is_english(language_of(dialogue(*GERMAN)))
    assert is_english(language_of(dialogue("lamp?")))


def test_the_style_names_the_language() -> None:
    english, german = (
        distill(dialogue("I need help with my order please")),
        distill(dialogue(*GERMAN, language="de")),
    )
    assert english is not None
    assert german is not None
    assert (english.style["language"], german.style["language"]) == ("en", "de")
