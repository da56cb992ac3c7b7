"""The registry of behaviors: `get("B3")`, `get("self_contradiction")`, `everything()`.

Each behavior object owns its definition, applicability, parameters, directive and check, so that
directive and check cannot drift apart. A registry that disagrees with the taxonomy file does not
start. Extensions add behaviors through the entry-point group `mimesim.behaviors`;
`package.module:attribute` works wherever an id does.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from mimesim.errors import DataError, MimesimError, UnknownNameError, UsageError
from mimesim.registry import Registry, unknown_name
from mimesim.scenarios.behaviors.base import Behavior, Situation, Taxon, closing, taxonomy

__all__ = [
    "Behavior",
    "Judged",
    "Situation",
    "Taxon",
    "blamed",
    "builtin_ids",
    "closing",
    "everything",
    "get",
    "ids",
    "judged",
]

_HOMES = {
    "goals": ("B2", "B4", "B6"),
    "withholding": ("B1", "B3", "B5"),
    "claims": ("B8", "B11"),
    "pressure": ("B9", "B10", "B13"),
    "load": ("B7", "B12"),
}
_REGISTRY = Registry(
    "behavior",
    {
        f"B{n}": f"mimesim.scenarios.behaviors.{home}:B{n}"
        for n in range(1, 14)
        for home, members in _HOMES.items()
        if f"B{n}" in members
    },
)
_BY_PATH: dict[str, Behavior] = {}
"""Id -> behavior that was named by `package.module:attribute` in this process."""
_NOT_BEHAVIORS = {"neutral", "contrasts"}
_NEEDS = ("id", "described", "applicable", "derive_params", "directive", "check")


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge is shown about a behavior.

    Attributes:
        contrasts: (name, definition, how to tell it apart) of what it must not be taken for.
    """

    name: str
    definition: str
    contrasts: tuple[tuple[str, str, str], ...]
    sees_thoughts: bool


@cache
def builtin_ids() -> tuple[str, ...]:
    """Return the ids of the 13 built-in behaviors, B1 first.

    Raises:
        DataError: registry and taxonomy file do not agree.
    """
    known = tuple(_REGISTRY.builtin)
    described = set(taxonomy()) - _NOT_BEHAVIORS
    if set(known) != described:
        raise DataError(
            f"behaviors {sorted(set(known) ^ described)} stand in only one of two places",
            where="scenarios/behaviors/taxonomy.toml",
            expected="the same ids as the registry",
        )
    return known


@cache
def ids() -> tuple[str, ...]:
    """Return all ids: the 13, then those of extensions.

    Raises:
        DataError: registry and taxonomy file do not agree.
    """
    return (*builtin_ids(), *(name for name in _REGISTRY.names() if name not in builtin_ids()))


@cache
def everything() -> tuple[Behavior, ...]:
    """Return all behaviors in the order of their ids; a broken extension is left out, warned of."""
    return (*(get(name) for name in builtin_ids()), *_extensions())


@cache
def _extensions() -> tuple[Behavior, ...]:
    found = []
    for name in ids()[len(builtin_ids()) :]:
        try:
            found.append(get(name))
        except UnknownNameError as error:
            warnings.warn(f"extension left out: {error}", stacklevel=2)
    return tuple(found)


@cache
def get(name: str) -> Behavior:
    """Return a behavior by id, code name or `package.module:attribute`.

    Raises:
        UnknownNameError: none of them, or an extension that is no behavior; names the closest.
    """
    by_name = {str(taxonomy()[key]["name"]): key for key in builtin_ids()}
    key = by_name.get(name, name.upper() if name.upper() in builtin_ids() else name)
    if key in _BY_PATH:
        return _BY_PATH[key]
    if key not in ids() and ":" not in key:
        by_name |= {extra.name: extra.id for extra in _extensions()}
        if name not in by_name:
            raise unknown_name("behavior", name, [*ids(), *by_name])
        key = by_name[name]
    found: Behavior = _REGISTRY.load(key, needs=_NEEDS)
    if key in ids() and found.id != key:
        raise UnknownNameError(
            f"behavior {key!r} calls itself {found.id!r}", expected="the entry point's own name"
        )
    return found if key in ids() else _by_path(found, key)


def _by_path(found: Behavior, path: str) -> Behavior:
    """Keep a behavior that was named by its path, so that rows can name it by its id."""
    if found.id in ids() and get(found.id) is not found:
        raise UnknownNameError(
            f"behavior {path!r} calls itself {found.id!r}, which is taken",
            expected="an id of its own",
        )
    return _BY_PATH.setdefault(found.id, found)


@contextmanager
def blamed(behavior: Behavior | None) -> Iterator[None]:
    """Turn what the code of an extension's behavior raises into one line that names it.

    Raises:
        UsageError: the code raised.
    """
    try:
        yield
    except MimesimError:
        raise
    except Exception as error:
        if behavior is None or behavior.id in builtin_ids():
            raise
        kind = type(behavior)
        raise UsageError(
            f"behavior {behavior.id!r} raised {type(error).__name__}: {error}",
            where=f"{kind.__module__}:{kind.__qualname__}",
            mend="run `mimesim behaviors check` on it",
        ) from error


def judged(behavior: Behavior) -> Judged:
    """Return what a judge is shown: the definition, and its neighbors as what it is not."""
    contrasts = tuple(
        (get(other).name, get(other).definition, told)
        for other, told in behavior.described.contrasts.items()
    )
    return Judged(behavior.name, behavior.definition, contrasts, behavior.judge_sees_thoughts)
