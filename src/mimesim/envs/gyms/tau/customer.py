"""The scripted customer: states an errand, answers what is asked, leaves when told yes or no.

What counts is what the agent says, not what it did: a customer believes that an order was cancelled,
and takes any number for the answer. Nothing here tells an agent whether it is right.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mimesim.dialogue.stop import UserAction
from mimesim.dialogue.types import Reply
from mimesim.envs.turns.kind import scripted
from mimesim.users.first_person import first_person
from mimesim.users.scripted.kinds import CHARACTERS
from mimesim.users.scripted.manner import Manner, manner

Talk = Sequence[tuple[str, str]]
"""Who said what, in order: pairs of `user` or `agent` and words."""

NEEDS: Mapping[str, tuple[str, ...]] = {
    "cancel": ("order",),
    "return": ("order", "item"),
    "exchange": ("order", "item", "color"),
    "redirect": ("order", "zip"),
    "move": ("name", "zip"),
    "total": ("order",),
    "stock": ("item", "color"),
    "points": ("name",),
}
"""Errand -> what the agent must know for it."""
WISHES: Mapping[str, tuple[str, str, str]] = {
    "cancel": ("i want to cancel an order .", "please cancel my order .", "please call it off ."),
    "return": ("i want to return an item .", "i have to return something .", "take this back ."),
    "exchange": (
        "i want to exchange an item .",
        "can i exchange something ?",
        "i need this in another color .",
    ),
    "redirect": (
        "i want my order sent to another zip .",
        "please send my order to a new zip .",
        "my parcel should go elsewhere .",
    ),
    "move": ("i moved to another zip .", "please note that i moved .", "i live elsewhere now ."),
    "total": (
        "what is the total of my order ?",
        "i want to know the total of an order .",
        "how much is it all together ?",
    ),
    "stock": (
        "how many of an item are in stock ?",
        "i ask about the stock of an item .",
        "how many are left ?",
    ),
    "points": ("how many points do i have ?", "i want to know my points .", "what did i collect ?"),
}
"""Errand -> how it is put: two ways, and one of people that no agent is trained with."""
DETAILS: Mapping[str, tuple[str, str]] = {
    "order": ("it is order {} .", "the number is {} ."),
    "item": ("it is the {} .", "i mean the {} ."),
    "color": ("the color is {} .", "{} is what i want ."),
    "zip": ("the new zip is {} .", "it goes to {} now ."),
    "name": ("my name is {} .", "i am {} ."),
}
"""Detail -> how it is told, ordinarily and by people that no agent is trained with."""
PUT_OFF = "why do you ask ?"
INSIST = "that is not fair . please do it ."
PITY = "that is a pity . bye ."
YES = "yes please ."
UNKNOWN = "i do not know that ."
GO_ON = "and now ?"
GRUMBLE = "if you must know :"
SHORT = "{} ."

_ASKED = {
    "order": ("order", "number"),
    "item": ("item", "product", "article"),
    "color": ("color", "colour"),
    "zip": ("zip", "address"),
    "name": ("name",),
}
_ASKS = re.compile(r"\?|\b(tell|give|provide|need|which|what)\b")
_CONFIRM = re.compile(r"\b(shall|confirm|proceed|go ahead|would you like|do you want|sure)\b")
_DENIAL = re.compile(
    r"\b(sorry|cannot|can not|can't|unable|unfortunately|not possible|not allowed)\b"
)
_DONE: Mapping[str, re.Pattern[str]] = {
    "cancel": re.compile(r"\bcancell?ed\b"),
    "return": re.compile(r"\b(returned|refunded)\b"),
    "exchange": re.compile(r"\b(exchanged|swapped|replaced)\b"),
    "redirect": re.compile(r"\b(set|changed|updated|sent)\b"),
    "move": re.compile(r"\b(set|changed|updated)\b"),
}
_NUMBER = re.compile(r"(?<!\w)\d+(?!\w)")


@dataclass(frozen=True, slots=True)
class Errand:
    """What a customer of `mini` wants, and all that this person knows."""

    intent: str
    facts: Mapping[str, str]


def opening(errand: Errand, kind: str, rng: random.Random) -> Reply:
    """Return the first words: the errand, and what this kind of person volunteers."""
    who, draws = CHARACTERS[kind], rng.random()
    said = [_wish(errand, kind, draws)]
    for name in NEEDS[errand.intent]:
        if rng.random() < who.volunteers:
            said.append(_detail(name, errand, manner(kind)))
    return scripted(" ".join(said), "i say what i came for")


def reply(errand: Errand, talk: Talk, kind: str) -> Reply:
    """Return the answer to the last words of `talk`, which are the agent's."""
    how = manner(kind)
    sentences = re.findall(r"[^.?!\n]+[.?!]?", talk[-1][1].lower())
    claims = " ".join(s for s in sentences if "?" not in s)
    if _DENIAL.search(claims):
        if how.grumpy and not _said_before(talk, INSIST):
            return scripted(INSIST, "i do not take no for an answer at once")
        return replace(scripted(PITY, "so it cannot be done"), action=UserAction.END)
    if _satisfied(errand, claims):
        return replace(scripted("", "that is all i wanted"), action=UserAction.END)
    questions = " ".join(s for s in sentences if _ASKS.search(s))
    return _answer(errand, questions, talk, kind) if questions else scripted(GO_ON, "not done yet")


