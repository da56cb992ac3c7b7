"""Values that tell by their own form what they are: numbers of orders, dates, times, amounts, places.

Every find has a key, a value and the place where it stands. Words are English; e-mail addresses,
numbers, dates and times are read in any language.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from mimesim.corpora.cleaning.pii import MAIL_FORM, PHONE_FORM
from mimesim.users.words import any_of, listed

PHONE = rf"(?:{PHONE_FORM}|(?<![\w-])0\d{{9,10}}(?![\w-]))"
SELF = r"\bmy (?:full |first )?name(?: is| 's|'s|:)\s+(?P<value>[^\W\d_][\w'-]*(?-i:(?: [A-Z][\w'-]+){0,2}))"
NOUNS = (
    r"order|account|reference|ref|booking|invoice|ticket|confirmation|policy|tracking|case|customer"
    r"|member(?:ship)?|serial|reservation|flight|room|employee|contract|claim|model|part|item|product|pin|id"
)
_AMOUNT = (
    r"[$£€¥]\s?\d[\d,]*(?:\.\d{1,2})?|\b\d[\d,]*(?:\.\d{1,2})?\s?"
    r"(?:dollars?|bucks|pounds?|euros?|gbp|usd|eur|quid|cents?)\b"
)
_TIME = (
    r"\b(?:[01]?\d|2[0-3]):[0-5]\d(?:\s?[ap]\.?m\b\.?)?|\b(?:1[0-2]|0?[1-9])(?:\.[0-5]\d)?\s?[ap]\.?m\b\.?"
    r"|\bnoon\b|\bmidnight\b|\b(?:1[0-2]|[1-9]) o ?'? ?clock\b"
)
_NUMBER = (
    r"(?<![\w-])#?(?P<value>(?=[A-Za-z-]*\d)(?=\d*[A-Za-z]|\d{5})[A-Za-z0-9-]{5,24})(?![\w@-])"
)
_NATIONAL = r"(?<![\w.,-])0\d{1,4}(?:[ /-]{1,3}\d+)+(?![\w-])"
_DATE = (
    r"\b(?:19|20)\d\d-\d\d-\d\d\b|\b\d{1,2}/\d{1,2}(?:/\d{2,4})?\b"
    r"|\b\d{1,2}\.\s?\d{1,2}\.(?:\s?(?:19|20)?\d\d\b)?"
)
_SUM = r"[$£€¥]\s?\d[\d.,]*\d|[$£€¥]\s?\d|\b\d[\d.,]*\s?(?:[$£€¥]|(?:eur|euros?|usd|gbp|chf)\b)"
_CLOCK = r"\b(?:[01]?\d|2[0-3]):[0-5]\d\b"
"""Forms that hold in any language."""
_WORDS = r"(?P<value>[A-Za-z][\w'&.-]*(?: [\w'&-]+){0,5})"
_GOING = (
    r"\b(?:go|goes|going|get|travel|traveling|travelling|head|headed|heading|train|trains|bus|taxi|cab|flight|trip"
    r"|ride|transport|transportation|way|commute|fly|flying|drive|driving|come|coming|return|back|take me|bring me)"
)
_OLD_KEYS = {"order": "order_id", "account": "account_id", "ref": "reference_number", "id": "id"}


class Found(NamedTuple):
    """One value of a text and where it stands there."""

    key: str
    value: str
    start: int
    end: int


_Read = Callable[[re.Match[str]], tuple[str, str]]


def values_in(text: str, *, english: bool = True) -> list[Found]:
    """Return the values of a person's message in order; where two overlap, the earlier rule has it.

    Args:
        text: the message.
        english: whether it is; otherwise only what tells by its form in any language is read.
    """
    taken: list[Found] = []
    for pattern, read in _rules() if english else _rules_of_form():
        for match in pattern.finditer(text):
            key, value = read(match)
            value = re.sub(r" ?'s?$", "", value.strip(" ,."))
            start, end = _span(match, value)
            free = not any(start < found.end and found.start < end for found in taken)
            if key and value and free:
                taken.append(Found(key, value, start, end))
    return sorted(taken, key=lambda found: found.start)


def _span(match: re.Match[str], value: str) -> tuple[int, int]:
    """Return where a value stands; one that is a reading (yes, no) covers the words it read."""
    start, end = match.span("value")
    inside = match.group("value").find(value)
    return (start, end) if inside < 0 else (start + inside, start + inside + len(value))


def _as(key: str) -> _Read:
    return lambda match: (key, match.group("value"))


@cache
def _rules() -> tuple[tuple[re.Pattern[str], _Read], ...]:
    counted, number, month = any_of("counted"), any_of("number"), any_of("month")
    count = rf"(?P<value>\d{{1,3}}|{number})"
    year = r"(?:,?\s+(?:19|20)\d\d)?"
    day = rf"(?:this |next |coming )?{any_of('weekday')}(?!\w)|tomorrow|tonight"
    date = (
        r"\b(?:19|20)\d\d-\d\d-\d\d\b|\b\d{1,2}/\d{1,2}(?:/\d{2,4})?\b"
        rf"|\b{month}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?\b{year}"
        rf"|\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{month}\b{year}"
    )
    numbered = (
        rf"\b(?P<noun>{NOUNS})\s*(?:number|num\b|no\b\.?|nr\b\.?|id\b|code|#)?\s*(?:is|was|:|=|#)*\s*"
        rf"(?P<value>(?=[\w-]*\d)[A-Za-z0-9][A-Za-z0-9-]{{1,24}})(?![\w@:-])(?!\s*(?:{counted}|am|pm)\b)"
    )
    area = any_of("area")
    sources: tuple[tuple[str, _Read], ...] = (
        (rf"(?P<value>{MAIL_FORM})", _as("email")),
        (numbered, _numbered),
        (rf"(?P<value>{PHONE})", _as("phone")),
        (rf"(?P<value>{date})", _as("date")),
        (rf"(?P<value>{_AMOUNT})", _as("amount")),
        (rf"(?P<value>{_TIME})", _time),
        (rf"\b(?P<value>{day})\b", _as("day")),
        (rf"\b{count}[\s-]+(?:other |more |young )?(?P<noun>{counted})(?!\w)", _counted),
        (rf"\b(?:party|group|table|total) (?:of|for) {count}(?!\w)", _as("people")),
        (rf"\bfor {count}(?= please|\s*[.,?!]|\s*$| at\b| on\b| to\b)", _as("people")),
        (rf"\b{count} of us\b", _as("people")),
        (r"\b(?:just|only|by) (?P<value>me|myself)\b", _alone),
        (rf"(?<!\w)(?P<value>{any_of('price')})(?!\w)", _as("price_range")),
        (rf"\b(?:the|in) (?P<value>{area})(?!\w)(?! (?:street|road|st|station)\b)(?-i:(?! [A-Z]))", _as("area")),
        (rf"\b(?P<value>{area})(?= (?:of|part|side|area|end)\b)", _as("area")),
        (SELF, _as("customer_name")),
        (rf"\b(?:called|named|name is|name of(?: it is)?|name 's)\s+(?:the )?{_WORDS}", _name),
        (rf"\b(?:from|(?:leaving|departing)(?! from))\s+(?:the )?{_WORDS}", _place("departure")),
        (rf"{_GOING}(?: (?:back|over|out|up|down|me|us))? (?:to|into)\s+(?:the )?{_WORDS}", _place("destination")),
        (rf"\barriv\w+ (?:in|at)\s+(?:the )?{_WORDS}", _place("destination")),
        (rf"\bfrom [\w' -]{{2,40}}? to (?:the )?{_WORDS}", _place("destination")),
        (r"\b(?P<value>[A-Za-z]+(?: [A-Za-z]+)?) (?:food|cuisine|restaurants?|dishes)\b", _food),
        (rf"(?<!\w)(?P<value>{any_of('extra')})(?!\w)", _extra),
        (r"(?-i:\b(?P<value>[A-Z][a-z-]+(?: (?:of|the|in|on|de))?(?: [A-Z][a-z'-]+)+))", _titled),
        (_NUMBER, _as("number")),
    )  # fmt: skip
    return tuple((re.compile(source, re.IGNORECASE), read) for source, read in sources)


@cache
def _rules_of_form() -> tuple[tuple[re.Pattern[str], _Read], ...]:
    """Return the rules that hold in any language."""
    sources = (
        (rf"(?P<value>{MAIL_FORM})", "email"),
        (rf"(?P<value>{PHONE}|{_NATIONAL})", "phone"),
        (rf"(?P<value>{_DATE})", "date"),
        (rf"(?P<value>{_SUM})", "amount"),
        (rf"(?P<value>{_CLOCK})", "time"),
        (_NUMBER, "number"),
    )
    return tuple((re.compile(source, re.IGNORECASE), _as(key)) for source, key in sources)


def _numbered(match: re.Match[str]) -> tuple[str, str]:
    noun = match.group("noun").casefold()
    return _OLD_KEYS.get(noun, f"{noun}_number"), match.group("value")


def _time(match: re.Match[str]) -> tuple[str, str]:
    before = re.split(r"[.?!;]", match.string[max(0, match.start() - 60) : match.start()])[
        -1
    ].casefold()
    places = {
        "arrival_time": max(
            before.rfind(word) for word in ("arriv", "get there", "be there", "get to")
        ),
        "departure_time": max(before.rfind(word) for word in ("leav", "depart")),
    }
    key = max(places, key=lambda name: places[name])
    return key if places[key] >= 0 else "time", match.group("value")


def _counted(match: re.Match[str]) -> tuple[str, str]:
    noun = match.group("noun").casefold()
    many = {
        "person": "people",
        "persons": "people",
        "guests": "people",
        "guest": "people",
        "adult": "adults",
    }
    if noun in many:
        return many[noun], match.group("value")
    return noun if noun.endswith(("s", "ren")) or noun == "people" else f"{noun}s", match.group(
        "value"
    )


def _alone(match: re.Match[str]) -> tuple[str, str]:
    return "people", f"just {match.group('value')}"


def _extra(match: re.Match[str]) -> tuple[str, str]:
    before = match.string[max(0, match.start() - 30) : match.start()].casefold()
    denied = re.search(r"\b(?:no|not|without|n't|nt)\b[^.?!,]*$", before)
    about = re.search(r"\b(?:does|do|is|are|has) (?:it|they|there|the|that)\b[^.?!,]*$", before)
    name = match.group("value").casefold().replace("-", "")
    return ("", "") if about else (name, "no" if denied else "yes")


def _food(match: re.Match[str]) -> tuple[str, str]:
    words = match.group("value").split()
    while words and words[0].casefold() in listed("not_food"):
        words.pop(0)
    if any(word.casefold() in listed("not_food") for word in words):
        return "", ""
    return "food", " ".join(words)


def _name(match: re.Match[str]) -> tuple[str, str]:
    return "name", " ".join(
        _until(match.group("value"), listed("stop") - {"and", "on", "at", "by", "for"})
    )


def _titled(match: re.Match[str]) -> tuple[str, str]:
    """Read words in capitals as a name, without a first word that has its capital from the sentence."""
    words = match.group("value").split()
    while words and (
        words[0].casefold() in listed("empty") or words[0].casefold() in listed("opener")
    ):
        words.pop(0)
    return ("name", " ".join(words)) if len(words) > 1 else ("", "")


def _place(key: str) -> _Read:
    def read(match: re.Match[str]) -> tuple[str, str]:
        words = _until(match.group("value"), listed("stop") | listed("weekday"))
        named = bool(words) and words[0].casefold() not in listed("doing")
        return (
            (key, " ".join(words))
            if named and not re.match(r"(?:the )?\d", " ".join(words))
            else ("", "")
        )

    return read


def _until(text: str, stop: frozenset[str]) -> list[str]:
    words = text.split()
    ends = (place for place, word in enumerate(words) if word.casefold() in stop)
    return words[: next(ends, len(words))]
