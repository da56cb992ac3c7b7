"""How a kind of scripted person colors what a gym lets it answer.

The gym knows what is answered, this says how: the same facts in fewer words, with a grumble, or only
when they are asked for a second time. Cooperative, easy and neutral people are plain.
"""

from __future__ import annotations

from dataclasses import dataclass

from mimesim.registry import unknown_name
from mimesim.users.scripted.kinds import CHARACTERS

_TERSE = frozenset({"B9"})
_GRUMPY = frozenset({"B4", "B5", "B13"})
_EVASIVE = frozenset({"B1", "B3"})
_GRUMBLE = {"main": "If you must know: ", "heldout": "Took you long enough to ask. "}


@dataclass(frozen=True, slots=True)
class Manner:
    """How a person answers.

    Attributes:
        terse: in as few words as the gym has for it.
        grumpy: with a grumble, which `colored` puts in front.
        evasive_once: the first question that asks for something definite is put off; the gym
            remembers in its state that this has happened.
        bank: `main`, or `heldout` for people that no agent is trained with.
    """

    terse: bool = False
    grumpy: bool = False
    evasive_once: bool = False
    bank: str = "main"

    def colored(self, text: str) -> str:
        """Return `text` as a grumpy person says it; other people say it as it is."""
        return _GRUMBLE[self.bank] + text if self.grumpy else text


def manner(kind: str) -> Manner:
    """Return the manner of a kind of person, one that a script is called with.

    Raises:
        UnknownNameError: no such kind.
    """
    if kind not in CHARACTERS:
        raise unknown_name("kind of person", kind, list(CHARACTERS))
    who = CHARACTERS[kind]
    played = frozenset(who.behaviors)
    return Manner(
        terse=bool(played & _TERSE),
        grumpy=bool(played & _GRUMPY),
        evasive_once=bool(played & _EVASIVE),
        bank=who.bank,
    )
