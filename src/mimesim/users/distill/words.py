"""The word lists of `words_en.toml`, read once."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files


@cache
def _lists() -> dict[str, str]:
    source = files("mimesim.users.distill").joinpath("words_en.toml")
    read: dict[str, str] = tomllib.loads(source.read_text(encoding="utf-8"))
    return read


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
    """Return what finds one of the phrases of a list that is separated by bars."""
    parts = [part.strip() for part in _lists()[name].replace("\n", " ").split("|")]
    return re.compile("|".join(part for part in parts if part), re.IGNORECASE)
