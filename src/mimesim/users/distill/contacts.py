"""Contact data of a conversation, replaced by invented stand-ins before anything is distilled.

The same value gets the same stand-in wherever it stands in one conversation, on both sides, so what
was consistent stays consistent; another conversation gets others, and nothing keeps the table. It
finds e-mail addresses, phone and card numbers, street addresses, and names, user names and secrets
that people give when they introduce themselves or are asked. That is care, not anonymization: a
neighbor's name inside a story stays.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mimesim.corpora.base import HumanDialogue, HumanTurn
from mimesim.corpora.cleaning import pii
from mimesim.scenarios.records import address, load_pools
from mimesim.seeds import generator
from mimesim.users.distill.facts import plain_answer
from mimesim.users.distill.phones import phones_in
from mimesim.users.distill.values import NOUNS, PHONE, SELF
from mimesim.users.questions import questions_in

_STREET = (
    r"\b\d{1,5}[a-z]? (?:[A-Za-z'.-]+ ){1,3}(?:street|st|avenue|ave|road|rd|lane|ln|boulevard|blvd|drive|dr|way|court|ct"
    r"|terrace|place|close|row)\b\.?(?:,? (?:apt|apartment|suite|unit|#) ?\w+)?"
)
_SSN = r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("email", re.compile(pii.MAIL_FORM)),
    ("card", re.compile(pii.CARD_FORM)),
    ("secret", re.compile(_SSN)),
    ("phone", re.compile(PHONE)),
    ("address", re.compile(_STREET, re.IGNORECASE)),
    ("name", re.compile(SELF, re.IGNORECASE)),
    (
        "name",  # the first name at least, in the languages of most chats
        re.compile(
            r"\b(?i:mein name ist|ich hei(?:ß|ss)e|je m['’]appelle|mon nom est|me llamo|mi nombre es|mi chiamo"
            r"|il mio nome è|meu nome é|me chamo|mijn naam is|ik heet)\s+(?P<value>[^\W\d_][\w'-]*(?: [A-Z][\w'-]+){0,2})"
        ),
    ),
    (
        "phone",
        re.compile(
            r"\b(?:call|text|reach|ring|phone|cell|mobile|whatsapp|my number)\b[^.?!\n]{0,30}?(?P<value>\+?\d{9,15})\b",
            re.IGNORECASE,
        ),
    ),
)
_LONG_NUMBER = re.compile(r"(?<![\w-])\d{9,12}(?![\w-])")
_LABEL = re.compile(rf"\b(?:{NOUNS})\W*(?:number|id|no|code)?\W*(?:is|was)?\W*$", re.IGNORECASE)
_WORDS_TOO = frozenset([
    "may", "mark", "rose", "hope", "grace", "will", "bill", "art", "sue",
    "pat", "rob", "dawn", "joy", "jack", "june", "april", "august",
])  # fmt: skip
_ASKED = {
    "email": "email", "phone": "phone", "new_phone": "phone", "customer_name": "name", "first_name": "name",
    "last_name": "name", "username": "username", "full_address": "address", "new_address": "address",
    "address": "address", "zip_code": "zip", "password": "secret", "pin": "secret", "pin_number": "secret",
    "security_answer": "secret",
    "street_address": "address",
    "new_name": "name",
    "social_security_number": "secret", "card_number": "card", "credit_card_number": "card", "birth": "birthday",
    "date_birth": "birthday", "mother_maiden_name": "secret", "security_code": "secret", "passport_number": "secret",
}  # fmt: skip
"""Key of a question -> what its answer is."""
_BORN = re.compile(r"\b(?:date of birth|birth ?day|birth date|born|dob)\b", re.IGNORECASE)
_PLAIN = {"phone": r"\+?\d[\d\s().-]{5,}\d", "zip": r"\d{4,6}(?:-\d{4})?|[A-Z]{1,2}\d\w? ?\d[A-Z]{2}", "card": r"\d[\d -]{3,}\d"}  # fmt: skip
_NO_NAME = frozenset([
    "here", "fine", "good", "ok", "okay", "sure", "yes", "no", "not",
    "sorry", "looking", "trying", "calling", "just", "a", "the",
])  # fmt: skip
_SPACES = re.compile(r"\s+")
_LONGEST = 80
"""Characters of one value; longer is a story."""


def pseudonymized(
    dialogue: HumanDialogue, *, seed: int, region: str = "US"
) -> tuple[HumanDialogue, Counter[str]]:
    """Return a dialogue with stand-ins in place of contact data, and how many values there were.

    Args:
        dialogue: a conversation, tidied.
        seed: another one gives other stand-ins.
        region: ISO 3166-1 code of the country whose phone numbers are told without a country code.
    """
    real = _real(dialogue.turns, region)
    table = _table(real, generator(seed, "stand-ins", dialogue.id))
    if not table:
        return dialogue, Counter()
    exact = {v for v in table if v not in real or real[v] == "name"}
    swap = _Swap(table, exact)
    made = replace(
        dialogue,
        id=swap(dialogue.id),
        turns=tuple(
            replace(turn, text=swap(turn.text), thought=None, reaction=None)
            for turn in dialogue.turns
        ),
        topic=swap(dialogue.topic),
        goal=swap(dialogue.goal),
        outcome=pii.deep(dialogue.outcome, swap),
    )
    return made, Counter(real.values())


def _real(turns: Sequence[HumanTurn], region: str) -> dict[str, str]:
    """Return the contact data of a conversation: value -> kind, the first kind found counts."""
    found: dict[str, str] = {}
    for place, turn in enumerate(turns):
        _note_forms(found, turn.text)
        before = turns[place - 1] if place else None
        if turn.role != "user":
            continue
        question = before.text if before is not None and before.role == "agent" else ""
        for kind in _asked_kinds(question):
            _note(found, _answer(turn.text, kind), kind)
        if not questions_in(question):  # a long number that nobody asked for and nobody labelled
            for match in _LONG_NUMBER.finditer(turn.text):
                if not _LABEL.search(turn.text, 0, match.start()):
                    _note(found, match.group(), "secret")
    for place, start, end in phones_in(turns, region):
        _note_phone(found, turns[place].text[start:end])
    return found


def _note_forms(found: dict[str, str], text: str) -> None:
    """Take down what tells by its form; where two overlap, the earlier form has it."""
    spans: list[tuple[int, int]] = []
    for kind, form in _FORMS:
        for match in form.finditer(text):
            start, end = match.span("value" if "value" in form.groupindex else 0)
            if not any(start < other[1] and other[0] < end for other in spans):
                spans.append((start, end))
                _note(found, text[start:end], kind)


def _note_phone(found: dict[str, str], value: str) -> None:
    """Take a number down unless it is a part of a value that is known already."""
    if not any(value.strip(" .") in known for known in found):
        _note(found, value, "phone")


def _asked_kinds(question: str) -> list[str]:
    kinds = [_ASKED[q.key] for q in questions_in(question) if q.key in _ASKED and not q.polar]
    return [*kinds, *(["birthday"] if _BORN.search(question) else [])]


def _answer(text: str, kind: str) -> str:
    """Return the part of an answer that is what was asked for; empty = it is not there."""
    if kind in _PLAIN:
        found = re.search(_PLAIN[kind], text)
        return found.group() if found else ""
    value = plain_answer(text)
    if kind == "name":
        value = re.split(r"[,.;!]| and | but ", value)[0]
        words = value.split()
        return value if 0 < len(words) <= 3 and words[0].casefold() not in _NO_NAME else ""
    return value if re.search(r"\w", value) else ""


def _note(found: dict[str, str], value: str, kind: str) -> None:
    """Take a value down once; the case tells names apart from words, and nothing else."""
    value = _SPACES.sub(" ", value.strip(" .,;:!?'\""))
    known = value in found or (kind != "name" and _fold(value) in map(_fold, found))
    if 1 < len(value) <= _LONGEST and not known:
        found[value] = kind


def _table(real: Mapping[str, str], rng: random.Random) -> dict[str, str]:
    """Return what stands in for what.

    Names are put in as they are spelled, capitals too, for "will" is a word; their parts also stand
    alone. Everything else is found whatever its case.
    """
    table = {v: _invented(k, v, rng, set()) for v, k in real.items() if k != "name"}
    for value in (v for v, k in real.items() if k == "name"):
        made = table.get(value) or _invented("name", value, rng, set(table.values()))
        parts, invented = value.split(), made.split()
        pairs = [(value, made), *zip(parts, [*invented, *invented[-1:] * len(parts)], strict=False)]
        for real_part, other in pairs:
            if real_part.casefold() not in _WORDS_TOO or real_part != real_part.lower():
                table.setdefault(real_part, other)
            table.setdefault(real_part.title(), other.title())
    return table


def _invented(kind: str, value: str, rng: random.Random, taken: set[str]) -> str:
    """Return a value of the kind that nobody has and that is not `taken`."""
    for _ in range(50):
        made = _draw(kind, value, rng)
        if made not in taken and made.casefold() != value.casefold():
            break
    return made


def _draw(kind: str, value: str, rng: random.Random) -> str:
    pools = load_pools()
    first, last = rng.choice(pools.first_names), rng.choice(pools.last_names)
    if kind == "email":
        return f"{first}.{last}@example.com"
    if kind == "phone":
        return f"555-{rng.randint(100, 199):04d}"
    if kind == "address":
        return address(pools, rng)["street_address"]
    if kind == "username":
        return f"{first}{rng.randint(100, 999)}"
    if kind == "birthday":
        return f"{rng.randint(1950, 2004)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
    if kind == "name":
        made = f"{first} {last}" if " " in value else first
        return made if value == value.lower() else made.title()
    return _scrambled(value, rng)


def _scrambled(value: str, rng: random.Random) -> str:
    """Return a value of the same form: other digits for digits, other letters for letters."""
    return "".join(
        rng.choice("0123456789")
        if sign.isdigit()
        else rng.choice("abcdefghkmnprstuvwxyz" if sign.islower() else "ABCDEFGHKMNPRSTUVWXYZ")
        if sign.isalpha()
        else sign
        for sign in value
    )


class _Swap:
    """Puts stand-ins into texts, longest values first, on borders of words."""

    def __init__(self, table: Mapping[str, str], names: Collection[str]) -> None:
        self._exact = dict(table)
        self._folded = {_fold(value): made for value, made in table.items() if value not in names}
        forms = [
            _spaced(value) if value in names else f"(?i:{_spaced(value)})"
            for value in sorted(table, key=len, reverse=True)
        ]
        self._pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(forms)})(?![^\W_])")

    def __call__(self, text: str) -> str:
        """Return `text` with stand-ins."""
        return self._pattern.sub(self._put, text)

    def _put(self, match: re.Match[str]) -> str:
        said = _SPACES.sub(" ", match.group())
        return self._exact.get(said) or self._folded[_fold(said)]


def _spaced(value: str) -> str:
    return r"\s+".join(map(re.escape, value.split()))


def _fold(value: str) -> str:
    return _SPACES.sub(" ", value).casefold()
