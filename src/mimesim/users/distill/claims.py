"""What a judge model says about a conversation, and how much of it stands there.

Every claim quotes a message of the person. A claim whose quote does not occur in that message, or
whose value does not occur in its quote, is dropped and counted. Where the judge gives nothing that
can be read, what the rules found stands.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import BaseModel

from mimesim.corpora.base import HumanDialogue, HumanTurn
from mimesim.errors import EpisodeError
from mimesim.judges.base import Judge, JudgeRequest, Verdict
from mimesim.scenarios.fields import fold, says
from mimesim.seeds import derive
from mimesim.users import guards
from mimesim.users.distill.base import Distilled, Evidence, Fact
from mimesim.users.distill.facts import unlocked
from mimesim.users.distill.goals import quotes
from mimesim.users.words import key_of

KIND = "distill"
"""The kind of question; its template is `judge/distill`."""

_MOST = 40
_LONGEST = 200
"""Characters of one value, and of a goal twice that."""


class FactClaim(BaseModel):
    """A fact that the judge found."""

    key: str
    value: str
    turn: int
    quote: str


class PersonClaim(BaseModel):
    """All that the judge says about one person."""

    goal: str
    goal_turn: int
    goal_quote: str
    facts: list[FactClaim]
    outcome: Literal["solved", "not_solved", "unclear"]
    outcome_turn: int | None = None
    outcome_quote: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of asking.

    Attributes:
        distilled: the rules' findings with the claims that hold, or untouched.
        result: `verdict`, or why there is none.
        claims: how many claims were made.
        dropped: claims that do not hold, by reason.
    """

    distilled: Distilled
    result: str
    claims: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


async def ask_judge(
    judge: Judge, dialogue: HumanDialogue, ruled: Distilled, *, seed: int
) -> Judged:
    """Let a judge describe the person, and keep what it can show.

    Raises:
        UsageError: the judge cannot be used at all, e.g. a wrong key.
    """
    messages = [
        {"turn": place, "role": "person" if turn.role == "user" else "agent", "text": turn.text}
        for place, turn in enumerate(dialogue.turns)
    ]
    request = JudgeRequest(
        KIND, {"messages": messages}, PersonClaim, seed=derive(seed, KIND, dialogue.id)
    )
    try:
        result = await judge.judge(request)
    except EpisodeError as error:
        return Judged(ruled, error.reason)
    if not isinstance(result, Verdict):
        return Judged(ruled, result.reason)
    return _checked(result.value, dialogue.turns, ruled)


def _checked(claim: PersonClaim, turns: Sequence[HumanTurn], ruled: Distilled) -> Judged:
    dropped: Counter[str] = Counter()
    merged = _with_facts(ruled, _facts(claim.facts, turns, ruled.facts, dropped))
    goal_from = _place(turns, claim.goal_turn, claim.goal_quote, dropped)
    goal = " ".join(claim.goal.split())
    opening = next(turn.text for turn in turns if turn.role == "user")
    if goal_from is not None and _fit_goal(goal, opening, dropped):
        merged = replace(merged, goal=goal, goal_from=(goal_from,))
    claims = len(claim.facts) + 1
    if claim.outcome != "unclear":
        claims += 1
        shown = _place(turns, claim.outcome_turn, claim.outcome_quote, dropped)
        if shown is not None:
            merged = replace(merged, ending=claim.outcome, ending_from=shown)
    return Judged(merged, "verdict", claims, dropped)


def _fit_goal(goal: str, opening: str, dropped: Counter[str]) -> bool:
    fit = bool(goal) and len(goal) <= 2 * _LONGEST and not quotes(opening, goal)
    dropped["goal_unfit"] += not fit
    return fit


def _place(
    turns: Sequence[HumanTurn], turn: int | None, quote: str | None, dropped: Counter[str]
) -> Evidence | None:
    """Return where a quote stands, in the spelling of the message; None = it does not."""
    if turn is None or not 0 <= turn < len(turns) or turns[turn].role != "user":
        dropped["no_turn_of_the_person"] += 1
        return None
    words = (quote or "").split()
    pattern = r"\s+".join(map(re.escape, words))
    found = re.search(pattern, turns[turn].text, re.IGNORECASE) if words else None
    if found is None:
        dropped["quote_not_in_turn"] += 1
        return None
    return Evidence(turn, found.group())


def _facts(
    claims: Sequence[FactClaim],
    turns: Sequence[HumanTurn],
    ruled: Sequence[Fact],
    dropped: Counter[str],
) -> list[Fact]:
    found: dict[str, Fact] = {}
    for claim in claims:
        said = _place(turns, claim.turn, claim.quote, dropped)
        if said is None:
            continue
        key, value = key_of(claim.key), " ".join(claim.value.split())
        if not key or not value or len(value) > _LONGEST:
            dropped["key_or_value_unfit"] += 1
        elif not _stated(value, said.quote):
            dropped["value_not_in_quote"] += 1
        elif key in found or len(found) == _MOST:
            dropped["key_twice"] += 1
        else:
            asked = _asked(key, value, said, turns, ruled)
            found[key] = Fact(key, value, said, asked, by="judge")
    return list(found.values())


def _stated(value: str, quote: str) -> bool:
    """Tell whether the words of a value are said; a yes or no is read off, not said."""
    said = set(guards.words(quote))
    words = guards.words(value)
    return (
        fold(value) in ("yes", "no")
        or (bool(words) and said.issuperset(words))
        or says(quote, value)
    )


def _asked(
    key: str, value: str, said: Evidence, turns: Sequence[HumanTurn], ruled: Sequence[Fact]
) -> Evidence | None:
    """Return the question that brought a fact out: the one right before it that unlocks its key."""
    earlier = [turn.text for turn in turns[: said.turn] if turn.role == "user"]
    before = turns[said.turn - 1] if said.turn else None
    if before is None or before.role != "agent" or any(says(text, value) for text in earlier):
        return None
    if not unlocked(key, before.text):
        return None
    known = [
        f.asked for f in ruled if f.asked and f.said.turn == said.turn and _same(f.value, value)
    ]
    return known[0] if known else Evidence(said.turn - 1, before.text)


def _same(left: str, right: str) -> bool:
    return says(left, right) or says(right, left)


def _with_facts(ruled: Distilled, claimed: Sequence[Fact]) -> Distilled:
    """Return the claims, and those findings of the rules that they do not cover."""
    told = {fact.key: fact for fact in claimed}
    for fact in ruled.facts:
        covered = any(f.said.turn == fact.said.turn and _same(f.value, fact.value) for f in claimed)
        if not covered and fact.key not in told and len(told) < _MOST:
            told[fact.key] = fact
    return replace(ruled, facts=tuple(told.values()))