def _answer(errand: Errand, question: str, talk: Talk, kind: str) -> Reply:
    how = manner(kind)
    if _CONFIRM.search(question):
        return scripted(YES, "that is what i want")
    heard = set(re.findall(r"\w+", question))
    asked = [name for name, cues in _ASKED.items() if heard.intersection(cues)]
    if not asked:
        return scripted(_wish(errand, kind, 0.0), "i say it again")
    if how.evasive_once and not _said_before(talk, PUT_OFF):
        return scripted(PUT_OFF, "i do not want to tell that yet")
    wanted = [name for name in asked if name in NEEDS[errand.intent]] or asked
    known = [name for name in wanted if name in errand.facts]
    if not known:
        return scripted(UNKNOWN, "nobody told me")
    said = " ".join(_detail(name, errand, how) for name in known)
    return scripted(f"{GRUMBLE} {said}" if how.grumpy else said, "i know that")


def _satisfied(errand: Errand, claims: str) -> bool:
    done = _DONE.get(errand.intent)
    if done is not None:
        return done.search(claims) is not None
    own = set(errand.facts.values())
    return any(number not in own for number in _NUMBER.findall(claims))


def _wish(errand: Errand, kind: str, draw: float) -> str:
    ways = WISHES[errand.intent]
    if CHARACTERS[kind].bank == "heldout":
        return ways[2]
    return ways[0 if draw < 0.5 else 1]


def _detail(name: str, errand: Errand, how: Manner) -> str:
    value = errand.facts[name]
    if how.terse:
        return SHORT.format(value)
    return DETAILS[name][how.bank == "heldout"].format(value)


def _said_before(talk: Talk, words: str) -> bool:
    return any(who == "user" and said == words for who, said in talk)


# tau-bench: nothing is written for a script there, so the words come from the instruction.

_REQUEST = re.compile(r"\b(want|wants|need|would like|wish|wishes|please|looking)\b", re.I)
_FINISHED = re.compile(r"\b(done|completed|settled)\b")
_CONTENT = re.compile(r"[a-z]{4,}|\d{3,}")


def derived_opening(instruction: str) -> Reply:
    """Return the first sentence of an instruction that wants something, said by its person."""
    sentences = _sentences(instruction)
    wish = next((s for s in sentences if _REQUEST.search(s)), sentences[-1])
    return scripted(first_person(wish), "i say what i came for")


def derived_reply(instruction: str, talk: Talk) -> Reply:
    """Answer with the sentence of the instruction that the agent's words are nearest to."""
    words = talk[-1][1].lower()
    claims = " ".join(s for s in re.findall(r"[^.?!\n]+[.?!]?", words) if "?" not in s)
    if _FINISHED.search(claims):
        return replace(scripted("", "that is all i wanted"), action=UserAction.END)
    if _DENIAL.search(claims):
        return replace(scripted("Then there is nothing to be done."), action=UserAction.END)
    asked = set(_CONTENT.findall(words))
    sentences = _sentences(instruction)
    best = max(sentences, key=lambda s: len(asked & set(_CONTENT.findall(s.lower()))))
    return scripted(first_person(best), "i tell what is nearest to the question")


def _sentences(text: str) -> list[str]:
    found = [part.strip() for part in re.split(r"(?<=[.!?])\s+", text) if part.strip()]
    return found or [text.strip()]
