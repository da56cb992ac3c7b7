"""The names of the suites."""

from __future__ import annotations

from typing import cast

from mimesim.bench.suites.base import Suite
from mimesim.registry import Registry

REGISTRY = Registry(
    "suite",
    {
        "turing": "mimesim.bench.suites.turing:SUITE",
        "turing-rl": "mimesim.bench.suites.turing_rl:SUITE",
        "simarena": "mimesim.bench.suites.simarena.suite:SUITE",
        "realusersim": "mimesim.bench.suites.realusersim.suite:SUITE",
        "userlm": "mimesim.bench.suites.userlm:SUITE",
        "mirrorbench": "mimesim.bench.suites.mirrorbench:SUITE",
        "usi": "mimesim.bench.suites.usi.suite:SUITE",
        "tau-usi": "mimesim.bench.suites.usi.suite:TAU_SUITE",
        "calibration": "mimesim.bench.calibration.run:SUITE",
        "discriminator": "mimesim.bench.suites.discriminator:SUITE",
        "lexical": "mimesim.bench.suites.lexical:SUITE",
        "soul": "mimesim.bench.suites.soul:SUITE",
        "self-check": "mimesim.bench.suites.self_check:SUITE",
        "behavior": "mimesim.bench.suites.behavior:SUITE",
    },
)
"""Each entry is an object that fulfils `bench.suites.base.Suite`."""

_NEEDS = ("facts", "works", "score")


def get_suite(name: str) -> Suite:
    """Return the suite called `name`.

    Raises:
        UnknownNameError: no such suite.
    """
    return cast(Suite, REGISTRY.load(name, _NEEDS))


def suites() -> list[Suite]:
    """Return all suites; a broken extension is left out with a warning."""
    return REGISTRY.each(get_suite)
