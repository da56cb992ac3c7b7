"""Whether a dataclass that was built from JSON holds what its annotations promise.

Dataclasses do not check types, so a complete but wrong line of a file would get in and break its
reader much later, or be counted. `misfit` finds the first wrong value and names its place.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

_NAMES: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


class Misfit(typing.NamedTuple):
    """A value of the wrong type: where, and what was expected there."""

    place: str
    expected: str

    def below(self, step: str) -> Misfit:
        """Return the same, seen from one level further up."""
        return Misfit(step + self.place, self.expected)


def misfit(value: Any, hint: Any = None) -> Misfit | None:
    """Return the first value inside `value` that its annotation does not allow; None = all fit.

    Args:
        value: an instance of a dataclass, or any value with `hint`.
        hint: its type; None = the value's own class, whose fields are looked at.
    """
    wanted: Any = type(value) if hint is None else hint
    return _checker(wanted)(value)


_Checker = Callable[[Any], Misfit | None]


@cache
def _checker(hint: Any) -> _Checker:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (Any, object):
        return lambda value: None
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    if origin is tuple:
        return _sequence(_checker(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(_checker(arguments[1]))
    if is_dataclass(hint):
        return _fields(typing.cast(type, hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _leaf((hint,), "one of " + ", ".join(str(member.value) for member in hint))
    kinds = (int, float) if hint is float else (hint,)
    return _leaf(kinds, _NAMES.get(hint, str(hint)))


def _leaf(kinds: tuple[type, ...], expected: str) -> _Checker:
    wrong = Misfit("", expected)
    return lambda value: None if type(value) in kinds else wrong  # True is no number here


def _union(choices: Iterable[Any]) -> _Checker:
    checkers = [_checker(choice) for choice in choices if choice is not type(None)]
    optional = type(None) in choices

    def check(value: Any) -> Misfit | None:
        if value is None and optional:
            return None
        found = [checker(value) for checker in checkers]
        return None if None in found else found[0]

    return check


def _sequence(inner: _Checker) -> _Checker:
    def check(value: Any) -> Misfit | None:
        if type(value) is not tuple:
            return Misfit("", "a list")
        for i, entry in enumerate(value):
            wrong = inner(entry)
            if wrong is not None:
                return wrong.below(f"[{i}]")
        return None

    return check


def _mapping(inner: _Checker) -> _Checker:
    def check(value: Any) -> Misfit | None:
        if not isinstance(value, Mapping):
            return Misfit("", "an object")
        for key, entry in value.items():
            wrong = inner(entry)
            if wrong is not None:
                return wrong.below(f".{key}")
        return None

    return check


def _fields(cls: type[Any]) -> _Checker:
    hints = typing.get_type_hints(cls)
    checkers = [(entry.name, _checker(hints[entry.name])) for entry in fields(cls)]

    def check(value: Any) -> Misfit | None:
        if not isinstance(value, cls):
            return Misfit("", "an object")
        for name, inner in checkers:
            wrong = inner(getattr(value, name))
            if wrong is not None:
                return wrong.below(f".{name}")
        return None

    return check
