"""How the conversation went out, as far as the person's last words tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mimesim.corpora.base import HumanTurn
from mimesim.users.distill.base import Evidence, quote_at

_COMPLAINED = re.compile(
    r"\b(?:not helpful|unhelpful|useless|ridiculous|terrible|horrible|awful|disappoint\w*|frustrat\w*|unacceptable"
    r"|waste of (?:my )?time|worst|never ?mind|forget it|give up|(?:still|does ?n[o']?t|did ?n[o']?t|is ?n[o']?t|not) "
    r"(?:work\w*|help\w*|solve\w*|fixed|resolved)|speak (?:to|with) (?:a |your )?(?:manager|human|supervisor|person)"
    r"|cancel my (?:account|subscription))\b",
    re.IGNORECASE,
)
_THANKED = re.compile(
    r"\b(?:thanks|thank you|thankyou|thx|ty|cheers|appreciate|perfect|great|awesome|wonderful|excellent"
    r"|that(?:'s| 's| is|s) (?:all|it|everything)|that (?:will|would|should) be all|all set|you have been (?:very )?helpful)\b",
    re.IGNORECASE,
)


class Ending(NamedTuple):
    """`thanked`, `complained` or `open`, and the words that say so."""

    kind: str
    said: Evidence | None


def ending_of(turns: Sequence[HumanTurn]) -> Ending:
    """Return how the person left, from their last two messages, the last one first."""
    own = [(place, turn.text) for place, turn in enumerate(turns) if turn.role == "user"]
    for place, text in own[:0:-1][:2]:  # a conversation of one message has no ending
        for kind, pattern in (("complained", _COMPLAINED), ("thanked", _THANKED)):
            found = pattern.search(text)
            if found:
                return Ending(kind, Evidence(place, quote_at(text, found.start())))
    return Ending("open", None)
