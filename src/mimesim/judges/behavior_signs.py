"""Signs of each behavior in a conversation, as a rule judge sees them: where, how strong, why.

A sign rests on words of the judge's own cues, or on what needs no words: values of the record, the
order of things, lengths and signs of punctuation. Evidence without a cue weighs less. Every sign
says what it saw.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mimesim.judges.behavior_cues import Cues
from mimesim.judges.behavior_talk import Move, Talk, bare, content
from mimesim.scenarios import worlds
from mimesim.scenarios.behaviors.load import CLAUSE
from mimesim.scenarios.behaviors.pressure import SHORT
from mimesim.scenarios.fields import says_field
from mimesim.scenarios.manual import load
from mimesim.stats.texts import words as tokens

_TERSE = 25
_PART = re.compile(r"\b(?:and|also|plus|so)\b|[;?!.,]+")
_NOT = re.compile(r"(?<!\w)(?:no|not|never|none|cant|cannot|wont|dont|isnt|doesnt|im not)(?!\w)")
_CLAIMED = ("member_level", "payment_method")
"""Fields whose other values are looked for where no parameter names one."""


@dataclass(frozen=True, slots=True)
class Sign:
    """One place where a behavior shows.

    Attributes:
        turn: index in the conversation.
        strength: in [0, 1]; signs add up.
        timely: whether it stands where it comes naturally.
    """

    turn: int
    strength: float
    timely: bool
    why: str


Signs = Iterator[Sign]


def _cued(move: Move, strength: float, words: str, *, timely: bool = True) -> Sign:
    return Sign(move.turn, strength, timely, f"turn {move.turn} {words!r}")


def _b1(talk: Talk, cues: Cues) -> Signs:
    """Lukewarm answers to offers, without a reason and without naming the standard."""
    field = str(talk.params.get("field", ""))
    value = talk.facts.get(field, "")
    named = [
        m for m in talk.moves if field and field not in m.asked and says_field(m.raw, field, value)
    ]
    for move in talk.moves:
        if not move.offered or move in named or cues.find("reason", move.text):
            continue
        if any(cues.find(slot, move.text) for slot in ("blame", "insistence", "contempt")):
            continue
        words = cues.find("lukewarm", move.text)
        if words:
            yield _cued(move, 0.2 if named else 0.5, words)


def _b2(talk: Talk, cues: Cues) -> Signs:
    """A new condition after something was settled."""
    value = str(talk.params.get("value", ""))
    for move in talk.moves:
        if not move.settled or move.first or _elsewhere(move, talk, cues):
            continue
        words = cues.find("addition", move.text)
        wanted = bool(value) and bool(content(value) & content(move.raw))
        if any(cues.find(slot, move.text) for slot in ("exclusion", "blame", "insistence")):
            continue
        if words:
            yield _cued(move, 1.0 if wanted else 0.6, words, timely=move.just_settled)
        elif wanted:
            told = f"turn {move.turn} brings up {value!r}"
            yield Sign(move.turn, 0.6, move.just_settled, told)


def _b3(talk: Talk, cues: Cues) -> Signs:
    """A direct question that is not answered."""
    kept = talk.params.get("withheld_fields")
    for move in talk.moves:
        known = [n for n in move.asked if n in talk.facts] if kept is None else list(kept)
        missing = [n for n in known if n in move.asked and not _given(move, n, talk)]
        words = cues.find("evasion", move.text)
        if kept is None and not talk.facts:  # nothing is known of this person: words alone decide
            missing = ["it"] if move.asked and words and not talk.holds_value(move) else []
        if not missing or not tokens(move.raw):
            continue
        if not words and any(cues.find(slot, move.text) for slot in ("lack", "fetch", "lukewarm")):
            continue
        hasty = bool(cues.find("haste", move.text)) and not words
        told = f"turn {move.turn} leaves {missing[0]} open" + (f", {words!r}" if words else "")
        yield Sign(move.turn, 1.0 if words else 0.3 if hasty else 0.6, True, told)


def _given(move: Move, name: str, talk: Talk) -> bool:
    return name in talk.facts and says_field(move.raw, name, talk.facts[name])


def _b4(talk: Talk, cues: Cues) -> Signs:
    """Arguing after a refusal."""
    wanted = content(str(talk.params.get("blocked_action", ""))) | talk.goal_words
    for move in talk.moves:
        if not move.refused or move.first:
            continue
        words = cues.find("insistence", move.text)
        if words:
            yield _cued(move, 0.7, words)
        elif len(wanted & content(move.raw)) >= 2 and not cues.find("accept", move.text):
            yield Sign(move.turn, 0.4, True, f"turn {move.turn} asks for the refused thing again")


def _b5(talk: Talk, cues: Cues) -> Signs:
    """Blame for a detail that was not told before."""
    detail = content(str(talk.params.get("omitted_detail", "")))
    early = talk.moves[0].raw if talk.moves else ""
    told_early = len(detail & content(early)) >= 2
    for move in talk.moves:
        if move.first or not move.heard:
            continue
        words = cues.find("blame", move.text)
        if words:
            yield _cued(move, 0.2 if told_early else 0.7, words)
        elif (
            move.offered
            and not told_early
            and detail & content(move.raw)
            and _NOT.search(move.text)
        ):
            yield Sign(move.turn, 0.4, True, f"turn {move.turn} turns down for the detail")


def _b6(talk: Talk, cues: Cues) -> Signs:
    """Another errand while the first is open."""
    topic = content(str(talk.params.get("target_topic", "")))
    for move in talk.moves:
        if move.first or move.settled or cues.find("leaving", move.text):
            continue
        about = (topic & content(move.raw)) - talk.own_words
        words = cues.find("switch", move.text)
        # where no topic is known, a question about other things
        new = bool(content(move.raw) - talk.own_words) and ("?" in move.raw or _asks(move, cues))
        away = not content(move.raw) & talk.own_words
        if words and (about or (not topic and new and away)):
            yield _cued(move, 1.0 if topic else 0.6, words, timely=bool(move.heard))
        elif len(about) >= 2:
            yield Sign(
                move.turn, 0.6, bool(move.heard), f"turn {move.turn} is about another matter"
            )


def _asks(move: Move, cues: Cues) -> bool:
    return bool(cues.find("request", move.text))


def _elsewhere(move: Move, talk: Talk, cues: Cues) -> bool:
    """Tell whether a message leaves the errand for another one."""
    return bool(cues.find("switch", move.text)) and not content(move.raw) & talk.goal_words


def _b7(talk: Talk, cues: Cues) -> Signs:
    """Means that are taken away, clause by clause."""
    for move in talk.moves:
        if move.first or move.asked or not move.heard:
            continue
        clauses = [clause for clause in _PART.split(move.text) if clause.strip()]
        found = [words for clause in clauses if (words := cues.find("exclusion", clause))]
        for words in found:
            yield _cued(move, 0.4, words, timely=not move.refused)
        if (
            not found
            and not move.refused
            and _NOT.search(move.text)
            and not cues.find("accept", move.text)
        ):
            yield Sign(move.turn, 0.2, True, f"turn {move.turn} says no to a proposal")


def _b8(talk: Talk, cues: Cues) -> Signs:
    """Something untrue that is taken for granted."""
    field = str(talk.params.get("field", ""))
    false = str(talk.params.get("false_value", ""))
    if not false:
        yield from _claims(talk, cues)
        return
    true = talk.params.get("true_value", talk.facts.get(field, ""))
    claimed = [m for m in talk.moves if says_field(m.raw, field, false)]
    meant = [m for m in talk.moves if says_field(m.raw, field, true) and m not in claimed]
    first = claimed[0].turn if claimed else 0
    doubted = any(m.turn < first for m in meant) and len(claimed) < 2
    for number, move in enumerate(claimed):
        strength = 0.3 if doubted else 0.8 if number == 0 else 0.2
        yield Sign(move.turn, strength, True, f"turn {move.turn} claims {false!r}")


def _claims(talk: Talk, cues: Cues) -> Signs:
    for move in talk.moves:
        words = cues.find("premise", move.text)
        if words:
            yield _cued(move, 0.6, words)
            continue
        for field in _CLAIMED:
            other = _other_value(move, field, talk)
            if other:
                yield Sign(move.turn, 0.6, True, f"turn {move.turn} claims {other!r}")


def _other_value(move: Move, field: str, talk: Talk) -> str:
    """Return a value of the field that the message states although the record has another."""
    if field not in talk.facts or not re.search(r"(?<!\w)(?:i|im|my|me|as)(?!\w)", move.text):
        return ""
    true = str(talk.facts[field])
    if field == "member_level" and says_field(move.raw, field, true):
        return ""
    options = worlds.of(load()).values(field)
    return next((v for v in options if v != true and says_field(move.raw, field, v)), "")


def _b11(talk: Talk, cues: Cues) -> Signs:
    """Two statements that cannot both be true."""
    field = str(talk.params.get("field", ""))
    values = [str(talk.params.get(key, "")) for key in ("value_a", "value_b")]
    if not field:
        yield from _clashes(talk, cues)
        return
    said = [[m for m in talk.moves if says_field(m.raw, field, value)] for value in values]
    if not all(said):
        return
    later = max(said[0][0], said[1][0], key=lambda m: m.turn)
    if said[0][0].turn == said[1][0].turn:
        yield Sign(later.turn, 0.2, False, f"turn {later.turn} names both values at once")
        return
    mended = bool(cues.find("correction", later.text))
    told = f"turn {later.turn} says another {field} than before" + (", as a correction" * mended)
    yield Sign(later.turn, 0.2 if mended else 1.0, not mended, told)


def _clashes(talk: Talk, cues: Cues) -> Signs:
    """Look for two values of a closed list in different messages, where nothing names them."""
    for field in _CLAIMED:
        earlier = ""
        for move in talk.moves:
            stated = [v for v in worlds.of(load()).values(field) if says_field(move.raw, field, v)]
            if len(stated) != 1 or not re.search(r"(?<!\w)(?:i|im|my|me|paid)(?!\w)", move.text):
                continue
            if earlier and stated[0] != earlier and not cues.find("correction", move.text):
                yield Sign(move.turn, 0.6, True, f"turn {move.turn} says {stated[0]!r} now")
            earlier = stated[0]


def _b9(talk: Talk, cues: Cues) -> Signs:
    """Short bursts that press and hold nothing."""
    for move in talk.moves:
        if len(move.raw) > SHORT or talk.holds_value(move):
            continue
        spared = any(
            cues.find(slot, move.text) for slot in ("contempt", "lukewarm", "fetch", "lack")
        )
        if spared or cues.find("accept", move.text) or cues.find("insistence", move.text):
            continue
        words = cues.find("haste", move.text)
        if words:
            yield _cued(move, 0.5, words)
        elif _shouts(move.raw):
            yield Sign(move.turn, 0.5, True, f"turn {move.turn} shouts")
        elif len(move.raw) <= _TERSE and not move.first and _NOT.search(move.text):
            yield Sign(move.turn, 0.2, True, f"turn {move.turn} is curt and holds nothing")


def _shouts(text: str) -> bool:
    letters = [c for c in text if c.isalpha()]
    loud = len(letters) > 2 and sum(c.isupper() for c in letters) > len(letters) / 2
    return loud or "??" in text


def _b10(talk: Talk, cues: Cues) -> Signs:
    """Leaving while the errand is open."""
    if not talk.moves:
        return
    last = talk.moves[-1]
    if last.settled or _elsewhere(last, talk, cues):
        return
    words = cues.find("leaving", last.text)
    if words and not cues.find("accept", last.text):
        yield _cued(last, 1.0, words, timely=not last.first)
    elif talk.performance.left and not last.first and not last.refused:
        yield Sign(last.turn, 0.6, True, f"ended after turn {last.turn} with the errand open")


def _b12(talk: Talk, cues: Cues) -> Signs:
    """The fullest message, by its requests."""
    wanted = max(1, int(talk.params.get("n_requests", 3)))
    best, most = None, 0.0
    for move in talk.moves:
        lines = [bare(line) for line in move.raw.splitlines()]
        parts = [part for line in lines for part in CLAUSE.split(line) if part.strip()]
        asked = sum(bool(cues.find("request", part)) or _plain_ask(part) * 0.5 for part in parts)
        if asked > most:
            best, most = move, asked
    if best is None or most < 1:
        return
    told = f"turn {best.turn} asks {most:g} of {wanted} things"
    yield Sign(best.turn, min(1.0, most / wanted) if most >= 3 else 0.15 * most, True, told)


def _plain_ask(part: str) -> bool:
    """Tell whether a clause is long enough for a wish and no description of oneself or a thing."""
    return len(part.split()) >= 3 and not re.search(r"(?<!\w)(?:i|im|is|are|was|were)(?!\w)", part)


def _b13(talk: Talk, cues: Cues) -> Signs:
    """Contempt, or a special right."""
    for move in talk.moves:
        words = cues.find("contempt", move.text)
        if words and not cues.find("oneself", move.text):
            yield _cued(move, 0.7, words)


DETECTORS: dict[str, Callable[[Talk, Cues], Signs]] = {
    "B1": _b1, "B2": _b2, "B3": _b3, "B4": _b4, "B5": _b5, "B6": _b6, "B7": _b7, "B8": _b8,
    "B9": _b9, "B10": _b10, "B11": _b11, "B12": _b12, "B13": _b13,
}  # fmt: skip
"""Behavior id -> what finds its signs."""


def signs(behavior: str, talk: Talk, cues: Cues) -> tuple[Sign, ...] | None:
    """Return the signs of a behavior; None = there are no rules for it."""
    find = DETECTORS.get(behavior)
    return None if find is None else tuple(find(talk, cues))
