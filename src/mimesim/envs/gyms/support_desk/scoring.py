"""How a desk episode is scored: evidence, procedure, verdict, as pure functions.

S = 0.3 E + 0.3 P + 0.4 V, all in [0, 1]. E: required fields that were really obtained and used.
P: longest common subsequence of the executed calls and the gold procedure. V: the case was closed
rightly. A step's reward is what S gains over its best so far, so a return is at most 1.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

WEIGHTS = {"E": 0.3, "P": 0.3, "V": 0.4}
GRANTED, DENIED, ESCALATED, ABANDONED = "granted", "denied", "escalated", "abandoned"
RESOLUTIONS = (GRANTED, DENIED, ESCALATED, ABANDONED)
MIN_EVIDENCE = 0.5
"""Least E with which a case can be closed rightly."""
ASKS_NEEDED = 2
"""How often a field that the customer never gave must have been asked for to count."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call: name and arguments as strings. Gold steps have the same shape."""

    name: str
    arguments: Mapping[str, str]


def canon(value: object) -> str:
    """Return the one spelling of a value: letters and digits only, lower case, single blanks."""
    text = unicodedata.normalize("NFKC", str(value)).casefold()
    return " ".join(re.findall(r"[^\W_]+", text))


def agrees(call: Call, gold: Call) -> bool:
    """Tell whether `call` carries out `gold`: same tool, every gold value given."""
    return call.name == gold.name and all(
        slot in call.arguments and canon(call.arguments[slot]) == canon(value)
        for slot, value in gold.arguments.items()
    )


def procedure(executed: Sequence[Call], gold: Sequence[Call]) -> float:
    """Return P in [0, 1]: the longest common subsequence over the length of the gold procedure."""
    row = [0] * (len(gold) + 1)
    for call in executed:
        diagonal = 0
        for j, step in enumerate(gold, start=1):
            above = row[j]
            row[j] = diagonal + 1 if agrees(call, step) else max(above, row[j - 1])
            diagonal = above
    return row[-1] / len(gold)


@dataclass(frozen=True, slots=True)
class Identity:
    """What is known of the customer's identity at close.

    Attributes:
        asked_out: every identity field that the customer did not give was asked for twice.
    """

    verified: bool
    left: bool
    asked_out: bool


def allowed(verdict: str, identity: Identity, *, left_unverified: bool) -> frozenset[str]:
    """Return the resolutions that are right.

    Args:
        verdict: what the policy demands of this case.
        identity: what is known of the customer.
        left_unverified: the customer left before being verified.
    """
    if identity.left:
        return frozenset({ABANDONED} if left_unverified else {verdict, ABANDONED})
    if identity.verified:
        return frozenset({verdict})
    return frozenset({ESCALATED, DENIED} if identity.asked_out else {ESCALATED})


def evidence(
    required: Sequence[str], obtained: Collection[str], excused: Collection[str] = ()
) -> float:
    """Return E in [0, 1].

    Args:
        required: the fields of the case.
        obtained: fields whose true value was said or returned, and then used in a call.
        excused: fields asked for in vain, counted at close only.
    """
    return sum(f in obtained or f in excused for f in required) / len(required)


def total(e: float, p: float, v: float) -> float:
    """Return S in [0, 1]."""
    return WEIGHTS["E"] * e + WEIGHTS["P"] * p + WEIGHTS["V"] * v
