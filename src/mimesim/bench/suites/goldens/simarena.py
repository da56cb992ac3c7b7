"""Golden numbers of SimulatorArena: people's ratings, the standings of assistants, outcomes."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

from mimesim.bench.suites.goldens.base import Check, numbers
from mimesim.bench.suites.references import references
from mimesim.bench.suites.sessions import read_sessions
from mimesim.bench.suites.simarena.asking import kind_of, words_per_turn
from mimesim.bench.suites.simarena.ratings import macro_f1, standings
from mimesim.stats.correlations import kendall, pearson, sample_deviation, spearman
from mimesim.stats.proportions import f1

_DOCUMENTS = "simulatorarena/document_creation_annotations_for_benchmarking.json"
_COLUMNS = ("math interaction", "math correct", "doc interaction", "doc rating")


def _people(file: Path) -> dict[str, float | None]:
    sessions = read_sessions(f"simulatorarena:{file}").sessions
    pairs = [
        (float(s.outcome["interaction_rating"]), float(s.outcome["document_rating"]))
        for s in sessions
    ]
    sides = list(zip(*pairs, strict=True))
    kinds = Counter(kind_of(one) for one in sessions)
    return {
        "rho": spearman(pairs),
        "r": pearson(pairs),
        "tau-b": kendall(pairs),
        "mean interaction": math.fsum(sides[0]) / len(pairs),
        "mean document": math.fsum(sides[1]) / len(pairs),
        "sd interaction": sample_deviation(sides[0]),
        "sd document": sample_deviation(sides[1]),
        "turns per record": sum(len(one.said) for one in sessions) / len(sessions),
        "words per turn": words_per_turn(sessions),
        "least of a kind": min(kinds.values()),
        "most of a kind": max(kinds.values()),
        "workers": len({one.person for one in sessions}),
    }


def _standings() -> dict[str, float | None]:
    rows = {r.subject: [r.values[c] for c in _COLUMNS] for r in references("simarena-assistants")}
    found = standings(rows)
    first, last = next(iter(found.values())), list(found.values())[-1]
    told: dict[str, float | None] = {
        "in printed order": float(list(found) == list(rows)),
        "first": first,
        "last": last,
    }
    for name, (left, right) in {
        "math x doc": (0, 2),
        "math x right": (0, 1),
        "doc x rating": (2, 3),
    }.items():
        pairs = [(row[left], row[right]) for row in rows.values()]
        told |= {f"{name} rho": spearman(pairs), f"{name} r": pearson(pairs)}
        told[f"{name} tau-b"] = kendall(pairs)
    return told


def _outcomes() -> dict[str, float | None]:
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 9 + [(False, False)] * 16
    return {"right": f1(20, 5, 9), "wrong": f1(16, 9, 5), "macro": macro_f1(pairs)}


CHECKS: list[Check] = [
    numbers(
        "simarena/people's ratings",
        {
            "rho": 0.7615705567,
            "r": 0.8115616492,
            "tau-b": 0.6760809099,
            "mean interaction": 8.294118,
            "mean document": 8.470588,
            "sd interaction": 1.735444,
            "sd document": 1.419196,
            "turns per record": 6.843137,
            "words per turn": 25.097421,
            "least of a kind": 17,
            "most of a kind": 17,
            "workers": 51,
        },
        _people,
        file=_DOCUMENTS,
        tolerance={"rho": 1e-9, "r": 1e-9, "tau-b": 1e-9},
    ),
    numbers(
        "simarena/standings",
        {
            "in printed order": 1,
            "first": 1.006032,
            "last": -2.557842,
            "math x doc rho": 0.836355,
            "math x doc r": 0.708864,
            "math x doc tau-b": 0.695687,
            "math x right rho": 0.742602,
            "math x right r": 0.685689,
            "math x right tau-b": 0.528962,
            "doc x rating rho": 0.880500,
            "doc x rating r": 0.577598,
            "doc x rating tau-b": 0.717707,
        },
        _standings,
    ),
    numbers(
        "simarena/outcomes",
        {"right": 0.740741, "wrong": 0.695652, "macro": 0.718196},
        _outcomes,
    ),
]
