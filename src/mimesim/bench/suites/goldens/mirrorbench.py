"""Golden numbers of MirrorBench: agreement of its judges with people, calibration."""

from __future__ import annotations

from pathlib import Path

from mimesim.bench.suites.goldens.base import Check, numbers
from mimesim.bench.suites.mirrorbench import LEAST_CONTROLS, against_people, calibrated

_FILE = "mirrorbench/judge_vs_human.jsonl"


def _gteval(file: Path) -> dict[str, float | None]:
    return against_people(file)["gteval"]


def _pairwise(file: Path) -> dict[str, float | None]:
    return against_people(file)["pi_pairwise"]


def _calibration() -> dict[str, float | None]:
    scores, hh, pp = (0.2, 0.5, 0.9), [0.8] * LEAST_CONTROLS, [0.2] * LEAST_CONTROLS
    found, _ = calibrated(scores, hh, pp)
    same, _ = calibrated(scores, hh, hh)
    few, _ = calibrated(scores, hh[:1], pp[:1])
    forced, _ = calibrated(scores, hh, hh, "compat")
    return {
        **dict(zip(("0.2", "0.5", "0.9"), found or (), strict=True)),
        "equal anchors": None if same is None else same[0],
        "few controls": None if few is None else few[0],
        "equal anchors, compat": None if forced is None else forced[0],
    }


CHECKS: list[Check] = [
    numbers(
        "mirrorbench/gteval against people",
        {
            "n": 100,
            "rho": 0.6969429335,
            "r": 0.6818103469,
            "tau-b": 0.6165883266,
            "human mean": 0.5345,
            "judge mean": 0.578,
            "human sd": 0.308523,
            "judge sd": 0.289838,
            "MAE": 0.1785,
        },
        _gteval,
        file=_FILE,
        tolerance={"rho": 1e-9, "r": 1e-9, "tau-b": 1e-9},
    ),
    numbers(
        "mirrorbench/pairwise against people",
        {
            "n": 100,
            "rho": 0.6078102069,
            "r": 0.5802129300,
            "tau-b": 0.5410027910,
            "human mean": 0.515,
            "judge mean": 0.628333,
            "human sd": 0.385698,
            "judge sd": 0.359928,
            "MAE": 0.25,
            "label Tie": 41,
            "label A": 30,
            "label B": 29,
            "slot A": 43,
            "slot B": 57,
        },
        _pairwise,
        file=_FILE,
        tolerance={"rho": 1e-9, "r": 1e-9, "tau-b": 1e-9},
    ),
    numbers(
        "mirrorbench/calibration",
        {
            "0.2": 0,
            "0.5": 0.5,
            "0.9": 1,
            "equal anchors": None,
            "few controls": None,
            "equal anchors, compat": 0,
        },
        _calibration,
    ),
]
