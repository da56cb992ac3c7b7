"""One word list: how its entries match a turn, and which words spare the search.

A phrase is made of whole words; its inner blanks match any white space, its apostrophes may be
absent. A regex is used as it stands. Both are tried on the lower-cased turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Match = Literal["search", "match_start", "whole_turn", "count"]
Kind = Literal["phrase", "regex", "chars"]
TRAILING = " !.,-"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a word list."""

    type: Kind
    value: str


@dataclass(frozen=True, slots=True)
class Detector:
    """One word list, ready to match.

    Attributes:
        match: where in a turn: anywhere, from its start, the whole turn, or how often.
        entries: as written.
        trailing: signs that may follow in a whole turn.
    """

    name: str
    match: Match
    entries: tuple[Entry, ...]
    trailing: str = TRAILING
    _patterns: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the entries: all phrases as one pattern, each regex as it stands."""
        phrases = tuple(e.value for e in self.entries if e.type == "phrase")
        sources = [_phrases(phrases)] if phrases else []
        for entry in self.entries:
            if entry.type != "phrase":
                chars = f"[{re.escape(entry.value)}]"
                sources.append(chars if entry.type == "chars" else entry.value)
        object.__setattr__(self, "_patterns", tuple(map(self._compiled, sources)))

    def _compiled(self, source: str) -> re.Pattern[str]:
        if self.match == "whole_turn" and self.trailing:
            return re.compile(f"(?:{source})[{re.escape(self.trailing)}]*")
        return re.compile(source)

    @property
    def by_key(self) -> dict[str, tuple[str, ...]] | None:
        """Word -> phrases that need it; one of the words stands in every text that matches.

        None = the list has entries of which no word can be told.
        """
        found: dict[str, list[str]] = {}
        for entry in self.entries:
            keys = _keys(entry.value) if entry.type == "phrase" else None
            if keys is None:
                return None
            for key in keys:
                found.setdefault(key, []).append(entry.value)
        return {key: tuple(phrases) for key, phrases in found.items()}

    def only(self, phrases: Sequence[str]) -> re.Pattern[str]:
        """Return the pattern of some of its phrases."""
        return self._compiled(_phrases(phrases))

    @property
    def source(self) -> str:
        """The entries as one text, for the fingerprint; of one regex the regex itself."""
        return "|".join(entry.value for entry in self.entries)

    def hits(self, text: str) -> bool:
        """Tell whether the list matches a turn; `text` is lower-cased."""
        if self.match == "search":
            return any(pattern.search(text) for pattern in self._patterns)
        text = text.strip()
        if self.match == "match_start":
            return any(pattern.match(text) for pattern in self._patterns)
        return any(pattern.fullmatch(text) for pattern in self._patterns)

    def count(self, text: str) -> int:
        """Return the number of matches that do not overlap."""
        return sum(1 for pattern in self._patterns for _ in pattern.finditer(text))


class Needed:
    """The phrases of one list that need one word, compiled when a text first holds the word."""

    __slots__ = ("_detector", "_match", "_phrases", "name")

    def __init__(self, detector: Detector, key: str, phrases: tuple[str, ...]) -> None:
        self.name = detector.name
        self._detector = detector
        self._phrases = phrases
        self._match: Callable[[str], object] | None = None
        if detector.match == "search" and key in phrases:
            self._match = bool  # the word is a phrase itself; no text that holds it is empty

    def hits(self, text: str) -> bool:
        """Tell whether one of the phrases matches a text with the word."""
        if self._match is None:
            pattern = self._detector.only(self._phrases)
            self._match = pattern.search
            if self._detector.match == "whole_turn":
                self._match = lambda text: pattern.fullmatch(text.strip())
        return bool(self._match(text))


def _phrases(phrases: Sequence[str]) -> str:
    """Return the pattern of some phrases: whole words, any white space, apostrophes optional."""
    spelled = [
        r"\s+".join(re.escape(word).replace("'", "'?") for word in text.lower().split())
        for text in phrases
    ]
    return rf"(?<!\w)(?:{'|'.join(spelled)})(?!\w)"


def _keys(text: str) -> set[str] | None:
    """Return the word-character runs of which one stands in every text that a phrase matches.

    They are those that one of its words may begin with (`don't` is read as `don` or `dont`): its
    longest without an apostrophe, which is the rarest as a rule.
    """
    for word in sorted(text.lower().split(), key=lambda word: ("'" in word, -len(word))):
        pieces = word.split("'")
        if all(re.fullmatch(r"\w+", piece) for piece in pieces):
            return {"".join(pieces[: i + 1]) for i in range(len(pieces))}
    return None
