"""The state of a full desk episode: one frozen value, replaced as a whole when a step succeeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.envs.gyms.support_desk import scoring
from mimesim.envs.gyms.support_desk.case import Case
from mimesim.envs.gyms.support_desk.scoring import Call, canon
from mimesim.scenarios.fields import asked_fields, field_name, says_field

_BARE = 3
"""Values up to this length (yes, no, 2) mean something only as the answer to a question."""


@dataclass(frozen=True, slots=True)
class State:
    """All that changes in an episode.

    Attributes:
        history: public words of customer and agent, in order.
        invalid: invalid actions in a row.
        left: how the customer left; empty = they are there.
        left_unverified: they left before they were verified.
        matched: identity fields that agreed with the record.
        returned: fields that tools have handed back.
        used: (field, canonical value) of values obtained and then used in a call.
        asks: field -> in how many turns it was asked for.
        wish: what the customer has changed their mind about.
        best: highest score so far.
    """

    history: tuple[PublicMessage, ...] = ()
    turns: int = 0
    invalid: int = 0
    left: str = ""
    left_unverified: bool = False
    matched: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    used: tuple[tuple[str, str], ...] = ()
    asks: Mapping[str, int] = field(default_factory=dict)
    executed: tuple[Call, ...] = ()
    violations: tuple[str, ...] = ()
    wish: Mapping[str, str] = field(default_factory=dict)
    resolution: str = ""
    best: float = 0.0
    done: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return JSON values that `from_json` reads back."""
        return {
            "history": [[m.role.value, m.content] for m in self.history],
            "left": self.left,
            "left_unverified": self.left_unverified,
            "matched": list(self.matched),
            "returned": list(self.returned),
            "used": [list(pair) for pair in self.used],
            "asks": dict(self.asks),
            "executed": [[call.name, dict(call.arguments)] for call in self.executed],
            "violations": list(self.violations),
            "wish": dict(self.wish),
            "resolution": self.resolution,
            "best": self.best,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], *, turns: int, invalid: int, done: bool) -> State:
        """Read the JSON values back."""
        return cls(
            history=tuple(PublicMessage(Role(role), text) for role, text in raw["history"]),
            turns=turns,
            invalid=invalid,
            left=raw["left"],
            left_unverified=raw["left_unverified"],
            matched=tuple(raw["matched"]),
            returned=tuple(raw["returned"]),
            used=tuple((name, value) for name, value in raw["used"]),
            asks=dict(raw["asks"]),
            executed=tuple(Call(name, dict(slots)) for name, slots in raw["executed"]),
            violations=tuple(raw["violations"]),
            wish=dict(raw["wish"]),
            resolution=raw["resolution"],
            best=raw["best"],
            done=done,
        )


def heard(state: State, name: str, value: str) -> bool:
    """Tell whether the customer has stated `value` for field `name`.

    A bare "yes" or "two" counts as the answer to the question just before it.
    """
    question = ""
    for message in state.history:
        if message.role is Role.AGENT:
            question = message.content
        elif says_field(message.content, name, value) or (
            len(value) <= _BARE
            and name in asked_fields(question)
            and says_field(f"{field_name(name)} {message.content}", name, value)
        ):
            return True
    return False


def verified(state: State, case: Case) -> bool:
    """Tell whether every identity field of the request has matched."""
    return set(case.request.identity) <= set(state.matched)


def count_asks(state: State, text: str) -> State:
    """Note which fields the agent's message asks for."""
    asks = dict(state.asks)
    for name in asked_fields(text):
        asks[name] = asks.get(name, 0) + 1
    return replace(state, asks=asks)


def note_use(state: State, call: Call, case: Case) -> State:
    """Note the values of `call` that the customer had said or a tool had returned."""
    truth = case.truth(state.wish)
    fresh = []
    for slot, value in call.arguments.items():
        name = case.field_of(call.name, slot)
        returned = name in state.returned and canon(truth.get(name, "")) == canon(value)
        if returned or heard(state, name, value):
            fresh.append((name, canon(value)))
    return replace(state, used=tuple(dict.fromkeys((*state.used, *fresh))))


@dataclass(frozen=True, slots=True)
class Grade:
    """The score at one moment: E, P, V and their sum S."""

    E: float
    P: float
    V: float

    @property
    def S(self) -> float:
        """The total."""
        return scoring.total(self.E, self.P, self.V)


def grade(state: State, case: Case) -> Grade:
    """Score the state; what was asked for in vain counts once the case is closed."""
    truth = case.truth(state.wish)
    obtained = {name for name in case.required if (name, canon(truth[name])) in state.used}
    p = scoring.procedure(state.executed, case.gold(state.wish))
    if not state.resolution:
        return Grade(scoring.evidence(case.required, obtained), p, 0.0)
    allowed = _allowed(state, case)
    excused = _excused(state, case) if state.resolution in allowed else ()
    e = scoring.evidence(case.required, obtained, excused)
    right = state.resolution in allowed and not state.violations and e >= scoring.MIN_EVIDENCE
    return Grade(e, p, float(right))


def _allowed(state: State, case: Case) -> frozenset[str]:
    missing = _not_given(state, case, case.request.identity)
    identity = scoring.Identity(
        verified=verified(state, case),
        left=bool(state.left),
        asked_out=all(state.asks.get(name, 0) >= scoring.ASKS_NEEDED for name in missing),
    )
    return scoring.allowed(case.verdict, identity, left_unverified=state.left_unverified)


def _excused(state: State, case: Case) -> tuple[str, ...]:
    """Return the required fields that an unverified customer never gave, though asked twice."""
    if verified(state, case):
        return ()
    return tuple(
        name
        for name in _not_given(state, case, case.required)
        if state.asks.get(name, 0) >= scoring.ASKS_NEEDED
    )


def _not_given(state: State, case: Case, names: tuple[str, ...]) -> tuple[str, ...]:
    truth = case.truth(state.wish)
    return tuple(name for name in names if not heard(state, name, truth[name]))
