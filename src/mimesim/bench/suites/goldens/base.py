"""What a golden check is: a number known beforehand, computed again by the code that users run.

Each file of this folder holds one list, `CHECKS`. A check is given the folder of the development
data or None; one that needs it ends as skipped where it is absent, and never as passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from mimesim.errors import MimesimError

T = TypeVar("T")

Verdict = Literal["passed", "failed", "skipped"]
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one check ended.

    Attributes:
        verdict: `skipped` only where something that the check needs is absent.
        found: what was computed, empty where nothing was.
        expected: what should have been found.
        reason: why it failed or was skipped.
    """

    verdict: Verdict
    found: str = ""
    expected: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One golden check.

    Attributes:
        name: `<suite>/<what>`, e.g. `usi/pass^k`; `selftest --only` selects by its start.
        expected: what should come out, one line for people.
        run: given the data folder or None, returns how it ended; made by `numbers` or `holds`,
            or written by hand.
    """

    name: str
    expected: str
    run: Callable[[Path | None], Outcome]

    def outcome(self, data: Path | None) -> Outcome:
        """Run the check; an error of the package is a failed check, not an end of the self-test."""
        try:
            return self.run(data)
        except MimesimError as error:
            return Outcome("failed", expected=self.expected, reason=str(error))


def numbers(
    name: str,
    expected: Mapping[str, float | None],
    compute: Callable[[Path], Mapping[str, float | None]]
    | Callable[[], Mapping[str, float | None]],
    *,
    file: str = "",
    tolerance: float | Mapping[str, float] = TOLERANCE,
) -> Check:
    """Return a check that compares numbers by name.

    Args:
        name: see `Check`.
        expected: name -> number; None = there must be no number.
        compute: takes the path of `file`, or nothing where `file` is empty.
        file: below the data folder; the check is skipped where it is absent.
        tolerance: absolute, for all or by name (then `TOLERANCE` for the rest).
    """
    allowed = tolerance if isinstance(tolerance, Mapping) else dict.fromkeys(expected, tolerance)

    def judge(found: Mapping[str, float | None]) -> Outcome:
        wrong = [
            key
            for key, value in expected.items()
            if not _same(found.get(key), value, allowed.get(key, TOLERANCE))
        ]
        keys = wrong or list(expected)
        return Outcome(
            "failed" if wrong else "passed",
            found=_line(keys, found),
            expected=_line(keys, expected),
            reason=f"{len(wrong)} of {len(expected)} numbers differ" if wrong else "",
        )

    return Check(name, _line(list(expected), expected), _given(file, compute, judge))


def holds(
    name: str,
    expected: str,
    compute: Callable[[Path], str] | Callable[[], str],
    *,
    file: str = "",
) -> Check:
    """Return a check that passes where `compute` returns exactly `expected`.

    Args:
        name: see `Check`.
        expected: what is to be found, e.g. `2 4 1 0 5 3`.
        compute: takes the path of `file`, or nothing where `file` is empty.
        file: below the data folder; the check is skipped where it is absent.
    """

    def judge(found: str) -> Outcome:
        same = found == expected
        return Outcome(
            "passed" if same else "failed", found, expected, "" if same else "it differs"
        )

    return Check(name, expected, _given(file, compute, judge))


def _given(
    file: str, compute: Callable[..., T], judge: Callable[[T], Outcome]
) -> Callable[[Path | None], Outcome]:
    def run(data: Path | None) -> Outcome:
        if not file:
            return judge(compute())
        if data is None:
            what = "the development data" if file == "." else file
            return Outcome("skipped", reason=f"needs {what}: name the data folder by --data")
        path = data / file
        if not path.exists():
            return Outcome("skipped", reason=f"{path} does not exist")
        return judge(compute(path))

    return run


def _same(found: float | None, expected: float | None, tolerance: float) -> bool:
    if found is None or expected is None:
        return found is expected
    return abs(found - expected) <= tolerance


def _line(keys: Sequence[str], values: Mapping[str, float | None]) -> str:
    shown = [f"{key} {_number(values.get(key))}" for key in keys[:6]]
    return ", ".join(shown) + (f" and {len(keys) - 6} more" if len(keys) > 6 else "")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.10g}"
