"""The registry of the 13 behaviors: `get("B3")`, `get("self_contradiction")`, `everything()`.

Each behavior object owns its definition, applicability, parameters, directive and check, so that
directive and check cannot drift apart. A registry that disagrees with the taxonomy file does not
start.
"""

from __future__ import annotations

from functools import cache

from mimesim.errors import DataError
from mimesim.registry import Registry, unknown_name
from mimesim.scenarios.behaviors.base import Behavior, Situation, taxonomy

__all__ = ["Behavior", "Situation", "everything", "get", "ids"]

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


@cache
def ids() -> tuple[str, ...]:
    """Return all ids, B1 first.

    Raises:
        DataError: registry and taxonomy file do not agree.
    """
    known = tuple(_REGISTRY.builtin)
    if set(known) != set(taxonomy()):
        raise DataError(
            f"behaviors {sorted(set(known) ^ set(taxonomy()))} stand in only one of two places",
            where="scenarios/behaviors/taxonomy.toml",
            expected="the same ids as the registry",
        )
    return known


@cache
def everything() -> tuple[Behavior, ...]:
    """Return all behaviors in the order of their ids."""
    return tuple(get(name) for name in ids())


@cache
def get(name: str) -> Behavior:
    """Return a behavior by id or code name.

    Raises:
        UnknownNameError: neither; names the closest match.
    """
    by_name = {str(entry["name"]): key for key, entry in taxonomy().items()}
    key = by_name.get(name, name)
    if key not in ids():
        raise unknown_name("behavior", name, [*ids(), *by_name])
    found: Behavior = _REGISTRY.load(key)
    return found
