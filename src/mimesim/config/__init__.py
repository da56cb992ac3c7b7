"""Frozen typed configs from files, the environment and `--set`, with unknown keys as errors.

A config is a frozen dataclass whose fields are typed and have defaults. Precedence: defaults <
files in order < `MIMESIM__A__B=value` < `key=value` overrides. TOML and JSON are read always, YAML
where PyYAML is installed. Keys that begin with `x-` are the author's own notes; two of them mean
something in a recipe: `x-config` and the table `x-quick`. `${VAR}` and
`${VAR:-default}` are replaced inside strings of files. The resolved config can be written beside
the results with `dump`, which hides secrets.
"""

from __future__ import annotations

import os
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mimesim import jsonio
from mimesim.config.build import SECRET, Builder, unwrapped
from mimesim.config.sources import (
    Source,
    apply_environment,
    apply_override,
    merge,
    put,
    read_dotenv,
    read_file,
    substituted,
    wrapped,
)
from mimesim.errors import ConfigError
from mimesim.seeds import fingerprint

T = TypeVar("T")

_URL_LOGIN = re.compile(r"(?<=://)(?:[^/\s?#\"',]*|[^/@\s\"',]+:[^@\s\"',]*)@")
HIDDEN = "***"
"""What `dump` writes instead of a secret."""
FOR, QUICK = "x-config", "x-quick"
"""Notes of a recipe: the config class it is for, and what its small form changes."""


class _Typed(NamedTuple):
    """What was typed on the command line."""

    overrides: Sequence[str]
    flags: Sequence[Flag]
    quick: bool


class Flag(NamedTuple):
    """A value given by a flag of its own: `name` as typed, the dotted `key` that it sets."""

    name: str
    key: str
    value: Any


@typing.runtime_checkable
class Settling(typing.Protocol):
    """A config class some of whose keys decide others, e.g. the arm of an experiment."""

    @classmethod
    def settle(cls, tree: dict[str, Any]) -> None:
        """Set such keys in the tree of all sources, whose leaves know where they were said.

        Raises:
            ConfigError: keys contradict one another.
        """
        ...


def load(
    cls: type[T],
    files: Sequence[Path | str] = (),
    *,
    overrides: Sequence[str] = (),
    flags: Sequence[Flag] = (),
    env: Mapping[str, str] | None = None,
    quick: bool = False,
) -> T:
    """Build a config of type `cls`.

    Args:
        cls: a frozen dataclass with typed fields.
        files: config files, later ones win.
        overrides: `dotted.key=value`; the value is TOML, or plain text for a string field.
        flags: what comes after the overrides; None as a value = not given.
        env: environment; None = `os.environ`.
        quick: lay the `[x-quick]` tables of the files over them: the small form of a recipe.

    Raises:
        ConfigError: unknown key, wrong value, unreadable file, a recipe for another config, or no
            small form where one is wanted; names file, line and key.
    """
    value, problems = _resolve(cls, files, _Typed(overrides, flags, quick), env)
    if problems:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ConfigError(
            first.what + more, where=first.where, expected=first.expected, mend=first.mend
        )
    return typing.cast(T, value)


def meant_for(files: Sequence[Path | str]) -> str | None:
    """Return the config class, `module:name`, that the last file which says so is for.

    A file that cannot be read says nothing here; `load` tells what is wrong with it.
    """
    for name in reversed(files):
        try:
            said = read_file(Path(name))[0].get(FOR)
        except ConfigError:
            continue
        if isinstance(said, str):
            return said
    return None


def part(
    cls: type[T],
    files: Sequence[Path | str],
    table: str = "",
    *,
    overrides: Sequence[str] = (),
    quick: bool = False,
) -> tuple[T, list[str]]:
    """Read from a recipe what `cls` has fields for, without its own config class.

    For code that must not import what the recipe is for. Precedence is that of `load`.

    Args:
        cls: a frozen dataclass with some of the recipe's fields.
        files: as for `load`.
        table: a table of the recipe to read instead of the whole, e.g. `x-plan`.
        overrides: as for `load`.
        quick: as for `load`.

    Returns:
        The values, and the dotted keys of the recipe that `cls` has no field for.

    Raises:
        ConfigError: as for `load`, but for unknown keys.
    """
    builder = Builder(lenient=True)
    tree = _tree(files, _Typed(overrides, (), quick), None, builder, None)
    _settle(cls, tree, builder)
    if table:
        found = tree.get(table)
        tree = found if isinstance(found, dict) else {}
    value = builder.build(cls, tree, (table,) if table else ())
    if builder.problems:
        raise builder.problems[0]
    return typing.cast(T, value), builder.passed_over


def from_options(cls: type[T], options: Mapping[str, Any] | None, *, where: str) -> T:
    """Build a dataclass from options given by name, with the same checks as a config file.

    Raises:
        ConfigError: an unknown name or an unusable value.
    """
    builder = Builder()
    value = builder.build(cls, wrapped(dict(options or {}), Source(where)), ())
    if builder.problems:
        raise builder.problems[0]
    return typing.cast(T, value)


