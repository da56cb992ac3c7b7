"""Word lists of the user index: our own, and files of others; how they match, and what they are called.

{"schema": "mimesim.usi_lexicon/1", "name": "…", "source": "…", "licence": "…", "language": "en",
"detectors": {"emotion": {"match": "search", "patterns": [{"type": "phrase", "value": "upset"}]}}}
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, get_args

from mimesim import jsonio
from mimesim.bench.suites.usi.bounded import check_speed
from mimesim.bench.suites.usi.detectors import (
    TRAILING,
    Detector,
    Entry,
    Kind,
    Match,
    Needed,
)
from mimesim.errors import DataError
from mimesim.seeds import fingerprint

SCHEMA = "mimesim.usi_lexicon/1"
OWN = "usi-own"
CUSTOM = "usi-custom"
OFFICIAL = "tau-usi"
OFFICIAL_FINGERPRINT = "84fcf940d14e9626cf662a1ff5280dc613e4c55fd253b1c5257b32e924266e65"
"""Of the public lists of OdysSim, by `Lexicon.fingerprint`."""

SEARCHED = (
    "politeness",
    "emotion",
    "uncertainty",
    "certainty",
    "accusation",
    "pivot",
    "identity_confusion",
    "pushback_q",
    "clarify_q",
    "info_q",
)
LEXICAL = (*SEARCHED, "ack_only")
"""Detectors that every lexicon must have."""

_ALLOWED: Mapping[str, tuple[Match, ...]] = {
    **dict.fromkeys(SEARCHED, ("search",)),
    "ack_only": ("whole_turn", "match_start"),
    "dash": ("search",),
    "identifier": ("count",),
}
_FILE = Path(__file__).with_name("lists.toml")
_CHOICE = re.compile(r"\{([^{}]*)\}")
_HEAD = {"schema", "name", "source", "licence", "language", "detectors"}


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Word lists for all lexical features.

    Attributes:
        detectors: by name; `dash` and `identifier` only where the file has its own.
        title, source, licence, language: as the file says.
        path: of the file; empty = our own lists.
        verified: whether it gave the golden pairs of the official lists.
    """

    detectors: Mapping[str, Detector]
    title: str = ""
    source: str = ""
    licence: str = ""
    language: str = "en"
    path: str = ""
    verified: bool = False
    _always: tuple[Detector, ...] = field(init=False, repr=False, compare=False)
    _by_key: Mapping[str, Sequence[Needed]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sort the phrases by the words that they need."""
        always, by_key = [], dict[str, list[Needed]]()
        for one in map(self.detectors.__getitem__, LEXICAL):
            keys = one.by_key if one.match != "match_start" else None
            if keys is None:
                always.append(one)
            for key, phrases in (keys or {}).items():
                by_key.setdefault(key, []).append(Needed(one, key, phrases))
        object.__setattr__(self, "_always", tuple(always))
        object.__setattr__(self, "_by_key", by_key)

    def matching(self, text: str, tokens: Iterable[str]) -> set[str]:
        """Return the names of the lexical lists that match a turn.

        Args:
            text: the turn, lower-cased.
            tokens: its runs of word characters; only phrases with a word among them are tried.
        """
        found = {one.name for one in self._always if one.hits(text)}
        for key in self._by_key.keys() & tokens:
            for one in self._by_key[key]:
                if one.name not in found and one.hits(text):
                    found.add(one.name)
        return found

    @property
    def fingerprint(self) -> str:
        """The SHA-256 over all detectors by name, one `name<TAB>entries` a line."""
        lines = [f"{name}\t{one.source}" for name, one in sorted(self.detectors.items())]
        return fingerprint("\n".join(lines), 64)

    @property
    def name(self) -> str:
        """What a score with these lists is called."""
        if not self.path:
            return OWN
        official = self.fingerprint == OFFICIAL_FINGERPRINT and self._as_imported
        return OFFICIAL if official or self.verified else CUSTOM

    @property
    def _as_imported(self) -> bool:
        """Whether the entries also mean what the official ones do: the fingerprint tells values only."""
        kinds = {entry.type for one in self.detectors.values() for entry in one.entries}
        return kinds == {"regex"} and self.detectors["ack_only"].match == "match_start"


@cache
def own_lexicon() -> Lexicon:
    """Return our own lists, which are frozen."""
    table = tomllib.loads(_FILE.read_text("utf-8"))
    detectors = {}
    for name in LEXICAL:
        values = [value for text in table[name] for value in _spelled_out(text)]
        entries = tuple(Entry("phrase", value) for value in values)
        detectors[name] = Detector(name, _ALLOWED[name][0], entries)
    return Lexicon(detectors, title=table["name"], language=table["language"])


def read_lexicon(path: Path | str) -> Lexicon:
    """Read a lexicon file.

    Raises:
        DataError: missing, damaged, an unknown or missing key, or a pattern that is no regex or
            takes too long on some text.
    """
    where = str(path)
    value = jsonio.read_object(path, "schema", "detectors")
    if value["schema"] != SCHEMA:
        raise _wrong(f"not a lexicon: schema {value['schema']!r}", where, repr(SCHEMA))
    _only(value, _HEAD, where)
    table = value["detectors"]
    if not isinstance(table, Mapping):
        raise _wrong("'detectors' is no object", where, "detectors by name")
    _only(table, set(_ALLOWED), f"{where}: detectors")
    missing = [name for name in LEXICAL if name not in table]
    if missing:
        raise _wrong(f"the detector {missing[0]!r} is missing", where, ", ".join(LEXICAL))
    detectors = {name: _detector(name, one, f"{where}: {name}") for name, one in table.items()}
    _check_patterns(detectors, where)
    return Lexicon(
        detectors,
        title=str(value.get("name", "")),
        source=str(value.get("source", "")),
        licence=str(value.get("licence", "")),
        language=str(value.get("language", "en")),
        path=where,
    )


def _detector(name: str, value: Any, where: str) -> Detector:
    if not isinstance(value, Mapping) or not isinstance(value.get("patterns"), list):
        raise _wrong("not a detector", where, "an object with match and a list of patterns")
    _only(value, {"match", "patterns", "trailing"}, where)
    match = value.get("match")
    if match not in _ALLOWED[name]:
        raise _wrong(f"match is {match!r}", where, " or ".join(map(repr, _ALLOWED[name])))
    trailing = value.get("trailing", TRAILING)
    if not isinstance(trailing, str):
        raise _wrong("'trailing' is no text", where, "the signs that may end a turn")
    entries = tuple(_entry(one, f"{where}[{i}]") for i, one in enumerate(value["patterns"]))
    if not entries:
        raise _wrong("no pattern", where, "at least one")
    try:
        return Detector(name, match, entries, trailing)
    except (re.error, OverflowError, RecursionError) as error:
        raise _wrong(
            f"a pattern is no regular expression: {error}", where, "Python's re"
        ) from error


def _entry(value: Any, where: str) -> Entry:
    kinds = get_args(Kind)
    if not isinstance(value, Mapping) or value.keys() != {"type", "value"}:
        raise _wrong("not a pattern", where, "an object with type and value")
    if value["type"] not in kinds:
        raise _wrong(f"type is {value['type']!r}", where, ", ".join(kinds))
    text = value["value"]
    if not isinstance(text, str) or not text.strip():
        raise _wrong("an empty pattern would match everything", where, "a text")
    if value["type"] == "regex":
        try:
            compiled = re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            raise _wrong(f"not a regular expression: {error}", where, "Python's re") from error
        if all(compiled.match(one) for one in _UNLIKE):
            raise _wrong(
                f"the pattern {text[:60]!r} matches everything", where, "what tells turns apart"
            )
    return Entry(value["type"], text)


_UNLIKE = ("", "a", "7", " ", "?\n")
"""What no pattern of use matches all of."""


def _check_patterns(detectors: Mapping[str, Detector], where: str) -> None:
    """Refuse a lexicon with a pattern that some text keeps busy for ages."""
    named = [
        (f"{name}[{place}]", entry.value)
        for name, one in detectors.items()
        for place, entry in enumerate(one.entries)
        if entry.type == "regex"
    ]
    slow = check_speed([value for _, value in named])
    if slow is not None:
        raise DataError(
            f"the pattern {named[slow][1][:60]!r} needs unbounded time on some texts",
            where=f"{where}: {named[slow][0]}",
            expected="a pattern whose time grows with the text, not explodes",
            mend="take repeats out of repeats, such as (a+)+, and alternatives that overlap",
        )


def _only(value: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(value) - known)
    if unknown:
        raise _wrong(f"unknown key {unknown[0]!r}", where, ", ".join(sorted(known)))


def _wrong(what: str, where: str, expected: str) -> DataError:
    return DataError(what, where=where, expected=expected)


def _spelled_out(text: str) -> Iterable[str]:
    """Yield every reading of an entry of our own lists: `{a|b} c` is `a c` and `b c`."""
    parts = _CHOICE.split(text)
    choices = [part.split("|") if i % 2 else [part] for i, part in enumerate(parts)]
    return ("".join(chosen) for chosen in itertools.product(*choices))
