"""How the person wrote: length, casing, punctuation, typing. Counted, then put in words."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import Any

from mimesim.users import guards

_OFTEN = 0.5
_SOME = 0.25
_SHORT = re.compile(
    r"\b(?:u|ur|thx|pls|plz|r|y|gonna|wanna|idk|btw|asap|lol|omg|cuz|coz|tmrw|ty|np|k)\b",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"\b(?:dont|cant|wont|didnt|doesnt|isnt|im|ive|id|thats|whats|couldnt|wouldnt|havent)\b",
    re.IGNORECASE,
)
_EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]|[:;]-?[)(DPp]")


def style_of(texts: Sequence[str], language: str = "") -> dict[str, Any]:
    """Return how a person writes, from all their messages, as the `style` of a scenario.

    Args:
        texts: their messages, at least one.
        language: ISO 639-1 code of what they write; empty = unknown.
    """
    lengths = [len(guards.words(text)) for text in texts]
    style: dict[str, Any] = {
        "length": f"about {round(statistics.median(lengths))} words a message, {max(lengths)} at most",
        "casing": _casing(texts),
        "punctuation": _punctuation(texts),
    }
    typing = _typing(texts)
    if typing:
        style["typing"] = typing
    if language:
        style["language"] = language
    return style


def _share(texts: Sequence[str], hit: Sequence[bool]) -> float:
    return sum(hit) / len(texts)


def _casing(texts: Sequence[str]) -> str:
    lettered = [text for text in texts if any(c.isalpha() and c.upper() != c.lower() for c in text)]
    if not lettered:
        return "as usual"
    if _share(lettered, [t == t.upper() for t in lettered]) > _OFTEN:
        return "all capitals"
    if _share(lettered, [t == t.lower() for t in lettered]) > _OFTEN:
        return "all small letters"
    first = [next(c for c in t if c.isalpha()) for t in lettered]
    small = _share(lettered, [c.islower() for c in first])
    return "often starts with a small letter" if small > _OFTEN else "as usual"


def _punctuation(texts: Sequence[str]) -> str:
    told = []
    ended = _share(texts, [t.rstrip()[-1:] in ".!?\u2026\u3002\uff1f\uff01" for t in texts])
    if ended < _OFTEN:
        told.append("mostly no sign at the end")
    if _share(texts, ["!" in t for t in texts]) > _SOME:
        told.append("exclamation marks")
    if _share(texts, ["?" in t for t in texts]) > _OFTEN:
        told.append("many questions")
    if _share(texts, ["..." in t or "\u2026" in t for t in texts]) > _SOME:
        told.append("dots that trail off")
    return ", ".join(told) or "as usual"


def _typing(texts: Sequence[str]) -> str:
    told = []
    if _share(texts, [bool(_SHORT.search(t)) for t in texts]) > _SOME:
        told.append("chat shorthand")
    if any(_BARE.search(t) for t in texts) and not any(
        re.search(r"\w['\u2019]\w", t) for t in texts
    ):
        told.append("leaves out apostrophes")
    if _share(texts, [bool(_EMOJI.search(t)) for t in texts]) > _SOME:
        told.append("emoji")
    if _share(texts, ["\n" in t for t in texts]) > _SOME:
        told.append("splits a message over lines")
    return ", ".join(told)
