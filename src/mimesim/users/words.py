"""Words and sentences of people: the lists of `words_en.toml`, and cutting texts into sentences."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

QUOTE = 400
"""Characters of a quoted sentence at most."""

_SENTENCE = re.compile(r"[^.?!\n]+(?:[.?!]+(?=\S)[^.?!\n]+)*[.?!]*")
_NAME = re.compile(r"[a-z0-9]+")


@cache
def _lists() -> dict[str, Any]:
    source = files("mimesim.users").joinpath("words_en.toml")
    return tomllib.loads(source.read_text(encoding="utf-8"))


@cache
def listed(name: str) -> frozenset[str]:
    """Return a list of words."""
    return frozenset(_lists()[name].split())


@cache
def any_of(name: str) -> str:
    """Return a list as a regular expression that matches one of its words, the longest first."""
    return "(?:" + "|".join(map(re.escape, sorted(listed(name), key=len, reverse=True))) + ")"


@cache
def phrases(name: str) -> re.Pattern[str]:
    """Return what finds one of the patterns of a list."""
    return re.compile("|".join(_lists()[name]), re.IGNORECASE)


class Sentence(NamedTuple):
    """A sentence of a turn; `text` is exactly what stands there, `start` where it begins."""

    text: str
    start: int


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text. Dots inside numbers and addresses do not end one."""
    for match in _SENTENCE.finditer(text):
        plain = match.group().strip()
        if plain:
            yield Sentence(plain, match.start() + match.group().index(plain))


def key_of(words: str) -> str:
    """Return words as a key: small letters, digits and underscores."""
    return "_".join(_NAME.findall(words.casefold()))
