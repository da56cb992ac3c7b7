"""Whether a lexicon file behaves as the official lists do, on runs that everybody may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mimesim.bench.suites.difficulty import frozen_difficulty
from mimesim.bench.suites.sessions import read_sessions
from mimesim.bench.suites.usi import index
from mimesim.bench.suites.usi.lexicon import OFFICIAL, Lexicon
from mimesim.errors import DataError
from mimesim.results.suite import Mode

TOLERANCE = 1e-6
OFFICIAL_PAIRS: Mapping[int, Mapping[str, float]] = {
    1: {"D1": 96.640705, "D2": 97.681163, "D3": 71.280795, "D4": 86.001094, "ECE": 0.06},
    2: {"D1": 77.882540, "D2": 97.596237, "D3": 67.349486, "D4": 64.624619, "ECE": 0.10},
    3: {"D1": 65.901545, "D2": 96.896049, "D3": 72.014985, "D4": 64.437416, "ECE": 0.12},
}
"""Trial -> scores of trial 0 of the public airline runs of tau-bench against it, `compat`."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of a lexicon found.

    Attributes:
        lexicon: the one checked, now marked if it gave all official values.
        found: trial -> score -> value.
        differences: one line for each value that is not the official one.
    """

    lexicon: Lexicon
    found: Mapping[int, Mapping[str, float]]
    differences: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "name": self.lexicon.name,
            "fingerprint": self.lexicon.fingerprint,
            "verified": self.lexicon.name == OFFICIAL,
            "pairs": {f"0-{trial}": dict(values) for trial, values in self.found.items()},
            "differences": list(self.differences),
        }


def verify_lexicon(lexicon: Lexicon, source: str) -> Verification:
    """Compare the scores of a lexicon on the public airline runs with the official ones.

    Args:
        lexicon: any.
        source: the 200 runs of GPT-4o on the airline tasks, e.g. `tau-bench:<file>`.

    Raises:
        DataError: other runs than these.
    """
    found = trial_pairs(lexicon, source, "compat")
    differences = [
        f"trial 0 against {trial}: {name} is {found[trial][name]:.6f}, official {value:.6f}"
        for trial, values in OFFICIAL_PAIRS.items()
        for name, value in values.items()
        if not abs(found[trial][name] - value) <= TOLERANCE
    ]
    return Verification(replace(lexicon, verified=not differences), found, tuple(differences))


def trial_pairs(lexicon: Lexicon, source: str, mode: Mode) -> dict[int, dict[str, float]]:
    """Return trial -> scores of trial 0 of some runs against it.

    Raises:
        DataError: other runs than the four trials of the fifty airline tasks.
    """
    import numpy as np

    measured = index.measure_all(read_sessions(source, raw=True), lexicon, mode)
    names = list(dict.fromkeys(one.key for one in measured.rows))
    if measured.runs != [0, 1, 2, 3] or len(names) != 50 or names[0] != "airline_0":
        raise DataError(
            f"{len(names)} tasks in {len(measured.runs)} trials",
            where=source,
            expected="the public runs of GPT-4o on the 50 airline tasks of tau-bench, four trials",
        )
    cells = cells_of(measured, names)
    member, once = index.bins_of(names, frozen_difficulty()), np.ones((1, len(names)))
    found = {}
    for trial in measured.runs[1:]:
        scores = index.compare([cells[0]], cells[trial], member, once)
        if scores is not None:
            found[trial] = {name: float(values[0]) for name, values in scores.values.items()}
    return found


def cells_of(measured: index.MeasuredSet, names: Sequence[str]) -> list[index.Cells]:
    """Return the sums of every run over the same tasks."""
    return [index.Cells.of(measured.run(run).rows, names) for run in measured.runs]
