"""Several frozen users in one training: who is met in which batch, drawn with weights.

The draw depends on run seed, batch and task only, so a run that goes on after a stop meets the same
people, and all members of a group meet the same one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mimesim import seeds
from mimesim.config.ranges import NATURAL, POSITIVE, check_ranges
from mimesim.errors import ConfigError
from mimesim.models.load import preflight
from mimesim.users.base import UserSource
from mimesim.users.load import make_user


@dataclass(frozen=True, slots=True)
class UserShare:
    """One user of a mixture.

    Attributes:
        name: door name. options: settings of that user.
        weight: its share among the users of a batch, relative to theirs.
        from_batch: the first batch it is met in; batches count from 0.
    """

    name: str
    weight: float = 1.0
    from_batch: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be drawn with.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, POSITIVE, "weight")
        check_ranges(self, NATURAL, "from_batch")


def check_shares(shares: Sequence[UserShare]) -> None:
    """Refuse a table of users that leaves a batch without one, or names one twice.

    Raises:
        ConfigError: so it is.
    """
    names = [share.name for share in shares]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"'users' names {twice!r} twice", expected="one entry a user")
    if shares and min(share.from_batch for share in shares):
        raise ConfigError(
            "'users' has nobody for the first batch", expected="an entry with from_batch = 0"
        )


@dataclass(frozen=True, slots=True)
class Mixture:
    """Users by share; each is made once and stays open until `aclose`.

    Attributes:
        seed: of the draws.
    """

    shares: tuple[UserShare, ...]
    sources: tuple[UserSource, ...]
    seed: int

    def draw(self, task_id: str, batch: int) -> UserSource:
        """Return whom the rollouts of a task meet in a batch."""
        here = [place for place, s in enumerate(self.shares) if s.from_batch <= batch]
        rng = seeds.generator(self.seed, "mixture", batch, task_id)
        (place,) = rng.choices(here, [self.shares[i].weight for i in here])
        return self.sources[place]

    async def preflight(self) -> None:
        """Check all users before a run.

        Raises:
            EnvironmentFault: one of them is not fit; one line that names it.
        """
        for source in self.sources:
            await preflight(source)

    async def aclose(self) -> None:
        """Release all users; twice is harmless."""
        for source in self.sources:
            await source.aclose()


def make_mixture(shares: Sequence[UserShare], seed: int) -> Mixture:
    """Make the users of a mixture.

    Raises:
        UnknownNameError: no such user.
        ConfigError: an unknown option, nobody for the first batch, or a name that stands twice.
    """
    check_shares(shares)
    made = tuple(make_user(share.name, options=share.options or None) for share in shares)
    return Mixture(tuple(shares), made, seed)
