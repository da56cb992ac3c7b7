"""Texts that the repeats of a pattern match, read off its parsed form."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

_parser: Any = re._parser  # type: ignore[attr-defined]
_codes: Any = re._constants  # type: ignore[attr-defined]

_SOME = 3
"""Examples of any part that are made at most, and signs of a class that are tried."""
_REPEATED = 40
"""Repeats of a pattern that are read at most."""
_LEAST = 30
_LETTERS = "a1 _.;,?!'-\n"
_REPEATS = (_codes.MAX_REPEAT, _codes.MIN_REPEAT, _codes.POSSESSIVE_REPEAT)
_CATEGORIES = {
    _codes.CATEGORY_DIGIT: r"\d",
    _codes.CATEGORY_NOT_DIGIT: r"\D",
    _codes.CATEGORY_SPACE: r"\s",
    _codes.CATEGORY_NOT_SPACE: r"\S",
    _codes.CATEGORY_WORD: r"\w",
    _codes.CATEGORY_NOT_WORD: r"\W",
}


def repeated(pattern: str) -> list[tuple[str, str]]:
    """Return for the repeats of a pattern a text that leads to each and one that it takes again."""
    found = dict.fromkeys(_repeats(_parser.parse(pattern), ""))
    return list(itertools.islice((one for one in found if one[1]), _REPEATED))


def _repeats(parts: Any, before: str) -> Iterator[tuple[str, str]]:
    for code, value in parts:
        for inner in _inside(code, value):
            if code in _REPEATS:
                yield from ((before, example) for example in _examples(inner))
            yield from _repeats(inner, before)
        before += _options(code, value)[0]


def _inside(code: Any, value: Any) -> Sequence[Any]:
    """Return the patterns inside a part."""
    if code in _REPEATS:
        return [value[2]]
    if code is _codes.SUBPATTERN:
        return [value[3]]
    if code is _codes.ATOMIC_GROUP:
        return [value]
    if code is _codes.BRANCH:
        return list(value[1])
    if code in (_codes.ASSERT, _codes.ASSERT_NOT):
        return [value[1]]
    if code is _codes.GROUPREF_EXISTS:
        return [one for one in value[1:] if one is not None]
    return []


def _examples(parts: Any) -> list[str]:
    """Return a few texts that a pattern matches, as a rule: what is asserted is not looked at."""
    options = [_options(code, value) for code, value in parts]
    first = ["".join(one[0] for one in options)]
    for place, several in enumerate(options):  # one part at a time takes another of its texts
        head, tail = (
            "".join(o[0] for o in side) for side in (options[:place], options[place + 1 :])
        )
        first += [head + other + tail for other in several[1:]]
    return list(dict.fromkeys(first))[: 2 * _SOME]


def _options(code: Any, value: Any) -> list[str]:
    """Return a few texts of one part; at least one, which may be empty."""
    if code is _codes.LITERAL:
        return [chr(value)]
    if code is _codes.IN:
        return _of_class(value)
    if code is _codes.NOT_LITERAL:
        return [sign for sign in _LETTERS if sign != chr(value)][:_SOME]
    if code is _codes.ANY:
        return ["a"]
    if code in _REPEATS:
        return [one * min(max(value[0], 1), _LEAST) for one in _examples(value[2])]
    if code in (_codes.ASSERT, _codes.ASSERT_NOT, _codes.GROUPREF_EXISTS):
        return [""]
    found = [text for inner in _inside(code, value) for text in _examples(inner)]
    return found[: 2 * _SOME] or [""]


def _of_class(members: Sequence[tuple[Any, Any]]) -> list[str]:
    negated = members[0][0] is _codes.NEGATE
    named = [chr(v if c is _codes.LITERAL else v[0]) for c, v in members if c in _SIGNS]
    candidates = dict.fromkeys((*named, *_LETTERS))
    fit = [one for one in candidates if any(_is_in(one, *m) for m in members) != negated]
    return fit[:_SOME] or ["a"]


_SIGNS = (_codes.LITERAL, _codes.RANGE)


def _is_in(sign: str, code: Any, value: Any) -> bool:
    if code is _codes.LITERAL:
        return bool(ord(sign) == value)
    if code is _codes.RANGE:
        return bool(value[0] <= ord(sign) <= value[1])
    return bool(code is _codes.CATEGORY and re.match(_CATEGORIES[value], sign))
