"""Where the cases of a manual come from: one `World` per manual, found by the manual's source.

Composing and behaviors draw from a world and never from a pack's pools directly, so that a manual
with a world of its own (ABCD, or one that an extension reads) is composed by the same code.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

from mimesim.scenarios import manual as manuals
from mimesim.scenarios.records import Case, PackWorld, check_drawable, load_pools
from mimesim.scenarios.types import Manual, RequestType


class World(Protocol):
    """What a manual's cases are drawn from."""

    @property
    def manual(self) -> Manual:
        """The manual whose cases these are."""

    def draw(
        self, request: RequestType, rng: random.Random, hint: Mapping[str, Any] | None = None
    ) -> Case | None:
        """Draw a case; `hint` is a set of a limit's conditions that it had better meet.

        None = this world has no case of that request type.
        """

    def values(self, field: str) -> tuple[str, ...]:
        """Return the values that a field can take, in rank where they have one; else none."""

    def address(self, rng: random.Random) -> dict[str, str]:
        """Draw an address: street_address, city, state, zip_code, full_address."""

    def customer(self, record: Mapping[str, Any]) -> str:
        """Return what tells customers apart: a customer belongs to one split."""


@cache
def open_world(name: str) -> World:
    """Return the world of the manual called `name`, see `scenarios.manual.load`.

    Raises:
        UnknownNameError: no such manual.
        DataError: it is damaged.
    """
    if manuals.is_foreign(name):
        found: World = manuals.read_world(name)
        return found
    world = PackWorld(manuals.load(name), load_pools(name))
    check_drawable(world.manual, world.pools)
    return world


def of(manual: Manual) -> World:
    """Return the world of a manual that was loaded."""
    return open_world(manual.source)
