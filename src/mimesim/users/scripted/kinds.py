"""Kinds of scripted customers: how much they volunteer, how they behave, which words they use.

Both profiles of the support desk share the table (ruling 3); `realistic` is not a character but a
draw among the others.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mimesim.errors import DataError
from mimesim.registry import unknown_name

BEHAVIORS = tuple(f"B{n}" for n in range(1, 14))
NEUTRAL_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class Character:
    """One way to be a customer.

    Attributes:
        volunteers: probability of stating each needed field unasked, in the opening.
        behaviors: behaviors played, at most one for users that agents are trained against.
        bank: phrase bank, `main` or `heldout`.
    """

    volunteers: float
    behaviors: tuple[str, ...] = ()
    bank: str = "main"


CHARACTERS: dict[str, Character] = {
    "cooperative": Character(1.0),
    "easy": Character(0.8),
    "neutral": Character(0.35),
    "hostile": Character(0.15, ("B3", "B9", "B8", "B4", "B13")),
    "heldout-1": Character(1.0, bank="heldout"),
    "heldout-2": Character(0.15, bank="heldout"),
    "heldout-3": Character(0.15, ("B3", "B9"), "heldout"),
    "heldout-4": Character(0.3, ("B6", "B2"), "heldout"),
    "heldout-5": Character(0.3, ("B8", "B4", "B13"), "heldout"),
    "heldout-6": Character(0.2, ("B5", "B10"), "heldout"),
    "heldout-7": Character(0.3, ("B12", "B7", "B1"), "heldout"),
    **{behavior: Character(0.25, (behavior,)) for behavior in BEHAVIORS},
}
KINDS = (*CHARACTERS, "realistic")


class Authored(NamedTuple):
    """What a scenario says about behavior: whether it decides it, and which ones."""

    decides: bool
    behaviors: Sequence[str]


def character(kind: str, authored: Authored, rng: random.Random) -> Character:
    """Return how `kind` behaves in one scenario.

    `realistic` plays what a composed or authored scenario says (a third of composed rows are
    neutral by construction); where the scenario leaves it open, it draws: a third neutral, else
    one of the 13.

    Raises:
        UnknownNameError: no such kind.
        DataError: the scenario wants a behavior that no script plays.
    """
    if kind not in KINDS:
        raise unknown_name("scripted user", kind, list(KINDS))
    if kind != "realistic":
        return CHARACTERS[kind]
    chosen = tuple(authored.behaviors)
    if not authored.decides and rng.random() >= NEUTRAL_SHARE:
        chosen = (rng.choice(BEHAVIORS),)
    if not chosen:
        return CHARACTERS["neutral"]
    odd = set(chosen).difference(BEHAVIORS)
    if odd:
        raise DataError(
            f"scripted customers cannot play behavior {min(odd)!r}",
            expected="B1 to B13",
            mend="let a model play it, e.g. --user roleplay:<model>",
        )
    return Character(CHARACTERS[chosen[0]].volunteers, chosen)


def plays(kind: str, wanted: Sequence[str]) -> bool:
    """Tell whether `kind` plays the `wanted` behaviors of a scenario, and no others."""
    if kind == "realistic":
        return set(BEHAVIORS).issuperset(wanted)
    return set(CHARACTERS[kind].behaviors) == set(wanted)
