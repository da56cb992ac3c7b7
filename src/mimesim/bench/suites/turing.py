"""Turing test: a judge reads a conversation of a person and one of the user, and names the person's.

`accuracy` is how often the person is found; `distance` = |accuracy - 50| is 0 for a user that cannot
be told apart and 50 for one that is always caught, or always taken for the person: read `signed`
beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from mimesim.bench.suites.base import Inputs, SuiteFacts
from mimesim.bench.suites.questions import (
    Judged,
    Pair,
    Pairs,
    Question,
    Told,
    estimate,
    judged,
    number,
    pair_up,
    record,
    shown,
    with_people,
)
from mimesim.config import from_options
from mimesim.errors import ConfigError
from mimesim.judges.base import Judge
from mimesim.judges.pairwise import Order, balanced_orders
from mimesim.judges.stored import Work
from mimesim.results.suite import FloorRow, Metric, PerKey, SuiteScore
from mimesim.results.values import Estimate
from mimesim.stats import Interval, mean_ci, wilson
from mimesim.stats.proportions import binomial_p, expected_distance
from mimesim.stats.texts import words

NAME = "turing"
KIND = "turing.pair"
_LONG = 40
_SHORT = 5
_MARKS = ".!?…\"'”)"


class Choice(BaseModel):
    """Which conversation has the person, and how sure the judge is, in percent."""

    reason: str = ""
    conversation_with_human_user: Literal["1", "2"]
    confidence_rating: float = Field(ge=0, le=100)


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the suite.

    Attributes:
        both_orders: whether every pair is judged twice, each side first once.
        samples: how often each order is judged.
    """

    both_orders: bool = False
    samples: int = 1

    def __post_init__(self) -> None:
        """Refuse less than one sample.

        Raises:
            ConfigError: naming the option.
        """
        if self.samples < 1:
            raise ConfigError("option 'samples' must be at least 1", where=NAME)


class Turing:
    """The pairwise test on whole conversations."""

    facts = SuiteFacts(
        name=NAME,
        title="how often a judge finds the person beside the simulated user",
        needs=("judge",),
        adds=("people",),
        source="SimulatorArena (arXiv 2510.05444); distance as in MIMESIS",
        options={
            "both_orders": "judge every pair in both orders (default false)",
            "samples": "verdicts per pair and order (default 1)",
        },
    )

    def works(self, inputs: Inputs, judge: Judge) -> Iterable[Work]:
        """Return one question per pair, order and sample; see `Suite.works`."""
        questions, _ = _planned(inputs)
        return [question.work(judge, inputs.seed) for question in questions]

    def score(self, inputs: Inputs) -> SuiteScore:
        """Return accuracy, distance and accuracy by slot; see `Suite.score`."""
        inputs = with_people(inputs, "mirrorbench")
        questions, found = _planned(inputs)
        asked = judged(questions, inputs.verdicts)
        told = caught(asked, found.pairs, inputs)
        told = Told(
            told.metrics,
            told.floors,
            told.by_key,
            found.excluded,
            (*told.warnings, *found.warnings),
        )
        return record(NAME, inputs, asked, told)


def _planned(inputs: Inputs) -> tuple[list[Question], Pairs]:
    options = from_options(Options, inputs.options, where=f"suite {NAME!r}")
    inputs = with_people(inputs, "mirrorbench")
    found = pair_up(inputs)
    return questions_of(found.pairs, inputs.seed, options), found


def questions_of(
    pairs: Sequence[Pair], seed: int, options: Options | None = None
) -> list[Question]:
    """Return the questions on pairs, the user's conversation first in exactly every second one."""
    options = options or Options()
    found = []
    for sample in range(options.samples):
        orders = balanced_orders([p.item for p in pairs], benchmark=NAME, seed=seed, sample=sample)
        for pair in pairs:
            asked = list(Order) if options.both_orders else [orders[pair.item]]
            found += [_question(pair, order, sample) for order in asked]
    return found


def _question(pair: Pair, order: Order, sample: int) -> Question:
    sides = [shown(pair.subject), shown(pair.person)]
    first, second = sides if order is Order.SUBJECT_FIRST else sides[::-1]
    return Question(
        pair.item,
        KIND,
        {"first": first, "second": second},
        Choice,
        rule=by_roughness,
        order=order.value,
        sample=sample,
    )


def finds_person(question: Question, value: Mapping[str, Any]) -> bool:
    """Tell whether a verdict names the side on which the person stands."""
    person = "2" if question.order == Order.SUBJECT_FIRST else "1"
    return bool(value["conversation_with_human_user"] == person)


