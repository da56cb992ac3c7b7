"""Cues: the words by which scripted people and rule judges tell what a text is about.

A cue is a list of keyword groups, `[["guests"], ["how", "many"]]`; it matches a text in which all
words of at least one group occur as whole words, whatever their case and order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mimesim.errors import DataError
from mimesim.stats.texts import words

Cue = tuple[tuple[str, ...], ...]
MIN_LETTERS = 4
"""Shortest word from which a cue is derived."""
_STOPWORDS = frozenset(
    words(
        "about after also because been being both cannot could does doing done each even every"
        " from have having here into just less like made make many more most much must need only"
        " other ours over rather same should some such than that their them then there these they"
        " this those through until upon very want well were what when where which while will with"
        " without would your yours"
    )
)


def read_cue(value: Any, *, where: str) -> Cue:
    """Return a cue as it stands in a task.

    Raises:
        DataError: it is no list of non-empty lists of words.
    """
    groups = value if isinstance(value, list | tuple) else ()
    found = tuple(
        tuple(word for part in group for word in words(part))
        if isinstance(group, list | tuple) and all(isinstance(part, str) for part in group)
        else ()
        for group in groups
    )
    if not found or not all(found):
        raise DataError(
            f"a cue is {value!r:.60}", where=where, expected='keyword groups, e.g. [["when"]]'
        )
    return found


def matches(cue: Cue, text: str) -> bool:
    """Tell whether `text` holds all words of a group of `cue`."""
    said = set(words(text))
    return any(said.issuperset(group) for group in cue)


def derived(text: str, common: Iterable[str] = ()) -> list[list[str]]:
    """Return a cue for a text that came without one: each of its content words is a group.

    Args:
        text: the hidden text.
        common: words that tell nothing here, e.g. those of the task itself.
    """
    useless = {word for one in common for word in words(one)} | _STOPWORDS
    kept: Sequence[str] = [w for w in words(text) if len(w) >= MIN_LETTERS and w not in useless]
    return [[word] for word in dict.fromkeys(kept)]
