"""Golden checks of the learned discriminator and of coverage (benchmarks.md 18.8)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mimesim.bench.suites.goldens.base import Check, numbers
from mimesim.bench.suites.learned import forest, out_of_fold
from mimesim.bench.suites.sessions import Session, read_sessions
from mimesim.bench.suites.usi.features import NAMES, STRUCTURAL, measure
from mimesim.bench.suites.usi.lexicon import own_lexicon
from mimesim.stats.coverage import coverage
from mimesim.stats.separation import auc

_RUNS = "tau_bench/gpt4o_airline_trajectories.jsonl"
_DOCUMENTS = "simulatorarena/document_creation_annotations_for_benchmarking.json"
_EXPECTED = {
    "trial 1 by 0": (0.606570, 0.606570, 0.828493, 3.197864),
    "trial 2 by 0": (0.657057, 0.657036, 0.825200, 3.197864),
    "trial 3 by 0": (0.626888, 0.621872, 0.801917, 3.197864),
    "trial 0 by people": (0.676945, 0.676945, 0.787261, 3.056793),
    "people by trial 0": (0.181914, 0.181911, 0.396071, 3.197864),
}
_KEYS = ("z", "z compat", "raw", "spread")


def _rows(sessions: Sequence[Session]) -> list[tuple[float, ...]]:
    lexicon = own_lexicon()
    columns = [NAMES.index(name) for name in STRUCTURAL]
    measured = [measure(session, lexicon, "fixed") for session in sessions]
    return [tuple(row.values[c] for c in columns) for row in measured if row is not None]


def _sets(data: Path) -> tuple[list[list[tuple[float, ...]]], list[tuple[float, ...]]]:
    runs = read_sessions(str(data / _RUNS), raw=True)
    people = read_sessions(f"simulatorarena:{data / _DOCUMENTS}", raw=True)
    return [_rows(runs.where(trial=i).sessions) for i in range(4)], _rows(people.sessions)


def _toys() -> dict[str, float | None]:
    people = [(0.0, 0.0), (2.0, 0.0)]
    cases = {
        "one of two": ([(0.0, 0.0)], people),
        "the same": (people, people),
        "far away": ([(100.0, 0.0)], people),
        "between": ([(1.0, 0.0)], people),
        "askew": ([(0.0, 0.0), (0.0, 1.0)], [(0.0, 0.0), (3.0, 4.0)]),
    }
    return {name: coverage(p, h, "raw").value for name, (p, h) in cases.items()}


def _coverages(data: Path) -> dict[str, float | None]:
    trials, people = _sets(data)
    pairs = [(trials[1], trials[0]), (trials[2], trials[0]), (trials[3], trials[0])]
    pairs += [(trials[0], people), (people, trials[0])]
    found: dict[str, float | None] = {}
    for name, (points, reference) in zip(_EXPECTED, pairs, strict=True):
        scaled = coverage(points, reference, "z")
        compat, raw = (coverage(points, reference, scale) for scale in ("z-compat", "raw"))
        values = (scaled.value, compat.value, raw.value, scaled.spread)
        found |= {f"{name}, {key}": v for key, v in zip(_KEYS, values, strict=True)}
    return found


def _areas(data: Path) -> dict[str, float | None]:
    trials, people = _sets(data)
    cases = {"people against trial 0": people, "trial 1 against trial 0": trials[1]}
    found: dict[str, float | None] = {}
    for name, side in cases.items():
        rows = [*side, *trials[0]]
        human = [True] * len(side) + [False] * len(trials[0])
        chances = out_of_fold(forest, rows, human, [str(i) for i in range(len(rows))])
        found[name] = auc(chances, human, draws=10).value
    return found


CHECKS: list[Check] = [
    numbers(
        "discriminator/coverage toys",
        {
            "one of two": 0.75,
            "the same": 1.0,
            "far away": 0.0,
            "between": 0.5,
            "askew": 0.7378679656,
        },
        _toys,
    ),
    numbers(
        "discriminator/coverage",
        {
            f"{name}, {key}": value
            for name, values in _EXPECTED.items()
            for key, value in zip(_KEYS, values, strict=True)
        },
        _coverages,
        file=".",
    ),
    numbers(
        "discriminator/forest",
        {"people against trial 0": 0.76, "trial 1 against trial 0": 0.50},
        _areas,
        file=".",
        tolerance=0.08,
    ),
]
