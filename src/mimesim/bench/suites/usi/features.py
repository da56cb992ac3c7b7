"""The 19 features of one conversation.

Eleven need word lists, eight do not. Rates are shares of the user's turns in [0, 1]; what they
become in a table (per cent) is the business of `index`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Literal, NamedTuple

from mimesim.bench.suites.sessions import Session
from mimesim.bench.suites.usi.lexicon import Lexicon
from mimesim.dialogue import stop, thinking
from mimesim.dialogue.types import Role
from mimesim.results.suite import Mode

Kind = Literal["rate", "flag", "number"]


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature.

    Attributes:
        dimension: D1 to D4.
        kind: share of turns, yes or no of the conversation, or a number.
        scale: what it is multiplied by in a table.
        lexical: whether it rests on a word list.
    """

    name: str
    dimension: str
    kind: Kind = "rate"
    scale: float = 100.0
    unit: str = "%"
    lexical: bool = True


def _structural(name: str, dimension: str, kind: Kind, scale: float, unit: str) -> Feature:
    return Feature(name, dimension, kind, scale, unit, lexical=False)


FEATURES = (
    Feature("politeness_rate", "D1"),
    _structural("short_msg_rate", "D1", "rate", 100.0, "%"),
    _structural("dash_rate", "D1", "rate", 100.0, "%"),
    Feature("ack_only_rate", "D1"),
    _structural("verbosity_cv", "D1", "number", 1.0, ""),
    _structural("repeat_rate", "D1", "flag", 100.0, "%"),
    Feature("id_confuse_rate", "D1", "flag"),
    _structural("info_frontload", "D2", "number", 100.0, "%"),
    _structural("id_density", "D2", "number", 1.0, "identifiers"),
    _structural("user_words_per_turn", "D2", "number", 1.0, "words"),
    _structural("opening_words", "D2", "number", 1.0, "words"),
    Feature("uncertainty_rate", "D3"),
    Feature("certainty_rate", "D3"),
    Feature("pushback_q_rate", "D3"),
    Feature("clarify_q_rate", "D3"),
    Feature("info_q_rate", "D3"),
    Feature("emotion_rate", "D4"),
    Feature("accusation_rate", "D4"),
    Feature("pivot_rate", "D4"),
)
"""In the order of the published table."""

NAMES = tuple(one.name for one in FEATURES)
DIMENSIONS = ("D1", "D2", "D3", "D4")
STRUCTURAL = tuple(one.name for one in FEATURES if not one.lexical)

_CLASSES = {
    "pushback_q": "pushback_q_rate",
    "clarify_q": "clarify_q_rate",
    "info_q": "info_q_rate",
}
"""List -> feature; a turn belongs to the first that matches."""
_LISTS = {
    **_CLASSES,
    "politeness": "politeness_rate",
    "ack_only": "ack_only_rate",
    "identity_confusion": "id_confuse_rate",
    "uncertainty": "uncertainty_rate",
    "certainty": "certainty_rate",
    "emotion": "emotion_rate",
    "accusation": "accusation_rate",
    "pivot": "pivot_rate",
}
_PLAN = tuple((one.name, None if one.kind == "number" else one.kind == "rate") for one in FEATURES)
"""Feature -> whether its count is divided by the turns; None = it is no count."""

_SHORT = 3
_REPEATS = 10
_TOKEN = re.compile(r"\w+")
_DASH = re.compile("[\u2013\u2014]")
_APOSTROPHES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\uff07": "'"})
_MARKUP = re.compile(
    r"<function=[^>]*>.*?(?:</function>|\Z)|<\|tool\|>.*?(?:<\|/?tool\|>|\Z)", re.DOTALL
)
_LONG_ID = re.compile(r"[a-z0-9]{6,}")
_FIVE = re.compile(r"\d{5}")
_NUMBERED = re.compile(r"_\d{3}")
_PAYMENT = re.compile(r"(?:gift_card_|credit_card_|paypal_)\w")
_ADDRESS = re.compile(r"@\w+\.\w+")


class Row(NamedTuple):
    """What one conversation gives.

    Attributes:
        values: by `FEATURES`. hits: turns (or 1 for the conversation) that carry each rate.
        turns: messages of both sides. user_turns: of the user. dropped: messages without words.
    """

    values: tuple[float, ...]
    hits: tuple[int, ...]
    turns: int
    user_turns: int
    dropped: int