def caught(asked: Judged, pairs: Sequence[Pair], inputs: Inputs) -> Told:
    """Return what the verdicts on pairs say."""
    cluster = {pair.item: pair.cluster for pair in pairs}
    found: dict[str, list[tuple[str, bool]]] = {}
    sure = []
    for question, value in asked.answers(KIND):
        found.setdefault(question.item, []).append((question.order, finds_person(question, value)))
        sure.append(float(value["confidence_rating"]))
    shares = {item: sum(hit for _, hit in hits) / len(hits) for item, hits in found.items()}
    once = all(len(hits) == 1 for hits in found.values())
    rate = _rate(shares, once=once, inputs=inputs)
    metrics = [
        Metric("accuracy", estimate(rate, 100), "%", "none", "pairs"),
        Metric("distance", _distance(rate), "points", "lower", "pairs"),
        Metric("signed", _signed(rate), "points", "nearer", "pairs"),
    ]
    if once:
        p = binomial_p(round(sum(shares.values())), len(shares))
        method = "exact two-sided binomial against 50 %"
        metrics.append(Metric("p", number(p, len(shares), method), "", "none", "pairs"))
    else:
        metrics.append(_order_dependent(found))
    for order, name in ((Order.REFERENCE_FIRST, "1"), (Order.SUBJECT_FIRST, "2")):
        hits = [hit for several in found.values() for side, hit in several if side == order]
        here = estimate(wilson(sum(hits), len(hits)), 100)
        metrics.append(Metric(f"accuracy, person at {name}", here, "%", "none", "verdicts"))
    mean = math.fsum(sure) / len(sure) if sure else None
    metrics.append(Metric("confidence", number(mean, len(sure)), "%", "none", "verdicts"))
    chance = number(100 * expected_distance(len(shares)), len(shares), "sqrt(2/pi * .25/n)")
    note = "the distance of a user that cannot be told apart, by chance alone"
    floors = (FloorRow("distance", "perfect simulator", chance, note),)
    by_key = {"caught": PerKey(shares, {item: cluster[item] for item in shares})}
    return Told(tuple(metrics), floors, by_key)


def _rate(shares: Mapping[str, float], *, once: bool, inputs: Inputs) -> Interval:
    values = list(shares.values())
    if once:
        return wilson(round(sum(values)), len(values))
    return mean_ci(values, seed=inputs.seed, draws=inputs.draws)


def _signed(rate: Interval) -> Estimate:
    value, low, high = (
        None if b is None else 100 * b - 50 for b in (rate.value, rate.low, rate.high)
    )
    return Estimate(value, low, high, rate.n, rate.method)


def _distance(rate: Interval) -> Estimate:
    """Return |accuracy - 50|; an interval across 50 begins at 0."""
    signed = _signed(rate)
    if signed.value is None or signed.low is None or signed.high is None:
        return signed
    ends = sorted((abs(signed.low), abs(signed.high)))
    low = 0.0 if signed.low < 0 < signed.high else ends[0]
    return Estimate(abs(signed.value), low, ends[1], signed.n, signed.method)


def _order_dependent(found: Mapping[str, Sequence[tuple[str, bool]]]) -> Metric:
    """Return how many pairs got another verdict when the sides were swapped."""
    parted = []
    for hits in found.values():
        sides = {order: [hit for side, hit in hits if side == order] for order in Order}
        if all(sides.values()):
            means = [sum(side) / len(side) for side in sides.values()]
            parted.append(means[0] != means[1])
    share = estimate(wilson(sum(parted), len(parted)), 100)
    return Metric("order-dependent", share, "%", "lower", "pairs")


def by_roughness(inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Take the rougher writer for the person: a transparent guess, no model of people.

    Rough = short messages, no capital at the start, no mark at the end; long ones count against it.
    Of two equally rough ones the shorter; silent where both are equally long, too.
    """
    sides = [_said(inputs[side]) for side in ("first", "second")]
    rough = [roughness(said) for said in sides]
    if math.isclose(*rough):
        sizes = [sum(len(words(text)) for text in said) / max(1, len(said)) for said in sides]
        if math.isclose(*sizes):
            return None
        return {
            "conversation_with_human_user": "1" if sizes[0] < sizes[1] else "2",
            "confidence_rating": 50,
        }
    return {
        "conversation_with_human_user": "1" if rough[0] > rough[1] else "2",
        "confidence_rating": round(50 + 50 * min(1.0, abs(rough[0] - rough[1]) / 4), 1),
    }


def roughness(messages: Sequence[str]) -> float:
    """Return how rough messages are written, from -1 to 3."""
    signs = []
    for text in (message.strip() for message in messages):
        size = len(words(text))
        letters = [sign for sign in text if sign.isalpha()]
        low = bool(letters) and letters[0].islower()
        signs.append(low + (text[-1:] not in _MARKS) + (size <= _SHORT) - (size > _LONG))
    return sum(signs) / len(signs) if signs else 0.0


def _said(transcript: Sequence[Mapping[str, str]]) -> list[str]:
    return [turn["text"] for turn in transcript if turn["role"] == "user"]


SUITE = Turing()
