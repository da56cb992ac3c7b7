"""What the person knew, from what they said: values by their form, and answers to questions.

A fact that came out only after the agent had asked for it carries that question. The key of such a
fact is made of the question's words, so the same question of another agent unlocks it
(`users.briefing.asked_for`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mimesim.corpora.base import HumanTurn
from mimesim.scenarios.fields import fold, says
from mimesim.users import briefing
from mimesim.users.distill.base import Evidence, Fact, quote_at
from mimesim.users.distill.values import Found, values_in
from mimesim.users.questions import Question, answers, questions_in
from mimesim.users.words import QUOTE, phrases, sentences

_VAGUE = ("number", "name", "time", "date")
"""Keys that say less than the question does: a `name` that answers "who hosts it?" is the `host`."""
_LONGEST = 200
"""Characters of a value."""
_LONG = 8
"""Words from which an answer is a story and no value."""
_MOST = 40
"""Facts of one person at most; a log that holds more is a list, not a conversation."""

_LEAD = re.compile(
    r"^(?:(?:yes|yeah|yep|sure|ok|okay|hi|hello|hey|well|um|uh|oh|oops|ah|hm+|actually|so|and|of course|no problem|certainly|please"
    r"|absolutely|definitely|great|thanks|thank you|perfect|alright|right|again|just)\b[\s,.!-]*)+",
    re.IGNORECASE,
)
_FRAME = re.compile(
    r"^(?:(?:i think|i believe|i guess|maybe|probably|let 's say|let's say)\s+)?(?:it 's|it's|its|it is|it(?:'ll| 'll| will) (?:just )?be|that 's|that's"
    r"|that is|that would be|it would be|they are|there are|there will be|this is|i am|i'm|i 'm|im|my [\w ]{1,20} is"
    r"|the [\w' ]{1,25} (?:is|was|are)|i(?:'d| 'd| would)? (?:like|prefer|want|need|have|live|use|used|plan)"
    r"(?: to (?:stay|go|leave|arrive|eat|visit|see|book|use|be|travel))?|i(?:'ll| 'll| will) (?:be|have|need|go|take|stay"
    r"|arrive|leave)|we(?:'d| 'd| would)? (?:like|prefer|want|need)|we(?: are|'re| 're)|make it|how about|preferably"
    r"|something|somewhere|on|at|in|for|to|from|by|around|about|an?|the|under|as)\s+",
    re.IGNORECASE,
)
_TAIL = re.compile(r"[\s,]*\b(?:please|thanks|thank you|as well|would be (?:fine|great|good|nice)|is fine|works|sounds good|if possible|then|though)\b.*$", re.IGNORECASE)  # fmt: skip
_YES = re.compile(r"\W*(?:yes|yeah|yep|yup|sure|correct|i (?:do|did|have|am)(?! ?n)|it is(?! ?n)|indeed|of course|that'?s right|absolutely|definitely|please do|y)\b", re.IGNORECASE)  # fmt: skip
_NO = re.compile(
    r"\W*(?:no|nope|nah|not|none|i do ?n[o']?t|i did ?n[o']?t|i have ?n[o']?t|never|n)\b",
    re.IGNORECASE,
)
_ACTS = re.compile(
    r"\b(?:can|could|would|will) you\b|\bi (?:also |still )?(?:need|want|would like)\b.*\b(?:book|reserv|find|postcode|address)"
    r"|\bthat (?:works|sounds|will)\b|\bhelp\b|\bbook (?:it|that|me)\b|\bthat 's (?:it|all|fine)\b|\bsounds\b|\bnever ?mind\b"
    r"|\bi(?:'m|'d| am| 'm| will|'ll| 'll)\b|\bwhat\b|\bwhich\b|\bhow\b|\byou\b|\bany\b|\binstead\b|\bdepends\b",
    re.IGNORECASE,
)


class Heard(NamedTuple):
    """Facts of one conversation, and what the person said they do not know."""

    facts: tuple[Fact, ...]
    unknown: Mapping[str, Evidence]


class _Collector:
    """Facts by key while a conversation is read; the first telling of a value counts."""

    def __init__(self) -> None:
        self.facts: dict[str, Fact] = {}
        self.unknown: dict[str, Evidence] = {}
        self._said: list[str] = []

    def add(self, fact: Fact) -> None:
        """Take a fact in; a second value under its key gets a number, a known value nothing."""
        stem = fact.key
        for number in range(2, _MOST):
            known = self.facts.get(fact.key)
            if known is None:
                break
            if fold(known.value) == fold(fact.value):
                return
            fact = Fact(f"{stem}_{number}", fact.value, fact.said, fact.asked)
        if len(self.facts) < _MOST:
            early = any(says(text, fact.value) for text in self._said)
            self.facts[fact.key] = fact if not early else Fact(fact.key, fact.value, fact.said)

    def heard(self, text: str) -> None:
        """Remember what was said up to here."""
        self._said.append(text)


def facts_in(turns: Sequence[HumanTurn], *, english: bool = True) -> Heard:
    """Return what the person told, in the order of telling.

    Args:
        turns: of the conversation.
        english: whether rules of English words fit; otherwise only the form of a value counts.
    """
    collector = _Collector()
    for place, turn in enumerate(turns):
        if turn.role != "user":
            continue
        before = turns[place - 1] if place and turns[place - 1].role == "agent" else None
        questions = questions_in(before.text) if before and english else []
        found = values_in(turn.text, english=english)
        for fact in _told(turn.text, place, questions, found, collector.unknown):
            collector.add(fact)
        collector.heard(turn.text)
    return Heard(tuple(collector.facts.values()), collector.unknown)


def unlocked(key: str, question: str) -> bool:
    """Tell whether a question of an agent asks for the fact of this key."""
    return key in briefing.asked_for(question, [key])


def _told(
    text: str,
    place: int,
    questions: Sequence[Question],
    found: Sequence[Found],
    unknown: dict[str, Evidence],
) -> list[Fact]:
    """Return the facts of one message: the values in it, then an answer that is none of them."""
    open_questions = list(questions)
    facts: list[Fact] = []
    for value in found:
        question = next((q for q in open_questions if answers(value.key, q)), None)
        if question is not None:
            open_questions.remove(question)
        said = Evidence(place, quote_at(text, value.start))
        facts.append(_fact(value, said, question, place))
    if open_questions:
        facts += _answers(text, place, open_questions, found, unknown)
    return facts


def _fact(value: Found, said: Evidence, question: Question | None, place: int) -> Fact:
    if question is None:
        return Fact(value.key, value.value, said)
    asked = Evidence(place - 1, question.quote)
    vague = value.key in _VAGUE and not question.polar
    return Fact(question.key if vague else value.key, value.value, said, asked)


def _answers(
    text: str,
    place: int,
    questions: Sequence[Question],
    found: Sequence[Found],
    unknown: dict[str, Evidence],
) -> list[Fact]:
    """Read the message as the answer to the first question that is still open."""
    question = questions[0]
    first = next(sentences(text), None)
    if first is None:
        return []
    said, asked = Evidence(place, first.text[:QUOTE]), Evidence(place - 1, question.quote)
    free = phrases("whatever").search(text)
    if phrases("unsure").search(first.text):
        unknown.setdefault(question.key.replace("_", " "), said)
        return []
    if free:
        value, said = "no preference", Evidence(place, quote_at(text, free.start()))
    elif question.polar:
        value = "yes" if _YES.match(text) else "no" if _NO.match(text) else ""
    else:
        covered = any(
            f.start < first.start + len(first.text) and first.start < f.end for f in found
        )
        value = "" if covered else plain_answer(first.text)
        value = value.partition(",")[0] if question.key.endswith("name") else value
    if not value or len(value) > _LONGEST:
        return []
    return [Fact(question.key, value, said, asked)]


def plain_answer(sentence: str) -> str:
    """Return a short answer without its frame ("it's", "please"); empty = it is none."""
    text = _LEAD.sub("", sentence.strip())
    for _ in range(3):
        text = _FRAME.sub("", text)
    text = _TAIL.sub("", text).strip(" .,!?;:\"'")
    words = text.split()
    if not words or len(words) > _LONG or sentence.rstrip().endswith("?") or _ACTS.search(text):
        return ""
    if _YES.fullmatch(text) or _NO.match(text) or _LEAD.fullmatch(text):
        return ""
    return text
