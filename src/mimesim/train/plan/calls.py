"""Calls of users, judges, partners and coaches: how many, how many tokens, for how much."""

from __future__ import annotations

from dataclasses import dataclass

from mimesim.train.plan.assumptions import Side, assumed
from mimesim.train.plan.money import Prices, price_of
from mimesim.train.plan.timing import answer_tokens
from mimesim.train.plan.workload import Party, Place, Reinforced


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """What one party is asked in a whole run.

    Attributes:
        dollars: 0 for a party that is not remote; None = the price is not known.
    """

    role: str
    model: str
    place: Place
    calls: float
    prompt_tokens: float
    completion_tokens: float
    dollars: float | None


def calls_of(load: Reinforced, prices: Prices, side: Side) -> list[Calls]:
    """Return the calls of a run, party by party; scripts and rules are left out."""
    asked = [party for party in load.parties if party.place != "here"]
    return [_calls(load, party, prices, side) for party in asked]


def _calls(load: Reinforced, party: Party, prices: Prices, side: Side) -> Calls:
    talk = load.conversation(side)
    per_talk = 1.0 if party.once else talk.turns
    if party.role == "coach":
        per_talk = min(talk.turns, float(load.noted))
    calls = load.batches * load.rollouts * per_talk * party.share
    history = talk.student if party.once else talk.student / 2
    prompt = calls * (assumed("instructions", side) + history)
    completion = calls * answer_tokens(load, party, side)
    price = price_of(prices, party.model)
    dollars = price.of(prompt, completion, assumed("cached", side)) if price else None
    return Calls(
        role=party.role,
        model=party.model,
        place=party.place,
        calls=calls,
        prompt_tokens=prompt,
        completion_tokens=completion,
        dollars=dollars if party.place == "remote" else 0.0,
    )
