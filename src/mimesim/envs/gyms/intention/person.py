"""The scripted person of the gym `intention`: it says what it was asked for and nothing else."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from mimesim.dialogue.types import Reply
from mimesim.envs.turns.kind import scripted
from mimesim.users.scripted.manner import manner

WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "main": {
        "value": ("I was thinking of this: {}.", "Let me say: {}.", "{}, if that works."),
        "open": ("I have no wish there.", "Anything usual will do.", "Up to you."),
        "aside": ("Do you really need that? Just begin.",),
    },
    "heldout": {
        "value": ("Make it {}.", "Well: {}.", "My pick would be {}."),
        "open": ("No idea, honestly.", "Take whatever is normal."),
        "aside": ("Do we have to go into that now?",),
    },
    "terse": {"value": ("{}.",), "open": ("Whatever.",), "aside": ("Later.",)},
}


def speak(values: Sequence[str], kind: str, *, first: bool, rng: random.Random) -> Reply:
    """Return what a person of `kind` says.

    Args:
        values: what it has in mind about all that was asked for, "" = no opinion.
        kind: of a scripted person.
        first: whether any of it was not asked for before; evasive people wait for the second time.
        rng: draws the wording.

    Raises:
        UnknownNameError: no such kind.
    """
    how = manner(kind)
    words = WORDS["terse" if how.terse else how.bank]
    known = [value for value in values if value]
    if how.evasive_once and first:
        return scripted(rng.choice(words["aside"]))
    if not known:
        return scripted(rng.choice(words["open"]), "I never thought about that.")
    said = " ".join(rng.choice(words["value"]).format(value) for value in known)
    return scripted(how.colored(said), "They want to know what I have in mind.")
