"""Conversations that go nowhere: exchanges of courtesies, and verbatim repetition. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from mimesim.dialogue.types import PublicMessage, Role

_PAIRS = 2
"""Consecutive pairs of pure courtesies that end a conversation."""
_REPEATS = 3
"""Identical pairs in a row that, followed by the same user message again, end a conversation."""

_PHRASES = """
thanks so much|thank you so much|thank you very much|many thanks|thanks a lot|thanks again|thanks
thank you again|thank you|thankyou|thx|ty|cheers|much appreciated|i appreciate it|appreciate it
i appreciate your help|appreciate your help|thanks for your help|thank you for your help
thanks for everything|for all your help|for your help|for the help|for your patience|for your time
for contacting us|for choosing us
you are welcome|youre welcome|youre very welcome|you are very welcome|youre most welcome|welcome
my pleasure|its my pleasure|it was my pleasure|no problem|no worries|anytime|any time
dont mention it|glad i could help|glad to help|happy to help|im glad i could help|happy to be of help
goodbye|good bye|bye bye|bye|byebye|see you|see ya|take care|farewell|until next time|so long
have a great day|have a good day|have a nice day|have a wonderful day|have a lovely day|have a good one
have a great one|have a nice evening|have a good evening|have a great evening|have a good night
have a nice weekend|have a great weekend|enjoy your day|enjoy the rest of your day|good night
you too|you as well|same to you|likewise|and you|to you too|all the best|best wishes|best of luck
"""
_FILLERS = (
    "ok okay oh great perfect awesome wonderful lovely nice cool good alright well and again sir"
)
_COURTESY = sorted(
    (p.strip() for p in re.split(r"[|\n]", _PHRASES) if p.strip()), key=len, reverse=True
)
_PATTERN = re.compile(
    r"\b(?:"
    + "|".join(map(re.escape, [*_COURTESY, *(_FILLERS + " maam so very much").split()]))
    + r")\b"
)
_KERNEL = re.compile(r"\b(?:" + "|".join(map(re.escape, _COURTESY)) + r")\b")


def is_courtesy(text: str) -> bool:
    """Tell whether `text` is nothing but thanks, welcome or farewell."""
    if "?" in text:
        return False
    words = _fold(text)
    if not _KERNEL.search(words):
        return False
    return not _PATTERN.sub("", words).strip()


def loop_detected(messages: Sequence[PublicMessage]) -> bool:
    """Tell whether the conversation up to now goes round in circles.

    True after two consecutive pairs (user, agent) of pure courtesies, or when the user says the
    same words again after three identical pairs in a row. Tool traffic is looked through, and
    messages of one side in a row count as one.
    """
    spoken = [m for m in messages if m.role in (Role.USER, Role.AGENT) and m.content.strip()]
    words = [
        PublicMessage(role, " ".join(m.content for m in group))
        for role, group in groupby(spoken, key=lambda m: m.role)
    ]
    return _courtesies(words) or _repeats(words)


def _courtesies(words: list[PublicMessage]) -> bool:
    tail = words[-2 * _PAIRS :]
    roles = [m.role for m in tail]
    return roles == [Role.USER, Role.AGENT] * _PAIRS and all(is_courtesy(m.content) for m in tail)


def _repeats(words: list[PublicMessage]) -> bool:
    tail = words[-2 * _REPEATS - 1 :]
    if [m.role for m in tail] != [*[Role.USER, Role.AGENT] * _REPEATS, Role.USER]:
        return False
    folded = [_fold(m.content) for m in tail]
    return len(set(folded[::2])) == 1 and len(set(folded[1::2])) == 1


def _fold(text: str) -> str:
    """Lower case without apostrophes and punctuation."""
    plain = re.sub(r"['’`]", "", text.casefold())
    return " ".join(re.sub(r"[^\w\s]|_", " ", plain).split())
