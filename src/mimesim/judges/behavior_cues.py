"""The words that the two rule judges listen for: two tables of phrases with nothing in common.

A phrase is a few words: `a|b` stands for either, `_` for any word, `..` for up to three, `^` and `$`
for the ends of the message. Matching is on whole words of folded text without apostrophes. In no
slot does a phrase of one judge occur inside a phrase of the other, so a customer who learnt the cues
of one has learnt none of the other. What both share (`both`) only speaks for a customer; it never
raises the score of a behavior.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mimesim.scenarios.manual import read_toml

_FILE = Path(__file__).with_name("behavior_cues.toml")
_BETWEEN = r"[\s,.;:!-]+"
MAIN, HELD_OUT = "rule", "held_out"
"""Names of the two tables."""


@dataclass(frozen=True, slots=True)
class Cues:
    """The cues of one judge, by slot; those of `both` included."""

    name: str
    slots: Mapping[str, tuple[str, ...]]

    def find(self, slot: str, text: str) -> str:
        """Return the words of `text` (bare) that match a cue of `slot`, or nothing."""
        for phrase in self.slots[slot]:
            found = pattern(phrase).search(text)
            if found:
                return found.group().strip()
        return ""


@cache
def cues(name: str) -> Cues:
    """Return the cues of the judge `name`."""
    tables = read_toml(_FILE)
    return Cues(name, {slot: tuple(p) for slot, p in {**tables["both"], **tables[name]}.items()})


@cache
def pattern(phrase: str) -> re.Pattern[str]:
    """Return what finds a phrase in bare text."""
    out, glue = "", ""
    for word in phrase.split():
        if word == "^":
            out, glue = r"^\W*", ""
        elif word == "$":
            return re.compile(f"{out}(?!\\w)\\W*$")
        elif word == "..":
            out, glue = f"{out}{glue}(?:\\w+{_BETWEEN}){{0,3}}", ""
        else:
            inner = r"\w+" if word == "_" else "|".join(map(re.escape, word.split("|")))
            out, glue = f"{out}{glue}(?:{inner})", _BETWEEN
    return re.compile(rf"(?<!\w){out}" + (r"(?!\w)" if out[-1:] == ")" else ""))


def samples(phrase: str) -> Iterator[str]:
    """Yield a text for every alternative that a phrase stands for."""
    fillers = {"^": (), "$": (), "..": ("",), "_": ("word",)}
    choices = [fillers.get(w, tuple(w.split("|"))) for w in phrase.split()]
    for combination in itertools.product(*(c for c in choices if c)):
        yield " ".join(word for word in combination if word)
