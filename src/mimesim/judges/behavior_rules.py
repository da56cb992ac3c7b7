"""The rule judges of behaviors: every sub-score by arithmetic that can be read, and why.

Weaker than a good model and labelled so: a rule knows words, values and order, not meaning. `rule`
and `rule-heldout` run the same arithmetic on cues that share nothing (`judges.behavior_cues`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mimesim.judges.behavior_cues import HELD_OUT, MAIN, Cues, cues
from mimesim.judges.behavior_signs import DETECTORS, Sign, signs
from mimesim.judges.behavior_talk import Performance, Talk, bare, content
from mimesim.scenarios import behaviors
from mimesim.stats.texts import words

__all__ = ["HELD_OUT", "MAIN", "Finding", "Score", "findings", "has_rules", "rule_answer"]

_WEAK, _WEAK_TOGETHER = 0.2, 0.3
"""Signs up to this strength are faint, and however many there are, they do not make a behavior."""
_FREE_USES = 2
"""So often may a behavior show before it looks mechanical."""
_LONG, _VERY_LONG = 40, 80
"""Mean words of a message that few people write in a support chat."""
_MARKUP = re.compile(r"^\s*(?:[-*#]|\d+\.)\s", re.MULTILINE)


class Score(NamedTuple):
    """A sub-score and what it rests on."""

    value: float
    why: str


class Finding(NamedTuple):
    """A behavior that shows in a conversation nobody knows anything about."""

    behavior: str
    strength: float
    turns: tuple[int, ...]
    why: str


def has_rules(behavior: str) -> bool:
    """Tell whether the rule judges can decide on a behavior, given by id or name.

    Raises:
        UnknownNameError: no such behavior.
    """
    return behaviors.get(behavior).id in DETECTORS


def rule_answer(performance: Performance, judge: str) -> dict[str, Any] | None:
    """Return the verdict of a rule judge as JSON values; None = it has no rules for this behavior.

    Args:
        performance: what is judged.
        judge: `MAIN` or `HELD_OUT`.
    """
    known, talk = cues(judge), Talk(performance)
    common = {"naturalness": _naturalness(talk, known), "on_task": _on_task(talk, known)}
    if performance.behavior is None:
        return _told({"cooperative": _cooperative(talk, known), **common})
    behavior = behaviors.get(performance.behavior).id
    found = signs(behavior, talk, known)
    if found is None:
        return None
    announced = _announced(talk, known, behavior)
    exhibit = _exhibit(found)
    scores = {"exhibit": exhibit, "placement": _placement(talk, found, exhibit), **common}
    told = _told(scores)
    return {
        **told,
        "announced": bool(announced),
        "why": f"{told['why']}; announced: {announced or 'nowhere'}",
    }


def findings(performance: Performance, judge: str) -> tuple[Finding, ...]:
    """Return which behaviors show in a conversation, whatever its customer was to do."""
    known = cues(judge)
    talk = Talk(replace(performance, behavior=None, params={}))
    out = []
    for behavior in DETECTORS:
        found = signs(behavior, talk, known) or ()
        score = _exhibit(found)
        if score.value > 0:
            turns = tuple(sorted({sign.turn for sign in found}))
            out.append(Finding(behavior, score.value, turns, score.why))
    return tuple(out)


def _told(scores: dict[str, Score]) -> dict[str, Any]:
    values: dict[str, Any] = {name: round(score.value, 4) for name, score in scores.items()}
    return {"why": "; ".join(f"{name}: {s.why}" for name, s in scores.items()), **values}


def _exhibit(found: Sequence[Sign]) -> Score:
    if not found:
        return Score(0.0, "no sign of it")
    faint = sum(s.strength for s in found if s.strength <= _WEAK)
    strong = sum(s.strength for s in found if s.strength > _WEAK)
    total = strong + min(faint, _WEAK_TOGETHER)
    return Score(min(1.0, total), ", ".join(s.why for s in found))


def _placement(talk: Talk, found: Sequence[Sign], exhibit: Score) -> Score:
    """One or two uses at their moment are best; use after use, or the same words again, are not."""
    if not exhibit.value:
        return Score(0.0, "absent")
    places = {sign.turn for sign in found}
    timely = sum(sign.timely for sign in found) / len(found)
    extra = max(0, len(places) - _FREE_USES)
    value = timely * max(0.2, 1 - 0.25 * extra)
    texts = [bare(talk.performance.turns[turn].text) for turn in sorted(places)]
    repeated = len(texts) - len(set(texts))
    told = f"{len(places)} uses, {timely:.0%} at their moment"
    if repeated:
        return Score(value * 0.5, f"{told}, in the same words again")
    return Score(value, told)


def _naturalness(talk: Talk, known: Cues) -> Score:
    """A person's message is short, plain, and never a helper's."""
    moves = talk.moves
    if not moves:
        return Score(0.0, "nothing was said")
    lengths = [len(words(move.raw)) for move in moves]
    mean = sum(lengths) / len(lengths)
    faults = {
        "speaks as the helper": 0.5 * any(known.find("assistant", m.text) for m in moves),
        "the same message again": 0.4 * (len({m.text for m in moves}) < len(moves)),
        "long messages": 0.5 * (mean > _VERY_LONG) or 0.3 * (mean > _LONG),
        "lists": 0.2 * any(_MARKUP.search(m.raw) for m in moves),
        "no words": 0.5 * (max(lengths) == 0),
    }
    found = [name for name, cost in faults.items() if cost]
    return Score(max(0.0, 1 - sum(faults.values())), ", ".join(found) or "short and plain")


def _on_task(talk: Talk, known: Cues) -> Score:
    """The errand is mentioned, and the customer stays one."""
    spoken = [move for move in talk.moves if words(move.raw)]
    if not spoken:
        return Score(0.0, "nothing was said")
    opening = [t.text for t in talk.performance.turns if t.replayed]
    said = frozenset[str]().union(*(content(text) for text in [*opening, *(m.raw for m in spoken)]))
    named = not talk.goal_words or bool(talk.goal_words & said)
    flipped = sum(bool(known.find("assistant", m.text)) for m in spoken) / len(spoken)
    told = "the errand is named" if named else "the errand is never named"
    told += f", {flipped:.0%} of the turns are a helper's" if flipped else ""
    return Score((1.0 if named else 0.5) * (1 - flipped), told)


def _announced(talk: Talk, known: Cues, behavior: str) -> str:
    """Return the words by which the customer tells of the behavior, or nothing."""
    name = behaviors.get(behavior).name.replace("_", " ")
    for move in talk.moves:
        found = known.find("announced", move.text) or (name if name in move.text else "")
        if found:
            return f"turn {move.turn} {found!r}"
    return ""


def _cooperative(talk: Talk, known: Cues) -> Score:
    """Every behavior that shows takes its strength away; weak signs do not count."""
    if not any(words(move.raw) for move in talk.moves):
        return Score(0.0, "nothing was said")
    shown = [f for f in findings(talk.performance, known.name) if f.strength >= 0.5]
    lost = sum(f.strength for f in shown)
    told = ", ".join(f"{behaviors.get(f.behavior).name}: {f.why}" for f in shown)
    return Score(max(0.0, 1 - lost), told or "nothing was made difficult")
