"""The rule judge of the gym `travel`: what a question asks for, told by words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from mimesim.envs.packs import fold
from mimesim.errors import DataError

Cue = tuple[str, ...]
"""Words that must all occur, as whole words."""
SMALL_TALK, HELD, NOT_HELD, VAGUE = 1, 2, 3, 4
"""What an utterance is: small talk, about a wish there is, about one there is not, too vague."""
MOST_TOPICS = 2
"""Wishes that one question may touch; with more it asks for everything at once."""
_GENERAL = (
    "preference", "preferences", "anything else", "requirement", "requirements", "wish", "wishes",
    "needs", "looking for", "details", "tell me more", "like best", "in general",
)  # fmt: skip
_ASKS = (
    "what", "which", "where", "when", "how", "who", "do you", "would you", "should", "is there",
    "are there", "tell me",
)  # fmt: skip
_NAMES = {
    "flight": ("flight", "flights"),
    "hotel": ("hotel", "hotels"),
    "apartment": ("apartment", "apartments"),
    "rental_car": ("rental car", "rental cars", "car rental", "rental_car", "car rentals"),
    "restaurant": ("restaurant", "restaurants"),
}
_STOP_WORDS = (
    " about after also before being both could does down each else ever every from have having "
    "here into just like made make many more most much must need needs only other over prefer "
    "prefers preferred really same should some such than that their them then there these they "
    "this those under very want wants wanted well were what when where which while will wish "
    "with within without would your "
)


def read_cues(value: Any, where: str) -> tuple[Cue, ...]:
    """Read the cues of one wish: words or phrases, or lists of them that belong together.

    Raises:
        DataError: anything else.
    """
    entries = [[entry] if isinstance(entry, str) else entry for entry in _listed(value)]
    for entry in entries:
        if not _listed(entry) or not all(isinstance(word, str) and word.strip() for word in entry):
            raise DataError(
                f"cues hold {entry!r:.60}", where=where, expected="words, or lists of words"
            )
    if not entries:
        raise DataError(f"cues are {value!r:.60}", where=where, expected="one word at least")
    return tuple(tuple(entry) for entry in entries)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def derived_cues(texts: Sequence[str]) -> list[tuple[Cue, ...]]:
    """Return cues for wishes that have none: content words that no other of them shares."""
    words = [
        list(
            dict.fromkeys(
                word
                for word in re.findall(r"[^\W\d_]{4,}", fold(t))
                if f" {word} " not in _STOP_WORDS
            )
        )
        for t in texts
    ]
    shared = Counter(word for found in words for word in found)
    return [tuple((word,) for word in found if shared[word] == 1) for found in words]


def classify(
    utterance: str, wishes: Mapping[str, tuple[Cue, ...]], open_ids: Sequence[str]
) -> tuple[int, str | None]:
    """Tell what an utterance is, and which open wish it asks for (most cues, then lowest id).

    Args:
        utterance: the agent's words.
        wishes: id -> cues of every wish of the task.
        open_ids: those that can still be asked for.
    """
    text = fold(utterance)
    hits = {key: sum(_all_in(text, cue) for cue in cues) for key, cues in wishes.items()}
    touched = [key for key, count in hits.items() if count]
    if len(touched) > MOST_TOPICS:
        return VAGUE, None
    asked = [key for key in touched if key in open_ids]
    if asked:
        return HELD, min(asked, key=lambda key: (-hits[key], open_ids.index(key)))
    if any(_has(text, phrase) for phrase in _GENERAL):
        return VAGUE, None
    asks = "?" in text or any(_has(text, phrase) for phrase in _ASKS)
    return (NOT_HELD if asks or touched else SMALL_TALK), None


def find_aspect(request: str, arguments: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the aspect that a search asks for: the only one named, with all its arguments."""
    text = fold(request)
    named = [name for name, words in _NAMES.items() if any(_has(text, word) for word in words)]
    if len(named) != 1 or named[0] not in arguments:
        return None
    values = _values(arguments[named[0]])
    return named[0] if all(_has(text, value) for value in values) else None


def plain_name(text: str) -> str:
    """Return the name of an aspect however it was written; unknown ones as they are."""
    written = fold(re.sub("[_-]", " ", text))
    return next((name for name, words in _NAMES.items() if written in words), text)


def _values(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in _values(inner)]
    if isinstance(value, list | tuple):
        return [text for inner in value for text in _values(inner)]
    return [] if value is None or value == "" else [fold(str(value))]


def _all_in(text: str, cue: Cue) -> bool:
    return all(_has(text, word) for word in cue)


def _has(text: str, phrase: str) -> bool:
    return _word(phrase).search(text) is not None


@lru_cache(maxsize=4096)
def _word(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(fold(phrase))}(?!\w)")
