"""A goal is told to a customer ("get your money back"); said by the customer, it is about "my money".

Scripted customers write small letters throughout, so it is "i" here. Words of other languages stay.
"""

from __future__ import annotations

import re

from mimesim.users.words import listed

_FIXED = {
    "yourself": "myself",
    "yourselves": "ourselves",
    "yours": "mine",
    "your": "my",
    "you are": "i am",
    "you're": "i'm",
    "you were": "i was",
    "are you": "am i",
    "were you": "was i",
}
_PATTERN = re.compile(
    rf"\b(?:{'|'.join(form.replace(' ', '[ ]+') for form in _FIXED)}|you)\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_THING = re.compile(r"^i (?:want|need|wish for|would like|'d like) (?!to )", re.IGNORECASE)
_WISH = re.compile(r"^i (?:want|need|wish|would like|'d like) to ", re.IGNORECASE)


def first_person(text: str) -> str:
    """Return a text about "you" as the one meant would say it: "your order" is "my order"."""
    return _PATTERN.sub(lambda match: _mine(match, text), text)


def wishes(goal: str) -> list[str]:
    """Return the requests of a goal, each as what follows "i want to"."""
    parts = (first_person(part.strip(" .")) for part in goal.split(";"))
    parts = (re.sub("^find out: ", "find out ", part) for part in parts)
    return [_WISH.sub("", _THING.sub("get ", part)) for part in parts if part] or [goal]


def _mine(match: re.Match[str], text: str) -> str:
    said = " ".join(match.group().casefold().split())
    if said != "you":
        return _FIXED[said]
    return "i" if _is_subject(text[: match.start()], text[match.end() :]) else "me"


def _is_subject(before: str, after: str) -> bool:
    if after.startswith(("'", "’")):  # you've, you'd, you'll
        return True
    ahead = re.match(r"\s+([^\W_]+(?:['’][^\W_]+)*)", after)
    if ahead is None:
        return False
    earlier = _WORD.findall(before)
    if not earlier or re.search(r"[.!?:;]\s*$", before):
        return True
    last, following = earlier[-1].casefold(), ahead.group(1).casefold()
    if last in listed("object_after"):
        return False
    return (
        last in listed("subject_after")
        or following in listed("subject_before")
        or following.endswith("ed")
    )
