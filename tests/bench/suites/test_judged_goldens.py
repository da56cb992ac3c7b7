"""Known numbers of the suites with judges, computed by the code that users run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mimesim.bench.suites.goldens import mirrorbench, realusersim, simarena, turing, userlm
from mimesim.bench.suites.goldens.base import Check

CHECKS = [
    check
    for module in (mirrorbench, realusersim, simarena, turing, userlm)
    for check in module.CHECKS
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_known_number(check: Check) -> None:
    place = os.environ.get("MIMESIM_TEST_DATA", "")
    outcome = check.outcome(Path(place) if place else None)
    if outcome.verdict == "skipped":
        pytest.skip(outcome.reason)
    assert outcome.verdict == "passed", outcome