def plain_overrides(texts: Sequence[str]) -> dict[str, Any]:
    """Return `dotted.key=value` texts as tables of plain values, where no class says what fits.

    Raises:
        ConfigError: one is no key=value.
    """
    tree: dict[str, Any] = {}
    for text in texts:
        apply_override(tree, text)
    return {key: unwrapped(value) for key, value in tree.items()}


def check(
    cls: type[Any], files: Sequence[Path | str], *, env: Mapping[str, str] | None = None
) -> list[ConfigError]:
    """Return every problem of the files, in file order; empty = they load."""
    return _resolve(cls, files, _Typed((), (), quick=False), env)[1]


def dump(config: Any) -> dict[str, Any]:
    """Return a config as JSON values, secrets replaced by `***`; usable as input again."""
    return {
        entry.name: HIDDEN
        if SECRET.search(entry.name) and getattr(config, entry.name)
        else _dumped(getattr(config, entry.name))
        for entry in fields(config)
    }


def digest(config: Any) -> str:
    """Return the fingerprint of a config without its secrets."""
    return fingerprint(jsonio.canonical(dump(config)))


def redact(text: str) -> str:
    """Remove logins from the URLs in `text`."""
    return _URL_LOGIN.sub(f"{HIDDEN}@", text)


def _resolve(
    cls: type[Any],
    files: Sequence[Path | str],
    typed: _Typed,
    env: Mapping[str, str] | None,
) -> tuple[Any, list[ConfigError]]:
    builder = Builder()
    tree = _tree(files, typed, env, builder, cls)
    _settle(cls, tree, builder)
    return builder.build(cls, tree, ()), builder.problems


def _settle(cls: object, tree: dict[str, Any], builder: Builder) -> None:
    if isinstance(cls, Settling):
        try:
            cls.settle(tree)
        except ConfigError as error:
            builder.problems.append(error)


def _tree(
    files: Sequence[Path | str],
    typed: _Typed,
    env: Mapping[str, str] | None,
    builder: Builder,
    cls: type[Any] | None,
) -> dict[str, Any]:
    """Return all sources laid over one another; `cls` = whom the files have to be for."""
    environment = dict(os.environ if env is None else env)
    tree: dict[str, Any] = {}
    for name in files:
        path = Path(name)
        try:
            value, source = read_file(path)
            if cls is not None:
                _refuse_foreign(value, source, cls)
            known = {**read_dotenv(path.parent / ".env"), **environment}
            merge(tree, substituted(value, source, (), known))
        except ConfigError as error:
            builder.problems.append(error)
    _lay_over(tree, typed, environment, files, builder)
    return tree


def _lay_over(
    tree: dict[str, Any],
    typed: _Typed,
    environment: Mapping[str, str],
    files: Sequence[Path | str],
    builder: Builder,
) -> None:
    """Lay the small form, the environment and what was typed over what the files say."""
    small = tree.get(QUICK)
    if typed.quick and isinstance(small, dict):
        merge(tree, small)
    elif typed.quick and not builder.problems:
        builder.problems.append(_no_quick(files))
    try:
        apply_environment(tree, environment)
        for text in typed.overrides:
            apply_override(tree, text)
        for flag in typed.flags:
            if flag.value is not None:
                put(tree, flag.key.split("."), wrapped(flag.value, Source(flag.name)))
    except ConfigError as error:
        builder.problems.append(error)


def _refuse_foreign(value: Mapping[str, Any], source: Source, cls: type[Any]) -> None:
    """Refuse a recipe that says it is for another config class."""
    said = value.get(FOR)
    if isinstance(said, str) and said != f"{cls.__module__}:{cls.__qualname__}":
        raise ConfigError(
            f"this recipe is for {said}, not for {cls.__module__}:{cls.__qualname__}",
            where=source.at((FOR,)),
            mend="take another recipe, or the command that this one is for",
        )


def _no_quick(files: Sequence[Path | str]) -> ConfigError:
    return ConfigError(
        "there is no small form to run" if files else "the small form of which recipe?",
        where=", ".join(map(str, files)) or "--quick",
        expected=f"a recipe with a table [{QUICK}]",
        mend="leave --quick out" if files else "name one with --recipe",
    )


def _dumped(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return dump(value)
    if isinstance(value, Mapping):
        return {
            str(key): HIDDEN if SECRET.search(str(key)) and inner else _dumped(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_dumped(inner) for inner in value]
    if isinstance(value, Path):
        return str(value.absolute())  # a dump may be read again from another folder
    return redact(value) if isinstance(value, str) else value


def flatten(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value) of a nested mapping, lists as leaves."""
    for key, value in config.items():
        dotted = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{dotted}.")
        else:
            yield dotted, value
