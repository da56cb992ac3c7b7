"""What stands beside judged numbers: what the judge cost, and how far other judges agree with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mimesim.dialogue.types import Usage
from mimesim.judges.agreement import agreement as labels_agree
from mimesim.judges.agreement import compare
from mimesim.judges.stored import Stored

_LABELS = 10
"""More different texts than this are prose, not labels."""


def cost(lines: Sequence[Stored]) -> dict[str, Any]:
    """Return what verdicts cost: calls, tokens and, where known, money; empty where nothing."""
    total = sum((Usage(**one.usage) for one in lines if one.usage), Usage())
    if not total.calls:
        return {}
    return {
        "calls": total.calls,
        "prompt_tokens": total.prompt_tokens,
        "completion_tokens": total.completion_tokens,
        "cost_usd": total.cost,
    }


def agreement(verdicts: Mapping[str, Sequence[Stored]]) -> dict[str, Any]:
    """Compare the first judge with every other one, per field of the verdicts they share.

    Scores in [0, 1] and yes or no: share on the same side of 0.5, kappa, rank correlation.
    Labels: share of equal ones, kappa. Prose and other numbers are not compared.
    """
    first, *others = verdicts
    return {f"{first} x {other}": _fields(verdicts[first], verdicts[other]) for other in others}


def _fields(left: Sequence[Stored], right: Sequence[Stored]) -> dict[str, Any]:
    theirs = {_question(one): one for one in right}
    pairs = [(one, theirs[_question(one)]) for one in left if _question(one) in theirs]
    names = dict.fromkeys(name for one, _ in pairs for name in one.value or {})
    found = {}
    for name in names:
        told = _compared([(_value(a, name), _value(b, name)) for a, b in pairs])
        if told is not None:
            found[name] = told
    return found


def _compared(pairs: Sequence[tuple[Any, Any]]) -> dict[str, Any] | None:
    known = [value for pair in pairs for value in pair if value is not None]
    if known and all(isinstance(v, int | float) and 0 <= v <= 1 for v in known):
        a, b = (
            [None if v is None else float(v) for v in side] for side in zip(*pairs, strict=True)
        )
        both = compare(a, b)
        return {
            "n": both.n,
            "share": both.share.value,
            "kappa": both.kappa.value,
            "spearman": both.spearman.value,
        }
    if known and all(isinstance(v, str) for v in known) and len(set(known)) <= _LABELS:
        equal = labels_agree(*zip(*pairs, strict=True))
        return {"n": equal.n, "share": equal.share, "kappa": equal.kappa}
    return None


def _value(one: Stored, name: str) -> Any:
    return None if one.value is None else one.value.get(name)


def _question(one: Stored) -> tuple[str, str, str, int]:
    return (one.item, one.kind, one.order, one.sample)