def user_texts(session: Session, mode: Mode) -> tuple[list[str], int]:
    """Return what the user said as the index reads it, and how many messages fell out as empty.

    `compat` drops messages that are nothing but the stop marker and keeps all else as recorded;
    `fixed` also takes markers off real messages, folds apostrophes and drops empty messages.
    """
    texts: list[str] = []
    dropped = 0
    for role, text in session.turns:
        if role is not Role.USER:
            continue
        if mode == "compat":
            if text.strip() != stop.END_MARKER:
                texts.append(_without_markup(text))
            continue
        text = _without_markup(stop.cut_markers(text))
        if text.strip():
            texts.append(text if text.isascii() else text.translate(_APOSTROPHES))
        else:
            dropped += 1
    return texts, dropped


def measure(session: Session, lexicon: Lexicon, mode: Mode) -> Row | None:
    """Return the features of a conversation; None = the user says nothing in it."""
    texts, dropped = user_texts(session, mode)
    if not texts:
        return None
    n = len(texts)
    lowered = [text.lower() for text in texts]
    words = [text.split() for text in lowered]
    sizes = list(map(len, words))
    total = sum(sizes)
    counted, found = _counts(texts, lowered, lexicon)
    counted["short_msg_rate"] = len([size for size in sizes if size <= _SHORT])
    counted["repeat_rate"] = int(_repeats(words))
    numbers = {
        "verbosity_cv": _variation(sizes, total),
        "info_frontload": sum(sizes[:2]) / total if total else 0.0,
        "id_density": found / n,
        "user_words_per_turn": total / n,
        "opening_words": float(sizes[0]),
    }
    values = [
        numbers[name] if by_turns is None else counted.get(name, 0) / (n if by_turns else 1)
        for name, by_turns in _PLAN
    ]
    others = [role for role, _ in session.turns if role is not Role.USER]
    hits = tuple(map(counted.get, NAMES, repeat(0)))
    return Row(tuple(values), hits, n + len(others), n, dropped)


def identifiers(text: str) -> int:
    """Return the number of identifiers in a lower-cased text."""
    return _identifiers(text, _TOKEN.findall(text))


def _counts(
    texts: Iterable[str], lowered: Iterable[str], lexicon: Lexicon
) -> tuple[dict[str, int], int]:
    """Count the turns that have each property, and the identifiers."""
    counted: dict[str, int] = {}
    ids = 0
    dash, identifier = lexicon.detectors.get("dash"), lexicon.detectors.get("identifier")
    for text, lower in zip(texts, lowered, strict=True):
        order = _TOKEN.findall(lower)
        matching = lexicon.matching(lower, order)
        asked = False
        for name, feature in _LISTS.items() if matching else ():
            if name in matching and not (asked and name in _CLASSES):
                counted[feature] = counted.get(feature, 0) + 1
                asked = asked or name in _CLASSES
        if dash.hits(text) if dash else not text.isascii() and _DASH.search(text):
            counted["dash_rate"] = counted.get("dash_rate", 0) + 1
        ids += identifier.count(lower) if identifier else _identifiers(lower, order)
    if "id_confuse_rate" in counted:
        counted["id_confuse_rate"] = 1
    return counted, ids


def _identifiers(text: str, tokens: Sequence[str]) -> int:
    if "@" not in text:
        return sum(map(_is_identifier, tokens))
    count, skip_to = 0, 0
    for match in _TOKEN.finditer(text):
        if match.start() < skip_to:
            continue
        if _is_identifier(match.group()):
            count += 1
        elif address := _ADDRESS.match(text, match.end()):
            count += 1
            skip_to = address.end()
    return count


@lru_cache(maxsize=65_536)
def _is_identifier(token: str) -> bool:
    if _LONG_ID.fullmatch(token) or _FIVE.search(token) or _PAYMENT.search(token):
        return True
    return _is_numbered(token)


def _is_numbered(token: str) -> bool:
    """Tell whether a token holds word_word_ and three digits, in time linear in its length."""
    last = -1
    for match in _NUMBERED.finditer(token):
        last = match.start()
    return last > 0 and 1 <= token.find("_", 1) <= last - 2


def _repeats(words: Sequence[Sequence[str]]) -> bool:
    """Tell whether some run of three words of one turn occurs more than ten times in all."""
    runs = [run for one in words for run in zip(one, one[1:], one[2:], strict=False)]
    if len(runs) - len(set(runs)) < _REPEATS:
        return False
    return max(Counter(runs).values()) > _REPEATS


def _variation(sizes: Sequence[int], total: int) -> float:
    """Return the standard deviation of the sizes over their mean; 0 from one turn or no word."""
    n = len(sizes)
    if n < 2 or not total:
        return 0.0
    mean = total / n
    return float((sum((size - mean) ** 2 for size in sizes) / n) ** 0.5 / mean)


def _without_markup(text: str) -> str:
    """Return the text without blocks that belong to an agent: reasoning and calls of tools."""
    if "<" not in text:
        return text
    if thinking.has_tag(text):
        text = thinking.split(text).text
    return _MARKUP.sub("", text)
