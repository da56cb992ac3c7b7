"""Pairwise comparison with balanced order: which of two texts, and does the side matter?

A judge that likes the first side would shift every rate, so over the planned list each text stands
first equally often, to within one. The order depends on ids and seed only,
never on the texts, so it is the same for every subject and stays when some items fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel

from mimesim import seeds
from mimesim.dialogue.types import Usage
from mimesim.judges.base import Failed, Judge, JudgeRequest, JudgeResult, Skipped, Verdict

KIND = "pairwise"


class Order(StrEnum):
    """Which text stands first. The subject is what is measured, e.g. the generated text."""

    SUBJECT_FIRST = "AB"
    REFERENCE_FIRST = "BA"


class PairVerdict(BaseModel):
    """The winner by side; the keys come in the order in which they are to be written."""

    reason: str = ""
    winner: Literal["A", "B", "tie"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts and what decides between them. `criterion` is one question."""

    subject: str
    reference: str
    criterion: str


@dataclass(frozen=True, slots=True)
class Preference:
    """Share of the point that the subject gets: 1 wins, 0.5 ties, 0 loses.

    Attributes:
        consistent: whether both orders said the same; None = only one order was judged.
        results: the raw results, in the order in which they were asked for.
    """

    score: float
    consistent: bool | None
    usage: Usage
    results: tuple[JudgeResult[PairVerdict], ...]


def balanced_orders(
    ids: Sequence[str], *, benchmark: str, seed: int = 0, sample: int = 0
) -> dict[str, Order]:
    """Assign an order to every planned item, equally often to within one.

    Args:
        ids: all planned items, unique; also those that may fail later.
        benchmark: name of the measurement.
        seed: of the assignment.
        sample: repetition of the same judgment.

    Raises:
        ValueError: an id occurs twice.
    """
    if len(set(ids)) != len(ids):
        raise ValueError("item ids must be unique")
    ranked = sorted(ids, key=lambda i: seeds.fingerprint(f"{seed}|{benchmark}|{i}|{sample}", 64))
    orders = (Order.SUBJECT_FIRST, Order.REFERENCE_FIRST)
    return {item: orders[place % 2] for place, item in enumerate(ranked)}


async def compare(
    judge: Judge, pair: Pair, order: Order, *, seed: int, trial: int = 0
) -> Preference | Failed | Skipped:
    """Judge a pair once, in one order.

    Raises:
        InfraError, ContextExceeded: as `Judge.judge`.
    """
    texts = (pair.subject, pair.reference)
    first, second = texts if order is Order.SUBJECT_FIRST else texts[::-1]
    result = await judge.judge(
        JudgeRequest(
            KIND,
            {"criterion": pair.criterion, "first": first, "second": second},
            PairVerdict,
            seed=seeds.derive(seed, KIND, order.value),
            trial=trial,
        )
    )
    if not isinstance(result, Verdict):
        return result
    won = "A" if order is Order.SUBJECT_FIRST else "B"
    winner = result.value.winner
    score = 0.5 if winner == "tie" else float(winner == won)
    return Preference(score, None, result.usage, (result,))


async def compare_both(
    judge: Judge, pair: Pair, *, seed: int, trial: int = 0
) -> Preference | Failed | Skipped:
    """Judge a pair in both orders and average; either order without a verdict leaves none.

    Raises:
        InfraError, ContextExceeded: as `Judge.judge`.
    """
    one = await compare(judge, pair, Order.SUBJECT_FIRST, seed=seed, trial=trial)
    if not isinstance(one, Preference):
        return one
    two = await compare(judge, pair, Order.REFERENCE_FIRST, seed=seed, trial=trial)
    if not isinstance(two, Preference):
        return two
    return Preference(
        (one.score + two.score) / 2,
        one.score == two.score,
        one.usage + two.usage,
        one.results + two.results,
    )
