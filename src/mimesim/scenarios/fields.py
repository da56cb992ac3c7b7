"""Fields of a customer record: their names, their values, and how agents ask for them.

The phrase table is the one place that knows usual wordings. It recognises a request for a field
in an agent's message; it never invents one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import Any

FIELD_NAMES: dict[str, str] = {
    "customer_name": "full name",
    "username": "username",
    "email": "e-mail address",
    "phone": "phone number",
    "order_id": "order number",
    "account_id": "account number",
    "zip_code": "zip code",
    "full_address": "full address",
    "member_level": "membership level",
    "payment_method": "payment method",
    "packaging": "original packaging",
    "purchase_date": "purchase date",
    "refund_target": "refund target",
    "new_address": "new address",
    "new_phone": "new phone number",
    "extra_item": "article to add",
    "city": "city",
    "num_products": "number of articles",
    "product_names": "articles",
    "shipping_status": "shipping status",
    "days": "number of days",
    "receipt": "receipt",
    "fee": "amount of the charge",
    "amount": "order total",
    "pin_number": "PIN",
    "security_answer": "security answer",
    "street_address": "street and house number",
    "return_method": "way of sending it back",
    "new_payment_method": "new payment method",
    "new_name": "new name",
    "disputed_amount": "disputed sum",
    "info_source": "source of the news",
}

_ID = r"(?:id|ids|number|numbers|num|no\.?|#|code)"
_PHRASES: dict[str, str] = {
    "customer_name": r"(?:full|first|last|your|customer(?:'s)?|account holder(?:'s)?) name"
    r"|name (?:and|on (?:the|your) (?:account|order)|under which)|names?, |who am i (?:speaking|chatting)",
    "username": r"user ?name|user id|login name",
    "email": r"e-?mail(?! (?:you|it|them|a|the link)\b)(?: address)?",
    "phone": r"(?<!new )(?:phone|telephone|mobile|cell)(?: number)?",
    "order_id": rf"order(?:'s)? {_ID}|{_ID} of (?:the|your) order|which order",
    "account_id": rf"account(?:'s)? {_ID}|{_ID} of (?:the|your) account",
    "zip_code": r"zip(?: ?code)?|postal code|post ?code",
    "full_address": r"(?<!new )(?<!mail )(?:full|complete|shipping|delivery|street|home|postal|current)"
    r"(?: \w+)? address|what is (?:the|your) address",
    "member_level": r"member(?:ship)?(?:'s)? (?:level|status|tier)|level of (?:your )?membership"
    r"|which (?:level|tier)",
    "payment_method": r"(?<!new )payment method|method of payment|how (?:did you|you|was it) pa(?:y|id)"
    r"|card (?:you )?used|what did you pay with",
    "packaging": r"packag(?:e|ing)|original box",
    "purchase_date": r"(?:purchase|order) date|date of (?:the |your )?(?:purchase|order)"
    r"|when (?:did you|was it) (?:buy|bought|order|ordered|purchase|purchased)",
    "refund_target": r"refund (?:target|method|to)|(?:where|how|which way) (?:should|shall|would|do|can)"
    r"[^.?!]{0,200}(?:refund|money|pay)|(?:money|refund|paid|sum|amount)[^.?!]{0,200}(?:go to|sent to|paid to|prefer)",
    "new_address": r"new (?:\w+ )?address|address (?:should|do you want)|where should (?:it|the order|we) (?:go|send)",
    "new_phone": r"new (?:phone|telephone|mobile|cell|number)",
    "extra_item": r"(?:which|what) (?:article|item|product)|(?:article|item|product) (?:to add|you want|should)",
    "shipping_status": r"shipping status|status of the (?:order|parcel)",
    "days": r"how many days|how long (?:has|have|is)|number of days",
    "receipt": r"receipt",
    "pin_number": r"pin(?: ?(?:number|code))?",
    "security_answer": r"security (?:answer|question)|mother'?s maiden name",
    "fee": r"(?:amount|sum) of the (?:fee|charge)|how (?:much|high) (?:is|was) the (?:fee|charge)",
}
_PATTERNS = {
    name: re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.I) for name, pattern in _PHRASES.items()
}

PHRASED = frozenset(_PHRASES)
"""Fields that an agent has words for."""

_QUESTION = re.compile(
    r"\?|\b(?:please (?:\w+ ){0,2}(?:tell|give|share|provide|send|confirm|state|name|let)"
    r"|(?:tell|give) me|i (?:will |also |still )*need|we (?:will |also |still )*need"
    r"|could i have|may i have|can i (?:have|get)|let me have)\b",
    re.I,
)
_CURLY = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"}
)


def field_name(field: str) -> str:
    """Return the everyday name of a field."""
    return FIELD_NAMES.get(field, field.replace("_", " "))


@lru_cache(maxsize=16)
def fold(text: str) -> str:
    """Return `text` with curly quotes and dashes made plain, lower case, blanks collapsed."""
    return " ".join(text.translate(_CURLY).casefold().split())


def asked_fields(text: str) -> tuple[str, ...]:
    """Return the fields that an agent's message asks for, in the order of their mention.

    A message that asks nothing (no question mark, no request) asks for no field.
    """
    folded = fold(text)
    if not _QUESTION.search(folded):
        return ()
    hits = []
    for name, pattern in _PATTERNS.items():
        found = pattern.search(folded)
        if found:
            hits.append((found.start(), name))
    return tuple(name for _, name in sorted(hits))


def says(text: str, value: str) -> bool:
    """Tell whether `text` holds `value` on token boundaries, whatever case and quotes.

    Numbers with blanks, dashes or brackets inside count in any such spelling.
    """
    wanted = fold(str(value))
    if not wanted:
        return False
    folded = fold(text)
    if _bounded(wanted, folded):
        return True
    digits = _BETWEEN_DIGITS.sub("", wanted)
    if not digits.isdigit() or len(digits) < 4 or digits not in _BETWEEN_DIGITS.sub("", folded):
        return False
    spaced = r"[\s().-]{0,2}".join(digits)
    return re.search(rf"(?<![\w]){spaced}(?!\w)", folded) is not None


_BETWEEN_DIGITS = re.compile(r"[\s().-]")


def _bounded(needle: str, text: str) -> bool:
    """Tell whether `needle` stands in `text` and no word goes on at either of its ends."""
    place = text.find(needle)
    while place >= 0:
        end = place + len(needle)
        before = needle[0].isalnum() and place > 0 and _in_word(text[place - 1])
        after = needle[-1].isalnum() and end < len(text) and _in_word(text[end])
        if not before and not after:
            return True
        place = text.find(needle, place + 1)
    return False


def _in_word(char: str) -> bool:
    return char.isalnum() or char == "_"


_NEAR: dict[str, str] = {
    "packaging": r"packag\w*|box",
    "num_products": r"articles?|items?|things?|pieces?|products?",
    "receipt": r"receipts?",
    "days": r"days?",
}
_POLAR = {
    "yes": r"yes|yep|yeah|still (?:have|there|got)|have (?:it|the)|got (?:it|the)|kept|keep",
    "no": r"no|nope|not|n't|\w+nt (?:have|got|keep|find|there)|without|gone|threw|lost|missing|never",
}
_COUNTS = {"1": "1|one|single", "2": "2|two|both|pair", "3": "3|three"}


def says_field(text: str, field: str, value: Any) -> bool:
    """Tell whether `text` states `value` for `field`.

    Yes, no and small counts mean nothing alone: a word of the field must stand in the sentence.
    Dates count in the usual spellings, with or without the year.
    """
    wanted = fold(str(value))
    if field == "purchase_date":
        return any(says(text, form) for form in date_forms(wanted))
    if field not in _NEAR:
        return says(text, wanted)
    return any(_states(s, field, wanted) for s in re.split(r"[.!?;\n]+", fold(text)))


def _states(sentence: str, field: str, wanted: str) -> bool:
    if field == "num_products" and wanted in _COUNTS:
        return _counts(_COUNTS[wanted], _NEAR[field]).search(sentence) is not None
    if not re.search(rf"\b(?:{_NEAR[field]})\b", sentence):
        return False
    alternatives = _POLAR.get(wanted) or re.escape(wanted)
    if not _word_pattern(alternatives).search(sentence):
        return False
    return wanted != "yes" or not _word_pattern(_POLAR["no"]).search(sentence)


@lru_cache(maxsize=8)
def _counts(number: str, things: str) -> re.Pattern[str]:
    """Return what says how many things there are; two days are no two things."""
    before = rf"(?:{number})(?: \w+)? (?:{things})"
    after = rf"ordered (?:just |only )?(?:{number})(?! \w*(?:days?|weeks?|months?|hours?)\b)"
    return re.compile(rf"(?<!\w)(?:{before}|{after})(?!\w)")


def date_forms(iso: str) -> tuple[str, ...]:
    """Return the usual spellings of an ISO date; just itself when it is none."""
    try:
        day = date.fromisoformat(iso)
    except ValueError:
        return (iso,)
    months = (day.strftime("%B").lower(), day.strftime("%b").lower())
    plain = [f"{m} {day.day}" for m in months] + [f"{day.day} {m}" for m in months]
    nth = {1: "st", 2: "nd", 3: "rd"}.get(0 if 10 < day.day < 14 else day.day % 10, "th")
    ordinal = [f"{m} {day.day}{nth}" for m in months]
    ordinal += [f"{day.day}{nth} {of}{m}" for m in months for of in ("", "of ")]
    return (iso, *plain, *ordinal, f"{day.month}/{day.day}")


def _word_pattern(alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"(?:(?<!\w)|(?=n't))(?:{alternatives})(?!\w)")


def value_text(record: Mapping[str, Any], field: str) -> str:
    """Return the value of a field as words."""
    value = record[field]
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
