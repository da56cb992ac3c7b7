"""The words of a scripted traveler: what is said is given, how it is said depends on the kind."""

from __future__ import annotations

import random
from collections.abc import Mapping

from mimesim.dialogue.types import Reply
from mimesim.envs.turns.kind import scripted
from mimesim.users.base import Script
from mimesim.users.scripted.manner import manner

_TOLD = {
    "main": ("Hm, let me think. {}", "How shall I put it? {}", "Oh, about that: {}", "{}"),
    "heldout": ("Glad you bring it up. {}", "Funny you should ask. {}", "To be honest: {}"),
}
_VOLUNTEERED = {
    "main": ("By the way: {}", "Before I forget it: {}", "Something else comes to mind. {}"),
    "heldout": ("While we are at it: {}", "One thing I should mention. {}"),
}
_CHATTED = {
    "main": (
        "That is nice of you to say.",
        "Thank you, let us go on.",
        "I am looking forward to it already.",
    ),
    "heldout": ("Kind of you.", "All right then.", "Good, good."),
}
_SHORT = "OK."


def tells(statement: str, rng: random.Random) -> Script:
    """Return a script for a question about a wish: it shows, and is not named."""
    return _says(_TOLD, statement, rng, "They asked for it, so I let it show.")


def volunteers(statement: str, rng: random.Random) -> Script:
    """Return a script for telling a wish unasked."""
    return _says(_VOLUNTEERED, statement, rng, "They do not get to it, so I bring it up.")


def chats(rng: random.Random) -> Script:
    """Return a script for small talk, in which nothing is told."""
    return _says(_CHATTED, _SHORT, rng, "Nothing to tell them here.")


def _says(
    bank: Mapping[str, tuple[str, ...]], statement: str, rng: random.Random, thought: str
) -> Script:
    drawn = rng.random()

    def answer(kind: str) -> Reply:
        how = manner(kind)
        phrases = bank[how.bank]
        phrase = "{}" if how.terse else phrases[int(drawn * len(phrases))]
        if bank is _CHATTED:
            return scripted(how.colored(_SHORT if how.terse else phrase), thought)
        return scripted(how.colored(phrase.replace("{}", statement)), thought)

    return answer
