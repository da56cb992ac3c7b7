"""From raw values to typed dataclasses, collecting every problem on the way."""

from __future__ import annotations

import math
import os
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from mimesim.config.sources import Raw, Source, source_of
from mimesim.errors import ConfigError
from mimesim.registry import closest

T = TypeVar("T")

SECRET = re.compile(
    r"(^|[_-])(api_?key|secret|password|passwd|token|authorization)$", re.IGNORECASE
)
"""Names of keys whose values are never shown."""


def unwrapped(value: Any) -> Any:
    """Return a tree of `Raw` leaves as plain values."""
    if isinstance(value, dict):
        return {key: unwrapped(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [unwrapped(inner) for inner in value]
    return value.value if isinstance(value, Raw) else value


class Builder:
    """Turns a tree of raw values into dataclasses and collects every problem on the way.

    A lenient one passes unknown keys over, and keeps their names.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self.problems: list[ConfigError] = []
        self.passed_over: list[str] = []
        self._lenient = lenient

    def build(self, cls: type[Any], tree: Mapping[str, Any], path: tuple[str, ...]) -> Any:
        """Return an instance of `cls`, or None when a problem was recorded."""
        before = len(self.problems)
        hints = typing.get_type_hints(cls)
        known = [entry.name for entry in fields(cls) if entry.init]
        given: dict[str, Any] = {}
        for key, value in tree.items():
            if key in known:
                given[key] = self.convert(hints[key], value, (*path, key))
            elif not key.startswith("x-"):
                dotted = ".".join((*path, key))
                if self._lenient:
                    self.passed_over.append(dotted)
                    continue
                self._add(
                    f"unknown key {dotted!r}{closest(key, known)}",
                    value,
                    (*path, key),
                    "one of " + ", ".join(known),
                )
        for entry in fields(cls):
            required = entry.default is MISSING and entry.default_factory is MISSING
            if required and entry.init and entry.name not in tree:
                dotted = ".".join((*path, entry.name))
                self._add(f"the key {dotted!r} is missing", tree, path, "a value")
        if len(self.problems) > before:
            return None
        try:
            return cls(**given)
        except ConfigError as error:
            where = error.where or self._named(error.what, tree, path)
            self.problems.append(
                ConfigError(error.what, where=where, expected=error.expected, mend=error.mend)
            )
        return None

    def _named(self, what: str, tree: Mapping[str, Any], path: tuple[str, ...]) -> str:
        """Return where the key was set that a config complains of; "" = it has its default."""
        quoted = re.match(r"'([\w.]+)'", what)
        keys = quoted.group(1).split(".") if quoted else [""]
        node: Any = tree
        for key in keys:
            if not isinstance(node, dict) or key not in node:
                return ""
            node = node[key]
        return self._where(node, (*path, *keys))

    def convert(self, hint: Any, value: Any, path: tuple[str, ...]) -> Any:
        """Return `value` as the type `hint`, or None when a problem was recorded."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments, value, path)
        if is_dataclass(hint):
            if not isinstance(value, dict):
                return self._add(f"{'.'.join(path)!r} is not a table", value, path, "a table")
            return self.build(typing.cast(type, hint), value, path)
        if origin in (tuple, list):
            return self._sequence(origin, arguments, value, path)
        if origin is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
            return self._mapping(arguments, value, path)
        if hint in (Any, object):
            return unwrapped(value)
        if isinstance(value, dict | list):
            kind = "table" if isinstance(value, dict) else "list"
            return self._add(f"{'.'.join(path)!r} is a {kind}", value, path, _name(hint))
        return self._leaf(hint, value, path)

    def _union(self, choices: Sequence[Any], value: Any, path: tuple[str, ...]) -> Any:
        if type(None) in choices and _is_none(value):
            return None
        trials: list[Builder] = []
        for choice in choices:
            if choice is type(None):
                continue
            trial = Builder()
            built = trial.convert(choice, value, path)
            if not trial.problems:
                return built
            trials.append(trial)
        self.problems += trials[0].problems
        return None

    def _sequence(
        self, origin: type, arguments: Sequence[Any], value: Any, path: tuple[str, ...]
    ) -> Any:
        if not isinstance(value, list):
            return self._add(f"{'.'.join(path)!r} is not a list", value, path, "a list [...]")
        hints = list(arguments[:1] or (Any,)) * len(value)
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            hints = list(arguments)
        if len(hints) != len(value):
            what = f"{'.'.join(path)!r} has {len(value)} entries"
            return self._add(what, value, path, f"a list of {len(hints)}")
        return origin(
            self.convert(hint, entry, (*path, str(i)))
            for i, (hint, entry) in enumerate(zip(hints, value, strict=True))
        )

    def _mapping(self, arguments: Sequence[Any], value: Any, path: tuple[str, ...]) -> Any:
        if not isinstance(value, dict):
            return self._add(f"{'.'.join(path)!r} is not a table", value, path, "a table")
        inner = arguments[1] if len(arguments) > 1 else Any
        return {key: self.convert(inner, entry, (*path, key)) for key, entry in value.items()}

    def _leaf(self, hint: Any, raw: Raw, path: tuple[str, ...]) -> Any:
        try:
            return _as_type(hint, raw)
        except (ValueError, TypeError):
            mend = ""
            if hint is str:
                mend = "put the text in quotes"
            what = f"{'.'.join(path)!r} cannot be {raw.value!r}"
            if SECRET.search(path[-1]):
                what = f"{'.'.join(path)!r} has a value of the wrong type"
            return self._add(what, raw, path, _name(hint), mend)

    def _add(
        self, what: str, value: Any, path: tuple[str, ...], expected: str, mend: str = ""
    ) -> None:
        self.problems.append(
            ConfigError(what, where=self._where(value, path), expected=expected, mend=mend)
        )

    @staticmethod
    def _where(value: Any, path: Sequence[str]) -> str:
        return source_of(value).at(path)


def _is_none(value: Any) -> bool:
    return isinstance(value, Raw) and (value.value is None or value.text in ("none", "null"))


def _as_type(hint: Any, raw: Raw) -> Any:
    if typing.get_origin(hint) is typing.Literal:
        return _choice(typing.get_args(hint), raw)
    if hint is str and raw.text is not None and not isinstance(raw.value, str):
        return raw.text
    if hint is Path:
        return _path(_exactly(str, raw.value), raw.source)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(raw.value)
    if hint in _SIMPLE:
        return _SIMPLE[hint](raw.value)
    raise TypeError(f"config fields of type {hint!r} are not supported")


def _choice(choices: Sequence[Any], raw: Raw) -> Any:
    for choice in choices:
        if raw.value == choice or raw.text == choice:
            return choice
    raise ValueError(raw.value)


def _exactly(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise TypeError(value)
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str | float):
        raise TypeError(value)
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(value)
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | str | float):
        raise TypeError(value)
    if not math.isfinite(float(value)):
        raise ValueError(value)
    return float(value)


_SIMPLE: dict[Any, Callable[[Any], Any]] = {
    str: lambda value: _exactly(str, value),
    bool: lambda value: _exactly(bool, value),
    int: _integer,
    float: _float,
}


HUB = "hub:"
"""What stands before a hub id where a path is meant as well."""


def _path(text: str, source: Source) -> Path:
    """Return the path; a relative one is relative to the file that names it, a hub id is none."""
    path = Path(text).expanduser()
    if path.is_absolute() or source.folder is None or text.startswith(HUB):
        return path
    path = source.folder / path
    short = Path(os.path.normpath(path))
    # `..` is worked out for people to read, and since a packaged recipe is read as if it lay in a
    # folder that need not exist; behind a link it may lead elsewhere, and stays.
    return path if source.folder.is_dir() and short.resolve() != path.resolve() else short


def _name(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return "one of " + ", ".join(repr(choice) for choice in typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "one of " + ", ".join(repr(member.value) for member in hint)
    names = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}
    return names.get(hint, "a path" if hint is Path else str(hint))
