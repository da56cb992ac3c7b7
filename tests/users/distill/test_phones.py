"""Phone numbers of any country, and numbers that are none."""

from __future__ import annotations

import pytest

from mimesim.corpora.base import HumanTurn
from mimesim.users.distill.phones import phones_in


def found(*texts: str, region: str = "US") -> list[str]:
    turns = [HumanTurn("agent" if i % 2 else "user", text) for i, text in enumerate(texts)]
    return [turns[place].text[start:end] for place, start, end in phones_in(turns, region)]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Die Nummer ist 0170 2345678", "0170 2345678"),
        ("meine Nummer: 030/2345678-0", "030/2345678"),
        ("rappelez-moi au 01 23 45 67 89", "01 23 45 67 89"),
        ("mi teléfono es 612 345 678.", "612 345 678"),
        ("reach me at 2345678", "2345678"),
        ("about my order, call me: 2345678", "2345678"),
        ("電話は 03-1234-5678 です", "03-1234-5678"),
    ],
)
def test_numbers_of_any_country(text: str, number: str) -> None:
    assert any(one.startswith(number) for one in found(text))


@pytest.mark.parametrize(
    "text",
    [
        "my order 2345678 is late",
        "Bestellnummer ist 23456789",
        "Meine Kundennummer lautet 4471 2345",
        "ma commande numéro 8812345",
        "it came on 2025-03-03, not 03.03.2025",
        "I paid $2345678",
        "the years 2019-2023",
        "1.000.000 times",
        "ticket #2345678",
        "PX2345678",
        "room 12 for 3 people",
    ],
)
def test_other_numbers(text: str) -> None:
    assert found(text) == []


def test_a_number_that_was_asked_for_or_is_labelled_elsewhere_stays() -> None:
    assert found("hi", "What is your order number?", "2345678", "So 2345678?") == []
    assert found("hallo", "Wie lautet Ihre Bestellnummer?", "2345678") == []
    assert found("2345678 is lost", "Order 2345678, yes.") == []
    assert found("hi", "What is your phone number?", "2345678") == ["2345678"]
    assert found("hi", "What is your name?", "Mira, 2345678") == ["2345678"]


def test_a_region_tells_shorter_numbers() -> None:
    pytest.importorskip("phonenumbers")
    assert found("ring 030 / 23 45 67", region="DE")
