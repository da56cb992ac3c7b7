"""Contact and account data in texts, replaced by reserved values that reach nobody.

Phone numbers are told by `phonenumbers` and, where their form alone says so, by a pattern; cards by
their check digit, bank accounts by their check sum, addresses of machines by `ipaddress`. What was
replaced by what is kept nowhere; only counts are. Names of people stay.

The recognizers of presidio are left out: they bring spaCy along, which takes far more memory and
time to import than everything else here.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mimesim.corpora.base import HumanDialogue, HumanTurn
from mimesim.dialogue.types import Thought
from mimesim.errors import MissingExtraError
from mimesim.seeds import fingerprint

MAIL, PHONE, CARD, IBAN, SSN, IPV4, IPV6 = (
    "name@example.com",
    "555-0100",
    "4000 0000 0000 0000",
    "XX00 0000 0000 0000 0000",
    "000-00-0000",
    "192.0.2.1",
    "2001:db8::1",
)
"""Reserved for documentation, or of a form that is never issued."""

_HINT = re.compile(r"@|\d(?:[\s().+/:-]{0,3}\d){5}|\d[\d.]{5,}\d|[0-9a-f]:[0-9a-f:]{4,}", re.I)
"""Whether a text can hold any of it; most texts cannot, and cost this search only."""

MAIL_FORM = r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"
CARD_FORM = r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])"
PHONE_FORM = (
    r"(?<![\w-])"
    r"(?:\+\d[\d\s().-]{6,17}\d"
    r"|(?:\d{1,2}[\s.-])?(?:\(\d{3}\)[\s.-]?|\d{3}[\s.-])\d{3}[\s.-]\d{4}"
    r"|\d{3}-\d{4})"
    r"(?![\w-])"
)
"""Regular expressions of what tells by its form alone; stand-ins for scenarios go by them, too."""

_MAIL, _CARD, _PHONE = re.compile(MAIL_FORM), re.compile(CARD_FORM), re.compile(PHONE_FORM)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b")
_SSN = re.compile(r"(?<![\w-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])", re.I)


def scrub(text: str, counts: Counter[str], region: str = "US") -> str:
    """Return the text without contact and account data.

    Args:
        text: any text.
        counts: what was replaced is added to it: `mails_masked`, `phones_masked`, …
        region: ISO 3166-1 code of the country whose form phone numbers without a country code have.

    Raises:
        MissingExtraError: phonenumbers is not installed.
    """
    if not _HINT.search(text):
        return text
    for name, pattern, mask in _PATTERNS:
        text = _replaced(text, pattern, mask, name, counts)
    return _without_phones(text, counts, region)


def scrub_dialogue(
    dialogue: HumanDialogue, counts: Counter[str], region: str = "US"
) -> HumanDialogue:
    """Return the dialogue with every text scrubbed, the hidden ones too, and its person unnamed.

    Raises:
        MissingExtraError: phonenumbers is not installed.
    """
    before = counts.total()

    def clean(text: str) -> str:
        return scrub(text, counts, region)

    made = replace(
        dialogue,
        turns=tuple(_turn(turn, clean) for turn in dialogue.turns),
        topic=clean(dialogue.topic),
        goal=clean(dialogue.goal),
        context=clean(dialogue.context),
        earlier=clean(dialogue.earlier),
        hidden=deep(dialogue.hidden, clean),
        outcome=deep(dialogue.outcome, clean),
        user_key=fingerprint(dialogue.user_key) if dialogue.user_key else "",
    )
    counts["dialogues_scrubbed"] += counts.total() > before
    return made


def _turn(turn: HumanTurn, clean: Callable[[str], str]) -> HumanTurn:
    return replace(
        turn,
        text=clean(turn.text),
        thought=_thought(turn.thought, clean),
        reaction=_thought(turn.reaction, clean),
    )


def _thought(thought: Thought | None, clean: Callable[[str], str]) -> Thought | None:
    return Thought(clean(thought.reveal())) if thought else thought


def deep(value: Any, clean: Callable[[str], str]) -> Any:
    """Return JSON values with every string cleaned; tuples become lists."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {key: deep(inner, clean) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [deep(inner, clean) for inner in value]
    return value


def _replaced(
    text: str,
    pattern: re.Pattern[str],
    mask: Callable[[str], str],
    name: str,
    counts: Counter[str],
) -> str:
    def put(match: re.Match[str]) -> str:
        found = mask(match.group())
        if found != match.group():
            counts[name] += 1
        return found

    return pattern.sub(put, text)


def _without_phones(text: str, counts: Counter[str], region: str) -> str:
    spans = [match.span() for match in _PHONE.finditer(text)]
    if re.search(r"\d(?:\D{0,3}\d){6}", text):
        spans += phones_told(text, region)
    spans = [span for span in spans if not _reserved(text[slice(*span)])]
    for start, end in _merged(spans)[::-1]:
        text = text[:start] + PHONE + text[end:]
        counts["phones_masked"] += 1
    return text


def phones_told(text: str, region: str) -> list[tuple[int, int]]:
    """Return where phonenumbers finds numbers in a text.

    Raises:
        MissingExtraError: phonenumbers is not installed.
    """
    try:
        from phonenumbers import PhoneNumberMatcher
    except ImportError as error:
        raise MissingExtraError.for_extra("the scrub of phone numbers", "data") from error
    return [(match.start, match.end) for match in PhoneNumberMatcher(text, region)]


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans in order, those that touch as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _reserved(text: str) -> bool:
    """Tell whether a match is one of our own values, e.g. in a text that was scrubbed before."""
    return text in (PHONE, SSN, CARD)


def _masked_card(text: str) -> str:
    digits = [int(sign) for sign in text if sign.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return CARD if (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and any(digits) else text


def _masked_iban(text: str) -> str:
    plain = text.replace(" ", "")
    number = "".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])
    return IBAN if int(number) % 97 == 1 else text


def _masked_address(text: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if not address.is_global:
        return text
    return IPV4 if address.version == 4 else IPV6


_PATTERNS: tuple[tuple[str, re.Pattern[str], Callable[[str], str]], ...] = (
    ("mails_masked", _MAIL, lambda _: MAIL),
    ("ibans_masked", _IBAN, _masked_iban),
    ("cards_masked", _CARD, _masked_card),
    ("ssns_masked", _SSN, lambda _: SSN),
    ("addresses_masked", _IPV4, _masked_address),
    ("addresses_masked", _IPV6, _masked_address),
)
