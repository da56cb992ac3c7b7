"""The scrub of contact and account data, and what must stay as it is."""

from __future__ import annotations

from collections import Counter

import pytest

from mimesim import jsonio
from mimesim.corpora import rows
from mimesim.corpora.base import HumanDialogue, HumanTurn
from mimesim.corpora.cleaning import pii
from mimesim.corpora.formats import own
from mimesim.dialogue.types import Thought


@pytest.mark.parametrize(
    ("text", "clean", "count"),
    [
        ("mail jo.doe+x@mail.example.co.uk now", f"mail {pii.MAIL} now", "mails_masked"),
        ("call (212) 555-0143 today", f"call {pii.PHONE} today", "phones_masked"),
        ("call 212-555-0143", f"call {pii.PHONE}", "phones_masked"),
        ("my number is 2125550143", f"my number is {pii.PHONE}", "phones_masked"),
        ("ring +44 20 7946 0958 please", f"ring {pii.PHONE} please", "phones_masked"),
        ("card 4111 1111 1111 1111 ok", f"card {pii.CARD} ok", "cards_masked"),
        ("IBAN DE89 3704 0044 0532 0130 00.", f"IBAN {pii.IBAN}.", "ibans_masked"),
        ("ssn 123-45-6789", f"ssn {pii.SSN}", "ssns_masked"),
        ("from 8.8.8.8 then", f"from {pii.IPV4} then", "addresses_masked"),
        ("from 2001:4860:4860::8888", f"from {pii.IPV6}", "addresses_masked"),
    ],
)
def test_it_is_replaced_and_counted(text: str, clean: str, count: str) -> None:
    counts: Counter[str] = Counter()
    assert pii.scrub(text, counts) == clean
    assert counts == {count: 1}


@pytest.mark.parametrize(
    "text",
    [
        "order 471555 of 2024-01-15 at 10:30, 1,200,000 dollars",
        "from 2014-2016, then 1999",
        "card 4111 1111 1111 1112 has a wrong check digit",
        "IBAN DE89 37AB 0044 CD32 0130 01 has a wrong check sum",
        "the server is 192.168.0.1, the mask 255.255.255.0",
        "12345678-1234-1234-1234-123456789012",
        "pi is 3.1415926535",
        "meet @ ten, 5 people",
    ],
)
def test_other_numbers_stay(text: str) -> None:
    counts: Counter[str] = Counter()
    assert pii.scrub(text, counts) == text
    assert counts.total() == 0


@pytest.mark.parametrize("clean", [pii.MAIL, pii.PHONE, pii.CARD, pii.SSN, pii.IPV4, pii.IPV6])
def test_a_scrubbed_text_is_left_alone(clean: str) -> None:
    counts: Counter[str] = Counter()
    assert pii.scrub(f"it is {clean} now", counts) == f"it is {clean} now"
    assert counts.total() == 0


def test_a_local_number_needs_its_country() -> None:
    text = "ring 020 7946 0958 please"
    assert pii.scrub(text, Counter(), "GB") == f"ring {pii.PHONE} please"


def test_every_text_of_a_dialogue_is_scrubbed() -> None:
    mail = "jo@mail.example"
    dialogue = HumanDialogue(
        "d",
        (
            HumanTurn("user", mail, thought=Thought(mail)),
            HumanTurn("agent", mail, reaction=Thought(mail)),
        ),
        topic=mail,
        goal=mail,
        context=mail,
        earlier=mail,
        hidden={"record": {"mails": [mail]}},
        outcome={"note": mail},
        user_key=mail,
    )
    counts: Counter[str] = Counter()
    clean = pii.scrub_dialogue(dialogue, counts)
    assert mail not in jsonio.dumps(rows.to_row(clean, own.INFO))
    assert counts == {"mails_masked": 10, "dialogues_scrubbed": 1}
    assert clean.user_key
    assert pii.scrub_dialogue(dialogue, Counter()).user_key == clean.user_key
