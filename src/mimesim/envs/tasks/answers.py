"""Reading answers: the tag, letters, whole words, and the list shapes of the public row files.

An answer stands in the first answer tag of the public text; without a tag there is none. What is
inside must be the answer and nothing else, so that no list of guesses scores.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

from mimesim import jsonio
from mimesim.dialogue.thinking import split
from mimesim.stats.texts import words

LETTERS = string.ascii_uppercase
_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_QUOTED = r"'((?:[^'\\]|\\.)*)'" + "|" + r'"((?:[^"\\]|\\.)*)"'
_LITERAL = re.compile(rf"\[\s*(?:(?:{_QUOTED})\s*(?:,\s*(?:{_QUOTED})\s*)*,?\s*)?\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[\da-f]{2}|u[\da-f]{4}|U[\da-f]{8}|.)", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r"}
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_MARKS = str.maketrans("", "", string.punctuation)


def tagged(said: str) -> str | None:
    """Return the stripped content of the first answer tag, reasoning removed; None = no tag."""
    found = _TAG.search(split(said).text)
    return found.group(1).strip() if found else None


def letter(said: str, allowed: str, *, either_case: bool = True) -> str | None:
    """Return the upper-case letter that is the whole answer, or None."""
    inside = tagged(said)
    if inside is None:
        return None
    chosen = inside.upper() if either_case else inside
    return chosen if len(chosen) == 1 and chosen in allowed else None


def names(needle: str, text: str) -> bool:
    """Tell whether `needle` stands in `text` as a whole word or phrase, whatever its case."""
    wanted = needle.strip().casefold()
    if not wanted:
        return False
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", text.casefold()) is not None


def token_f1(truth: str, said: str) -> float:
    """Return the token F1 of two texts, lower-cased, without articles and punctuation."""
    return _f1(_normal(truth), _normal(said))


def likeness(first: str, second: str) -> float:
    """Return how much two texts share: the F1 of their words; 1 = the same words."""
    return _f1(words(first), words(second))


def lettered(options: Sequence[str]) -> list[tuple[str, str]]:
    """Return options with their letters, for a prompt."""
    return list(zip(LETTERS, options, strict=False))


def as_list(value: Any) -> Any:
    """Return a list that a file keeps as text, in JSON or as a Python list of strings.

    Anything else comes back as it is, for the schema to refuse.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        return jsonio.loads(text)
    except ValueError:
        pass
    if not _LITERAL.fullmatch(text):
        return value
    pieces = re.findall(_QUOTED, text)
    return [_ESCAPE.sub(_unescaped, single or double) for single, double in pieces]


def as_object(value: Any) -> Any:
    """Return an object that a file keeps as JSON text; anything else comes back as it is."""
    if not isinstance(value, str):
        return value
    try:
        return jsonio.loads(value)
    except ValueError:
        return value


Texts = Annotated[list[str], BeforeValidator(as_list)]
"""A list of strings, which some files keep as text."""


def raw_fields(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row without its empty cells, a JSON text under `raw` unfolded.

    Tables of many tasks hold every field of all of them, empty where a row has none, at any depth.
    """
    fields: dict[str, Any] = _filled(extra)
    inner = as_object(fields.pop("raw", None))
    if isinstance(inner, Mapping):
        fields |= _filled(inner)
    return fields


def _unescaped(found: re.Match[str]) -> str:
    code = found.group(1)
    return chr(int(code[1:], 16)) if len(code) > 1 else _CONTROL.get(code, code)


def _filled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _filled(inner) for k, inner in value.items() if inner is not None}
    return [_filled(inner) for inner in value] if isinstance(value, list) else value


def _normal(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower()).translate(_MARKS).split()


def _f1(truth: list[str], said: list[str]) -> float:
    shared = sum((Counter(truth) & Counter(said)).values())
    return 2 * shared / (len(truth) + len(said)) if shared else 0.0
