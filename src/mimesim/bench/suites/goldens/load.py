"""All golden checks: those of every file of this folder."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence

from mimesim.bench.suites import goldens
from mimesim.bench.suites.goldens.base import Check
from mimesim.registry import unknown_name

_NO_CHECKS = ("base", "load")


def checks(only: Sequence[str] = ()) -> list[Check]:
    """Return the checks whose names begin with one of `only`; empty = all.

    Raises:
        UnknownNameError: no check begins so.
    """
    found: list[Check] = []
    for entry in pkgutil.iter_modules(goldens.__path__):
        if entry.name not in _NO_CHECKS:
            module = importlib.import_module(f"{goldens.__name__}.{entry.name}")
            found += vars(module)["CHECKS"]
    for start in only:
        if not any(check.name.startswith(start) for check in found):
            groups = list(dict.fromkeys(check.name.partition("/")[0] for check in found))
            raise unknown_name("check", start, groups)
    return [c for c in found if not only or c.name.startswith(tuple(only))]
