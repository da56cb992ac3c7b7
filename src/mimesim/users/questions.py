"""What an agent's message asks for: a readable key per question, so that answers get a name.

The rules know the usual English shapes of questions. A question that is none of them gives no key;
nothing is guessed from the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mimesim.scenarios.fields import asked_fields, fold
from mimesim.users.words import QUOTE, key_of, listed, sentences

_LONGEST = 3
"""Words of a key at most."""

_THING = r"(?P<thing>[a-z][a-z0-9' -]*?)"
_END = (
    r"(?=\s*(?:$|[.,;:?!()/]|\b(?:are|is|was|were|do|does|did|would|will|can|could|should|have|has|had"
    r"|you|your|we|i|it|for|in|on|at|to|from|with|so|that|which|who|when|where|if|please|as|and|or|by"
    r"|associated|of|mind|'d|'re|did|should)\b))"
)
_OPEN = tuple(
    re.compile(pattern)
    for pattern in (
        # "what day will you", "which area", "what kind of food", "what is your price range"
        rf"\b(?:what|which)(?: 's|'s| is| are| was| were)? (?:the |your |a )?(?:(?:kind|type|sort|name) of )?"
        rf"(?:the |your |a )?{_THING}{_END}",
        rf"\bhow many (?:other |more )?{_THING}{_END}",
        # "may I have your name", "please give me the order id", "I need your e-mail"
        r"\b(?:may i|can i|could i|let me|i(?: will|'ll| 'll| also| would| just)* need(?: to know| to have)?"
        r"|please (?:\w+ )?(?:give|tell|provide|send|share|confirm|enter|state|specify)(?: me| us)?(?: with)?"
        r"|(?:can|could|would|will) you (?:please |also |just |kindly )*(?:give|tell|provide|send|share|confirm"
        r"|enter|state|specify|verify)(?: me| us)?(?: with)?)"
        rf"(?: please)?(?: have| get| ask| verify| confirm| know)? (?:for )?(?:(?:what|which) )?(?:your|the|a|an)"
        rf" (?:name of the )?{_THING}{_END}",
        # "do you have a price range in mind", "any preference on area"
        rf"\b(?:do you have|have you|is there|did you have|have)? ?(?:a|an|any) (?:particular |specific |certain )*"
        rf"(?:preferred |preference (?:on|for|in|of|as to) (?:the |a )?)?{_THING}"
        r"(?=\s+(?:in mind|you(?: 'd| would)? (?:like|prefer)|preference|you have in mind))",
        r"\bpreferences? (?:on|for|in|of|as to|regarding) (?:the |a |your )?" + _THING + _END,
    )
)
_AND = re.compile(
    rf"\s*,?\s*(?:and|or|,)\s+(?:(?:what|which|how many) )?(?:the |your |a )?{_THING}{_END}"
)
_FIXED = (
    (re.compile(r"\bwhere (?:are|will|would|do|did) you .{0,30}?\b(?:leav|depart|com|start)\w*"), "departure"),
    (re.compile(r"\bfrom where\b|\bwhere .{0,25}\b(?:from|picked up)\b"), "departure"),
    (re.compile(r"\bwhere (?:are|will|would|do) you .{0,30}?\b(?:go|travel|head|arriv)\w*"), "destination"),
    (re.compile(r"\bwhere to\b|\b(?:what|where|which)\b.{0,30}\bdestination\b"), "destination"),
    (re.compile(r"\bdeparture (?:site|location|point|station|city|place)\b|\bdepart(?:ing|ure)? from\b"), "departure"),
    (re.compile(r"\bhow long\b"), "length"),
    (re.compile(r"\bhow much\b"), "amount"),
    (re.compile(r"\bwhen\b.{0,40}\b(?:arriv|get there)\w*"), "arrival_time"),
    (re.compile(r"\bwhen\b.{0,40}\b(?:leav|depart)\w*"), "departure_time"),
    (re.compile(r"\bwhen\b"), "when"),
    (re.compile(r"\bhow (?:large|big) (?:is|a) (?:your|the)? ?(?:party|group)"), "people"),
    (re.compile(r"\bfor how many\b"), "people"),
    (re.compile(r"\bwho (?:am i|is this)\b|\b(?:what|which) name\b|\bname\b.{0,30}\bunder\b"), "customer_name"),
)  # fmt: skip
_POLAR = re.compile(
    r"^(?:and |also |ok(?:ay)? |so |, )*(?:do|did|does|are|is|were|was|have|has|will|would) "
    r"(?:you|your|the|it|there|this) (?:also |still |currently |already |have |need |require |prefer "
    r"|be |been |a |an |any |the |your |to |looking for |interested in |for )*(?P<thing>[a-z][a-z' -]+)"
)
_OFFER = re.compile(
    r"\bme to\b|\b(?:need|want|like|prefer|care) (?:to|about)\b|\bwant\b|\binformation\b|\bshall i\b|\bshould i\b|\bwould you like (?:to|more|another)\b|\bany ?(?:thing|one|where)\b"
    r"|\bsomething\b|\belse\b|\bmore information\b|\bhelp\b|\bassist|\bthat be\b|\b(?:this|that|it|those|these) works?\b|\bsound\b|\bok(?:ay)?\b"
    r"|\bmean\b|\bbook(?:ing)?\b|\breserv|\binterested in\b|\bwant me\b|\blike that\b|\bdo you mind\b|\bquestions?\b"
)
_SAME = {
    "e_mail": "email", "email_address": "email", "e_mail_address": "email", "phone_number": "phone",
    "telephone_number": "phone", "order_number": "order_id", "account_number": "account_id",
    "account_id": "account_id", "full_name": "customer_name", "first_name": "first_name",
    "zip": "zip_code", "zipcode": "zip_code", "postal_code": "zip_code", "post_code": "postcode",
    "price": "price_range", "cost": "price_range", "part_of_town": "area", "area_of_town": "area",
    "side_of_town": "area", "part": "area",
    "side": "area", "area_town": "area", "part_town": "area", "location": "area", "pricerange": "price_range",
    "price_ranges": "price_range", "day_week": "day", "stars_rating": "stars", "star": "stars", "rating": "rating", "star_rating": "stars", "number_of_people": "people", "guests": "people",
    "persons": "people", "cuisine": "food", "food_type": "food", "days": "nights", "date": "date",
}  # fmt: skip


_ANSWERS: dict[str, frozenset[str]] = {
    kind: frozenset(words.split())
    for kind, words in {
        "time": "time arrival_time departure_time when hour",
        "arrival_time": "arrival_time time when arrive",
        "departure_time": "departure_time time when leave",
        "day": "day date when days dates night",
        "date": "date day when birth dates birthday purchase_date",
        "people": "people guests party many tickets seats passengers size number",
        "tickets": "tickets people seats many number",
        "seats": "tickets people seats many number",
        "nights": "nights length days many long stay duration number",
        "days": "nights length days many long stay duration number",
        "area": "area part town side location where section place",
        "price_range": "price range budget cost expensive amount",
        "food": "food cuisine kind type restaurant",
        "departure": "departure from where pick stations leaving location site start",
        "destination": "destination to where stations going location drop end",
        "name": "name customer_name restaurant hotel place attraction venue where host doctor apartment departure destination",
        "customer_name": "customer_name name first_name",
        "phone": "phone number new_phone contact telephone",
        "email": "email contact address",
        "amount": "amount much price budget fee",
        "stars": "stars rating star",
        "number": "number order_id account_id id code pin reference confirmation membership serial ticket",
    }.items()
}  # fmt: skip
"""What a fact of this key can answer: keys of questions, or words of them."""


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that is asked for.

    Attributes:
        key: its name; the words of the key stand in the question wherever that can be had.
        quote: the sentence of the agent.
        polar: it wants a yes or a no.
    """

    key: str
    quote: str
    polar: bool = False


