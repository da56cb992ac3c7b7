"""Phone numbers of any country in a conversation, told apart from numbers of orders and accounts.

Seven digits or more are a phone number unless something says otherwise: a label ("order", "Kunden…"),
the agent's question for such a number, or the form of a date, an amount or a span of years. A word
like "call" or "Telefon" right before settles it. With phonenumbers installed, what it finds counts, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from mimesim.corpora.base import HumanTurn
from mimesim.corpora.cleaning import pii
from mimesim.errors import MissingExtraError
from mimesim.users.distill.values import NOUNS
from mimesim.users.questions import questions_in

_DIGITS = re.compile(r"(?<![\w#.,$£€¥-])\+?\(?\d(?:[ ()./-]{0,3}\d){6,14}(?![\w-]|[.,]\d)")
_NO_PHONE = re.compile(
    r"(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./] ?\d{1,2}[-./] ?\d{2,4})(?!\d)"  # a date first
    r"|(?:19|20)\d\d ?[-/] ?(?:19|20)\d\d$|\d{1,3}(?:\.\d{3})+$"
)
_LABELS = (
    rf"(?:{NOUNS})|(?:(?:bestell|auftrag|kunden|rechnung|konto|kontrakt|vertrag|buchung|vorgang|referenz|sendung|artikel"
    r"|ticket|mitglied|liefer|paket|klant|factuur)\w*|commandes?|comptes?|factures?|r[ée]f[ée]rence|dossier|colis|pedido"
    r"|cuenta|factura|reserva|referencia|cliente|ordine|conto|fattura|prenotazione|encomenda|conta|bestelling|zamówieni\w*)"
)
_LABELLED = re.compile(rf"\b(?:{_LABELS})\b(?:[^\w.!?;\n]+[^\W\d]+){{0,2}}[^\w!?;\n]*$", re.IGNORECASE)  # fmt: skip
_PHONE_WORD = re.compile(
    r"\b(?:call|calls|text|reach|ring|dial|phone|cell|mobile|whatsapp|fax|tel|telefon\w*|handy\w*|mobil\w*|rufnummer|r[üu]ckruf"
    r"|t[ée]l[ée]phone|tel[ée]fono|m[óo]vil|cellulare|telefone|telem[óo]vel|celular|portable|telefoon\w*)\b[^.?!\n]{0,30}$",
    re.IGNORECASE,
)
_ASKS_ID = re.compile(rf"\b(?:{_LABELS})\b", re.IGNORECASE)
_PHONE_ASKED = re.compile(r"phone|mobile|cell|telefon|handy|rufnummer|tel[ée]", re.IGNORECASE)
_BEFORE = 80


def phones_in(turns: Sequence[HumanTurn], region: str) -> Iterator[tuple[int, int, int]]:
    """Yield turn, start and end of every phone number; one that is elsewhere an order's stays.

    Args:
        turns: of one conversation.
        region: ISO 3166-1 code of the country whose numbers are told without a country code.
    """
    places = [
        (place, start, end)
        for place, turn in enumerate(turns)
        for start, end in _spans(turn.text, region)
    ]
    kept = {
        _plain(turns[place].text[start:end])
        for place, start, end in places
        if _is_labelled(turns, place, start)
    }
    for place, start, end in places:
        if _plain(turns[place].text[start:end]) not in kept:
            yield place, start, end


def _spans(text: str, region: str) -> list[tuple[int, int]]:
    found = [m.span() for m in _DIGITS.finditer(text) if not _NO_PHONE.match(m.group())]
    with suppress(MissingExtraError):  # the form alone tells most
        found += pii.phones_told(text, region)
    return found


def _is_labelled(turns: Sequence[HumanTurn], place: int, start: int) -> bool:
    """Tell whether words before a number, or the question it answers, call it another number."""
    before = turns[place].text[max(0, start - _BEFORE) : start]
    if _PHONE_WORD.search(before):
        return False
    if _LABELLED.search(before):
        return True
    question = turns[place - 1] if place else None
    if question is None or question.role == turns[place].role or "?" not in question.text:
        return False
    if _PHONE_ASKED.search(question.text):
        return False
    asked = any(re.search(r"(?:_id|number|code)$", q.key) for q in questions_in(question.text))
    return asked or bool(_ASKS_ID.search(question.text))


def _plain(text: str) -> str:
    return re.sub(r"\D", "", text)
