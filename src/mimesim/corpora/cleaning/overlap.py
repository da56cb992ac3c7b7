"""Texts that two dialogues share: the normal form, its fingerprints, and the deny-list.

A user's message of at least eight words, taken without case and punctuation, is compared by a
64-bit fingerprint. The deny-list holds such fingerprints of sets that only measure: no text, and
none can be had from it.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from mimesim import seeds
from mimesim.corpora.base import HumanTurn
from mimesim.errors import DataError

LEAST_WORDS = 8
"""Words from which on two people hardly write the same by chance."""

_DIGITS = 16
_WORD = re.compile(
    "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_LINE = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")


def words_of(text: str) -> list[str]:
    """Return the words of a text without case and punctuation; each Han or kana sign is one."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())


def fingerprint(words: Iterable[str]) -> int:
    """Return the 64-bit fingerprint of normalized words, as a signed number."""
    return _signed(seeds.fingerprint(" ".join(words), _DIGITS))


def user_fingerprints(turns: Iterable[HumanTurn]) -> list[int]:
    """Return the fingerprints of the user's messages that are long enough, each once."""
    found = (words_of(turn.text) for turn in turns if turn.role == "user")
    return list(dict.fromkeys(fingerprint(words) for words in found if len(words) >= LEAST_WORDS))


def as_line(value: int) -> str:
    """Return a fingerprint as it stands in a deny-list."""
    return f"{value & (1 << 64) - 1:0{_DIGITS}x}"


def read_deny_list(path: Path) -> frozenset[int]:
    """Read a deny-list: one fingerprint of 16 hex digits a line, `#` begins a remark.

    Raises:
        DataError: missing, or a line is something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise DataError("file not found", where=str(path), expected="a deny-list") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the deny-list: {error}", where=str(path)) from error
    return _parsed(text, str(path))


@functools.cache
def own_deny_list() -> frozenset[int]:
    """Return the fingerprints of the evaluation-only sets, from the package."""
    place = resources.files("mimesim.corpora.cleaning") / "deny_list.txt"
    return _parsed(place.read_text(encoding="utf-8"), "deny_list.txt")


def _parsed(text: str, where: str) -> frozenset[int]:
    found = set()
    for number, line in enumerate(text.split("\n"), start=1):
        value = line.partition("#")[0].strip()
        if not value:
            continue
        if not _LINE.fullmatch(value):
            raise DataError(
                "not a fingerprint",
                where=f"{where}:{number}",
                expected=f"{_DIGITS} hex digits, as `mimesim data fingerprint` writes them",
            )
        found.add(_signed(value))
    return frozenset(found)


def _signed(digits: str) -> int:
    value = int(digits, 16)
    return value - (1 << 64) if value >> 63 else value