def questions_in(text: str) -> list[Question]:
    """Return what a message of an agent asks for, in order, each key once."""
    found: dict[str, Question] = {}
    for sentence in sentences(text):
        for question in _in_sentence(sentence.text[:QUOTE]):
            found.setdefault(question.key, question)
    return list(found.values())


def asks_for(questions: Iterable[Question], key: str) -> bool:
    """Tell whether one of the questions asks for the fact of this key; a number at its end is none."""
    stem = re.sub(r"_\d+$", "", key)
    return any(answers(stem, question) for question in questions)


def answers(key: str, question: Question) -> bool:
    """Tell whether a fact of this key can be the answer to a question."""
    if question.polar:
        return key == question.key or key in question.key.split("_")
    kinds = _ANSWERS.get(key, frozenset({key}))
    return question.key in kinds or not kinds.isdisjoint(question.key.split("_"))


def _in_sentence(text: str) -> list[Question]:
    folded = fold(text)
    known = asked_fields(folded)
    if known and not re.search(r"\d{4}", folded):  # an agent that says a number asks for none
        return [Question(name, text) for name in known]
    if not _asks(folded):
        return []
    for pattern, name in _FIXED:
        if pattern.search(folded):
            return [Question(name, text)]
    things = [thing for pattern in _OPEN for m in pattern.finditer(folded) for thing in _joined(m)]
    parts = [part for thing in things for part in re.split(r"\b(?:or|and)\b", thing)]
    keys = [key for key in dict.fromkeys(map(_key, parts)) if key]
    if keys:
        return [Question(key, text) for key in keys[:2]]
    polar = _POLAR.match(folded)
    if polar and folded.endswith("?") and not _OFFER.search(folded) and " or " not in folded:
        key = _key(polar.group("thing"))
        return [Question(key, text, polar=True)] if key else []
    return []


def _joined(match: re.Match[str]) -> list[str]:
    """Return the thing that is asked for, and what is asked for with it: "what day and time"."""
    things = [match.group("thing")]
    end = match.end("thing")
    while more := _AND.match(match.string, end):
        things.append(more.group("thing"))
        end = more.end("thing")
    return things


def _asks(folded: str) -> bool:
    return (
        "?" in folded
        or re.search(r"\b(?:please|i(?:'ll| 'll| will)? need|may i|let me know)\b", folded)
        is not None
    )


def _key(thing: str) -> str:
    """Return the words of a thing that name it; empty = it names nothing."""
    words = [
        word
        for word in re.findall(r"[a-z0-9]+", thing.replace("'s", ""))
        if word not in listed("empty")
    ]
    if not words or len(words) > _LONGEST + 1:
        return ""
    key = key_of(" ".join(words[:_LONGEST]))
    return _SAME.get(key, key)
