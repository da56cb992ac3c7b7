"""MimeSim: learn user simulators, measure them, and train agents against them.

Implements the system of "MIMESIS: Learning User Simulators as Training Environments for
Interactive Agents" (arXiv 2610.09484). Importing this package loads no torch and no network code.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "simulate": "mimesim.api.simulate",
    "asimulate": "mimesim.api.simulate",
    "Results": "mimesim.api.results",
    "AgentEnd": "mimesim.envs.base",
}
"""What the package offers beside its rooms, loaded when it is used."""


def __getattr__(name: str) -> Any:
    """Load what `mimesim.<name>` means.

    Raises:
        AttributeError: nothing of that name.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return vars(importlib.import_module(_HOMES[name]))[name]
