"""The scripted person of the gym `persuade`: new reasons move it, repetition and insults do not help.

Every point that it had not heard moves it one stance away from its own view. People of a difficult
kind take one point at a time, or brush the first words aside; what can be won stays the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mimesim.dialogue.types import Reply, Thought
from mimesim.envs.turns.cues import Cue, matches
from mimesim.users.scripted.kinds import CHARACTERS
from mimesim.users.scripted.manner import manner

STANCES = (
    "Strongly Agree",
    "Agree",
    "Partly Agree",
    "Neutral",
    "Partly Disagree",
    "Disagree",
    "Strongly Disagree",
)
"""From holding the claim to rejecting it; a level is an index."""
LAST = len(STANCES) - 1
_SLOW = frozenset({"B2", "B4", "B11"})
"""Behaviors of people who take in one point at a time."""
_INSULT = re.compile(
    r"\b(?:idiots?|idiotic|stupid|fools?|foolish|morons?|dumb|dimwit|shut up|imbecile|brainless)\b",
    re.IGNORECASE,
)
_WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "main": {
        "moved": (
            "Hm, I had left that out. It does count for something.",
            "That is a fair point, and I have no good reply to it.",
            "I see it a little differently after that one.",
            "True, that happens at my place too.",
        ),
        "same": (
            "That does not change much for me.",
            "I follow you, but it leaves me where I was.",
            "Perhaps, but what is the reason?",
        ),
        "hurt": ("There is no need to be rude.", "Talking to me like that will not win me over."),
        "aside": ("I have thought about this for years, you know.",),
        "won": ("All right, you have me. I was wrong about this.",),
    },
    "heldout": {
        "moved": (
            "Now that one is worth something.",
            "Never looked at it from there. Fine, granted.",
            "You got me thinking with that.",
        ),
        "same": ("Nothing new in there for me.", "And? I still see it my way."),
        "hurt": ("Mind your manners, please.",),
        "aside": ("Let us not start over with this.",),
        "won": ("I give up, you are right after all.",),
    },
    "gruff": {
        "moved": ("Fine. That one stands.", "Okay, okay. Granted.", "Ugh. Yes, true."),
        "same": ("So what.", "Heard it. Next.", "No."),
        "hurt": ("Watch it.",),
        "aside": ("Not in the mood for lectures.",),
        "won": ("Fine, you win. I drop it.",),
    },
}


@dataclass(frozen=True, slots=True)
class Mind:
    """Where a scripted person stands.

    Attributes:
        level: index into `STANCES`.
        heard: ids of the points that it took in.
        aside: whether it brushed an argument aside already.
    """

    level: int = 0
    heard: tuple[str, ...] = ()
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """A reason against the claim, and the words by which it is known."""

    id: str
    cue: Cue


def consider(
    mind: Mind, points: Sequence[Point], most: int, text: str, kind: str = "neutral"
) -> tuple[Mind, str]:
    """Return where a person of `kind` stands after hearing `text`, and how it took it.

    Args:
        mind: where it stood.
        points: what can move it.
        most: the level beyond which it does not go.
        text: the argument.
        kind: of a scripted person.

    Raises:
        UnknownNameError: no such kind.
    """
    if manner(kind).evasive_once and not mind.aside:
        return Mind(mind.level, mind.heard, aside=True), "aside"
    new = [p.id for p in points if p.id not in mind.heard and matches(p.cue, text)]
    if _SLOW.intersection(CHARACTERS[kind].behaviors):
        new = new[:1]
    insulted = _INSULT.search(text) is not None
    level = max(0, min(most, mind.level + len(new)) - insulted)
    after = Mind(level, (*mind.heard, *new), mind.aside)
    if insulted:
        return after, "hurt"
    if level == LAST:
        return after, "won"
    return after, "moved" if level > mind.level else "same"


def speak(after: Mind, took: str, kind: str, rng: random.Random) -> Reply:
    """Return what the person says; its wish carries where it stands now, for the rule judge.

    Args:
        after: where it stands now.
        took: how it took the argument, as `consider` says.
        kind: of the person.
        rng: draws the wording.
    """
    how = manner(kind)
    words = _WORDS["gruff" if how.terse or how.grumpy else how.bank][took]
    thought = Thought(f"In my own mind I stand at {STANCES[after.level]!r} now.")
    return Reply(thought, rng.choice(words), source="scripted", wish=to_wish(after))


def to_wish(mind: Mind) -> dict[str, Any]:
    """Return JSON values of a mind."""
    return {"level": mind.level, "heard": list(mind.heard), "aside": mind.aside}


def from_wish(wish: Mapping[str, Any]) -> Mind | None:
    """Return the mind that a scripted reply carries; None = the reply is no scripted one."""
    if not wish:
        return None
    return Mind(wish["level"], tuple(wish["heard"]), wish["aside"])
