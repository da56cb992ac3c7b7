"""Golden numbers of the Turing tests: order, accuracy, tests, ratings."""

from __future__ import annotations

from mimesim.bench.suites.goldens.base import Check, holds, numbers
from mimesim.bench.suites.references import references
from mimesim.bench.suites.turing_rl import compat_order
from mimesim.envs.tasks.turing import CRITERIA, PENALTIES, Seven, length_penalty, rate
from mimesim.judges.pairwise import Order, balanced_orders
from mimesim.stats import wilson
from mimesim.stats.proportions import binomial_p, expected_distance, mcnemar, two_proportions


def _orders() -> str:
    """Return the items in their hashed order, each with the side of the generated text."""
    found = balanced_orders([f"c{i}" for i in range(7)], benchmark="pt", seed=0)
    sides = {Order.SUBJECT_FIRST: "A", Order.REFERENCE_FIRST: "B"}
    return " ".join(f"{item}:{sides[order]}" for item, order in found.items())


def _compat() -> str:
    asked = (("u1", "p1", 0, "hello"), ("u1", "p1", 0, "hello there"), ("u2", "p9", 3, "ok thanks"))
    return " ".join("A" if compat_order(*one) is Order.SUBJECT_FIRST else "B" for one in asked)


def _accuracy() -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for k in (266, 277, 300):
        interval = wilson(k, 300)
        for name, value in (("", interval.value), (" low", interval.low), (" high", interval.high)):
            found[f"{k}{name}"] = None if value is None else 100 * value
    found["distance of 266"] = 100 * abs(266 / 300 - 0.5)
    found["signed 44 %"] = 100 * (0.44 - 0.5)
    found["expected distance"] = 100 * expected_distance(300)
    z = two_proportions(266, 300, 277, 300)
    found |= {"z": z[0] if z else None, "p": z[1] if z else None}
    found["McNemar 3 10"], found["McNemar 0 5"] = mcnemar(3, 10), mcnemar(0, 5)
    found["McNemar 4 4"], found["binomial 5 of 10"] = mcnemar(4, 4), binomial_p(5, 10)
    return found


def _seven(criteria: tuple[float, ...], penalties: tuple[float, ...]) -> Seven:
    named = dict(zip(CRITERIA, criteria, strict=True)) | dict(
        zip(PENALTIES, penalties, strict=True)
    )
    return Seven(**named)


def _ratings() -> dict[str, float | None]:
    a = _seven((0.9, 0.8, 0.7), (0, 0, 0, 0.4)).total()
    b = _seven((0.5, 0.6, 0.4), (0.8, 0, 0, 0.2)).total()
    at_b, at_a = rate(a, b, generated_is_b=True), rate(a, b, generated_is_b=False)
    gaps = (-2.0, -1.0, -0.25, 0.25, 1.0, 2.0)
    edges = {f"gap {gap:g}": rate(0, gap, generated_is_b=True).rating for gap in gaps}
    return {
        "A": a,
        "B": b,
        "rating": at_b.rating,
        "s at B": at_b.s,
        "reward at B": at_b.reward,
        "s at A": at_a.s,
        "reward at A": at_a.reward,
        "raw 6 at A": rate(0, 1.0, generated_is_b=False).s,
        "raw 1 at A": rate(2.0, 0, generated_is_b=False).s,
        "raw 4": rate(0, 0, generated_is_b=True).reward,
        **edges,
        "10 of 20 words": length_penalty(10, 20),
        "33 of 20 words": length_penalty(33, 20),
        "0 of 20 words": length_penalty(0, 20),
    }


def _printed() -> str:
    wrong = [
        row.subject
        for row in references("turing")
        if abs(abs(row.values["caught"] / 3 - 50) - row.values["distance"]) > 0.05
    ]
    wrong += [
        row.subject for row in references("turing-rl") if abs(sum(row.values.values()) - 100) > 0.15
    ]
    rows = len(references("turing") + references("turing-rl"))
    return f"{rows - len(wrong)} of {rows} agree with themselves" + "".join(
        f", not {w}" for w in wrong
    )


CHECKS: list[Check] = [
    holds("turing/balanced order", "c5:A c0:B c3:A c2:B c4:A c1:B c6:A", _orders),
    holds("turing/compat order", "A B B", _compat),
    numbers(
        "turing/accuracy and tests",
        {
            "266": 88.6667,
            "266 low": 84.5801,
            "266 high": 91.7755,
            "277 low": 88.7590,
            "277 high": 94.8372,
            "300 low": 98.7357,
            "300 high": 100.0,
            "distance of 266": 38.6667,
            "signed 44 %": -6.0,
            "expected distance": 2.30,
            "z": 1.531549,
            "p": 0.125634,
            "McNemar 3 10": 0.092285,
            "McNemar 0 5": 0.0625,
            "McNemar 4 4": 1.0,
            "binomial 5 of 10": 1.0,
        },
        _accuracy,
        tolerance={
            **dict.fromkeys(("266", "266 low", "266 high", "277 low", "277 high"), 5e-5),
            **dict.fromkeys(("300 low", "distance of 266"), 5e-5),
            "expected distance": 0.005,
        },
    ),
    numbers(
        "turing/ratings",
        {
            "A": 2.1,
            "B": 0.75,
            "rating": 2,
            "s at B": 2,
            "reward at B": 1 / 6,
            "s at A": 6,
            "reward at A": 2 / 3,
            "raw 6 at A": 2,
            "raw 1 at A": 7,
            "raw 4": 0.5,
            "gap -2": 1,
            "gap -1": 2,
            "gap -0.25": 3,
            "gap 0.25": 5,
            "gap 1": 6,
            "gap 2": 7,
            "10 of 20 words": 0.13125,
            "33 of 20 words": 0.075,
            "0 of 20 words": 0.25,
        },
        _ratings,
    ),
    holds("turing/printed tables", "25 of 25 agree with themselves", _printed),
]
