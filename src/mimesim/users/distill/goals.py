"""What the person wanted: their requests, in the second person and without the courtesies.

A request is a sentence with one of the usual English openings ("I need …", "can you …", "how do I
…"). Conversations in other words, and other languages, give their first words that are no
greeting. Requests that only confirm ("yes, book it") are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mimesim.corpora.base import HumanTurn
from mimesim.dialogue.loops import is_courtesy
from mimesim.users import guards
from mimesim.users.distill.base import Evidence
from mimesim.users.words import QUOTE, sentences

_MOST = 5
"""Requests of one goal."""
_LONG = 18
"""Words of one request."""
_WHOLE = 4
"""Words from which an opening that stands in a goal whole is a quotation."""

_I = r"(?:i|we)"
_SOFT = r"(?:also |just |really |actually |still |currently |please |now |would |only |kindly |possibly |maybe |first )*"
_AM = r"(?:(?:i|we)(?: am| are| was| were|'m|'re| 'm| 're)|im)"
_WANT = (
    rf"(?:{_I} {_SOFT}(?:need|want|wanted|wish|require|like|love|have)"
    rf"|{_I}(?:'d| 'd| would|d) {_SOFT}(?:like|love|prefer|appreciate)"
    rf"|{_AM} {_SOFT}(?:trying|hoping|planning|interested|wanting|calling|writing|going|ready))"
)
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), prefix)
    for pattern, prefix in (
        (rf"\b{_WANT} {_SOFT}(?:you to |your help (?:to |in |with )|help (?:to |in |with )?|some help (?:with )?)"
         r"(?P<what>.+)", ""),
        (rf"\b{_WANT} {_SOFT}(?:to|in|about) (?P<what>.+)", ""),
        (r"(?:^|\bjust |\band )(?:would like|want(?:ed)?|need(?:ed)?) to (?P<what>.+)", ""),
        (r"\band would like (?P<what>.+)", "get "),
        (r"\bwhat can you tell me about (?P<what>.+)", "find out about "),
        (r"\b(?:how|what) about (?P<what>.+)", "ask about "),
        (rf"\b(?:{_I} {_SOFT}(?:need|want|require)|{_I}(?:'d| 'd| would|d) {_SOFT}(?:like|love|prefer)) {_SOFT}"
         r"(?P<what>.+)", "get "),
        (rf"\b(?:{_AM} {_SOFT})?(?:looking|searching|in search|in need) {_SOFT}(?:for|of|at|to (?:find|get)) (?P<what>.+)",
         "find "),
        (r"\blooking to (?P<what>.+)", ""),
        (rf"\b(?:can|could|would|will) you {_SOFT}(?:be able to )?(?:help me )?(?:to )?(?P<what>.+)", ""),
        (rf"\b(?:can|could|may|might) {_I} {_SOFT}(?P<what>.+)", ""),
        (r"\b(?:please|pls|plz) (?P<what>(?!no\b|yes\b|thank)[a-z]+ .+)", ""),
        (r"\blet(?:'s| 's|s| us) (?P<what>.+)", ""),
        (r"\b(?:is|are) there (?P<what>(?:any|a|an|some|many)\b.+)", "find out if there is "),
        (r"\bdo you (?:have|know|offer|sell|carry) (?P<what>.+)", "find out about "),
        (r"(?P<what>\b(?:how|what|when|where|which|why|who)(?:'s| 's)? .+\?)", "find out: "),
        (r"\bhelp (?:me )?(?:with |to |in )?(?P<what>.+)", ""),
    )
)  # fmt: skip
_DOES = r"(?:book|find|get|make|change|cancel|return|check|reserve|give|send|order|buy|know|tell|see|look|schedule|speak|rsvp)"
_VERB_LEFT = re.compile(r"^(?:give|tell|send|show|provide)(?: me| us)(?: with)? ", re.IGNORECASE)
_BARE = re.compile(
    rf"^(?:{_DOES})? ?(?:it|that|this|one|them|those|some|more|me|for me|you|the first one|either|please|so|sure|\W)*$|^if ",
    re.IGNORECASE,
)
_TAIL = re.compile(r"[\s,]*(?:\b(?:please|pls|thanks|thank you(?: so much| very much)?|if possible)\b[\s,.!]*)+$", re.IGNORECASE)  # fmt: skip
_HELLO = re.compile(
    r"^\W*(?:hi|hello|hey|howdy|greetings|good (?:morning|afternoon|evening|day)|dear|yes|yeah|ok(?:ay)?|no|well|also|and"
    r"|thanks|thank you|great|perfect|sorry|excuse me|there|sir|madam|team|support|um|uh)\b[\s,.!-]*",
    re.IGNORECASE,
)
_PERSON = (
    (r"\bi(?:'m| 'm| am)\b|\bim\b", "you are"), (r"\bi was\b", "you were"), (r"\bi(?:'ve| 've)\b", "you have"),
    (r"\bi(?:'d| 'd)\b", "you would"), (r"\bi(?:'ll| 'll)\b", "you will"), (r"\bmyself\b", "yourself"),
    (r"\bmy\b", "your"), (r"\bmine\b", "yours"), (r"\bme\b", "you"), (r"\bi\b", "you"),
)  # fmt: skip
_CUT = re.compile(
    r" (?=(?:that|which|for|in|on|at|to|from|with|by|and|but|so|because|where|who|near|under|serving|starting|leaving)\b)",
    re.IGNORECASE,
)


class Goal(NamedTuple):
    """A goal and the words it was made of."""

    text: str
    said: tuple[Evidence, ...]


def goal_of(turns: Sequence[HumanTurn], *, english: bool = True) -> Goal | None:
    """Return what the person wanted; None = they only exchanged courtesies.

    Args:
        turns: of the conversation.
        english: whether rules of English words fit.
    """
    own = [(place, turn.text) for place, turn in enumerate(turns) if turn.role == "user"]
    found = (_requests(own) or _first_words(own)) if english else _first_sentence(own)
    if not found:
        return None
    text = "; ".join(request for request, _ in found)
    if quotes(own[0][1], text):
        text = "; ".join(_shortened(request) for request, _ in found)
    return Goal(text, tuple(said for _, said in found))


def _requests(own: Sequence[tuple[int, str]]) -> list[tuple[str, Evidence]]:
    found: list[tuple[str, Evidence]] = []
    known: set[str] = set()
    for place, text in own:
        for sentence in sentences(text):
            request = _request(sentence.text)
            content = " ".join(sorted(set(guards.words(request))))
            if request and content not in known and len(found) < _MOST:
                known.add(content)
                found.append((request, Evidence(place, sentence.text[:QUOTE])))
    return found


def _request(sentence: str) -> str:
    """Return what a sentence asks for, as something to do; empty = it asks for nothing."""
    flat = " ".join(sentence.split())
    plain = _without_hello(flat)
    matches = [
        (m.start(), order, m, prefix)
        for order, (p, prefix) in enumerate(_RULES)
        if (m := p.search(plain))
    ]
    if not matches:
        return ""
    _, _, match, prefix = min(matches, key=lambda entry: entry[:2])
    what = _TAIL.sub("", match.group("what")).strip(" .!?,;:")
    for _ in range(2):  # "I would like you to help me find …"
        what = re.sub(
            r"^(?:you to |help me (?:to |with )?|to |be able to |have you )",
            "",
            what,
            flags=re.IGNORECASE,
        )
    what = _VERB_LEFT.sub("get ", what)
    what = re.sub(rf"^({_DOES}) (?:me|us)\b(?! an?other)", r"\1", what, flags=re.IGNORECASE)
    if prefix == "get " and re.match(rf"(?:{_DOES})\b", what, re.IGNORECASE):
        prefix = ""
    what = re.split(r",? (?:and )?(?:can|could|would) you\b|\? ", what, flags=re.IGNORECASE)[
        0
    ].strip(" ,")
    if what.lower().startswith("with "):
        prefix = "get help "
    bare = not what or _BARE.match(what) or (prefix.endswith(": ") and len(what.split()) < 3)
    return "" if bare else prefix + _as_told(_at_most(what))


def _first_words(own: Sequence[tuple[int, str]]) -> list[tuple[str, Evidence]]:
    """Return the first sentence that says something, as a matter to get help with."""
    for place, text in own:
        for sentence in sentences(text):
            plain = _without_hello(" ".join(sentence.text.split())).strip(" .!?,;:")
            if len(guards.words(plain)) < 2 or is_courtesy(sentence.text):
                continue
            told = _as_told(_at_most(plain))
            return [(f"settle this: {told}", Evidence(place, sentence.text[:QUOTE]))]
    return []


def _first_sentence(own: Sequence[tuple[int, str]]) -> list[tuple[str, Evidence]]:
    """Return the first sentence that is too long for a greeting, else the longest, as it stands."""
    said = [(place, sentence.text) for place, text in own for sentence in sentences(text)]
    if not said:
        return []
    long = [one for one in said if len(re.findall(r"\w+", one[1])) >= _WHOLE]
    long = [one for one in long if not re.search(r"\d{3}", one[1])] or long  # no mere number
    place, text = long[0] if long else max(said, key=lambda one: len(one[1]))
    plain = _at_most(" ".join(text.split()).strip(" .!?,;:"))
    return [(f"settle this: {plain}", Evidence(place, text[:QUOTE]))] if plain else []


def _without_hello(text: str) -> str:
    for _ in range(4):
        shorter = _HELLO.sub("", text, count=1)
        if shorter == text:
            break
        text = shorter
    return text


def _as_told(text: str) -> str:
    """Return a text of the person as one would tell it to them: "my order" is "your order"."""
    for pattern, word in _PERSON:
        text = re.sub(pattern, word, text, flags=re.IGNORECASE)
    return (
        text[0].lower() + text[1:]
        if text[:2].istitle() or (text[:1].isupper() and not text[:2].isupper())
        else text
    )


def quotes(opening: str, goal: str) -> bool:
    """Tell whether a goal holds the whole opening."""
    spoken, wanted = guards.words(opening), guards.words(goal)
    size = len(spoken)
    if size < _WHOLE:
        return spoken == wanted
    return any(wanted[i : i + size] == spoken for i in range(len(wanted) - size + 1))


def _at_most(text: str) -> str:
    """Return a text up to `_LONG` words, cut before a clause where one begins late enough."""
    words = text.split()
    if len(words) <= _LONG:
        return text
    short = " ".join(words[:_LONG])
    clause = _CUT.split(short)
    whole = " ".join(clause[:-1])
    return whole if len(whole.split()) > _LONG // 2 else short


def _shortened(request: str) -> str:
    """Return a request without the last of its additions, so that it is no quotation any more."""
    parts = _CUT.split(request)
    return " ".join(parts[:-1]) if len(parts) > 1 else request
