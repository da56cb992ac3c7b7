"""Strict readers for hand-written data: a wrong key or type is one clear `DataError`.

Used by scenario lines and manuals. Every reader takes the place (`file:line`) for the message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mimesim.dialogue.stop import MARKERS, UserAction, mentions_marker
from mimesim.errors import DataError
from mimesim.registry import closest


def known_keys(obj: Any, known: Sequence[str], *, where: str, what: str) -> Mapping[str, Any]:
    """Return `obj` as a map whose keys all belong to `known`.

    Raises:
        DataError: not a map, or an unknown key (with its closest match).
    """
    if not isinstance(obj, Mapping):
        raise DataError(f"{what} is {type(obj).__name__}", where=where, expected="a map of keys")
    for key in obj:
        if key not in known:
            raise DataError(
                f"unknown key {key!r} in {what}{closest(str(key), list(known))}",
                where=where,
                expected="keys among " + ", ".join(known),
            )
    return obj


def text(obj: Mapping[str, Any], key: str, *, where: str, default: str | None = None) -> str:
    """Return the string under `key`; without a default it must be there and hold words.

    Raises:
        DataError: missing, blank or not a string.
    """
    value = obj.get(key, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        raise DataError(f"{key} is {value!r}", where=where, expected="a text")
    return value


def optional_text(obj: Mapping[str, Any], key: str, *, where: str) -> str | None:
    """Return the string under `key`, or None where it is missing or null.

    Raises:
        DataError: neither a string nor null.
    """
    value = obj.get(key)
    if value is not None and not isinstance(value, str):
        raise DataError(f"{key} is {value!r}", where=where, expected="a text or null")
    return value


def texts(obj: Mapping[str, Any], key: str, *, where: str) -> tuple[str, ...]:
    """Return the list of strings under `key` (missing = empty).

    Raises:
        DataError: not a list of strings.
    """
    value = obj.get(key) or ()
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
        raise DataError(f"{key} is {value!r}", where=where, expected="a list of texts")
    return tuple(value)


def mapping(obj: Mapping[str, Any], key: str, *, where: str) -> dict[str, Any]:
    """Return the map under `key` (missing = empty).

    Raises:
        DataError: not a map with string keys.
    """
    value = obj.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise DataError(f"{key} is {value!r}", where=where, expected="a map with text keys")
    return dict(value)


def flag(obj: Mapping[str, Any], key: str, *, where: str) -> bool:
    """Return `obj[key]` as true or false; without it, false.

    Raises:
        DataError: it is neither.
    """
    value = obj.get(key, False)
    if not isinstance(value, bool):
        raise DataError(f"{key} is {value!r}", where=where, expected="true or false")
    return value


def choice(value: Any, allowed: Sequence[str], *, key: str, where: str) -> str:
    """Return `value` if it is one of `allowed`.

    Raises:
        DataError: it is not; names the closest match.
    """
    if value not in allowed:
        near = closest(value, list(allowed)) if isinstance(value, str) else ""
        raise DataError(
            f"{key} is {value!r}{near}", where=where, expected="one of " + ", ".join(allowed)
        )
    return str(value)


def strings_in(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (path, string) for each string inside JSON values, keys included."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield path, str(key)
            yield from strings_in(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value):
            yield from strings_in(inner, f"{path}[{position}]")


def refuse_markers(obj: Mapping[str, Any], extra: Sequence[str], *, where: str) -> None:
    """Refuse scenario data that holds an end marker: it could end a run by itself.

    Raises:
        DataError: naming the key that holds it.
    """
    markers = {**MARKERS, **dict.fromkeys(extra, UserAction.END)}
    for path, value in strings_in(obj):
        if mentions_marker(value, markers):
            raise DataError(
                f"{path or 'a key'} holds an end marker",
                where=where,
                expected="text without " + ", ".join(markers),
                mend="write the scenario without it; a script ends by itself",
            )
