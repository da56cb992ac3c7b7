"""A plug-in for verl 0.9.1, which lives in an environment of its own; never run on a GPU so far.

verl imports this package in each of its processes when `VERL_USE_EXTERNAL_MODULES` names it; only
then is anything registered. The parts without verl (`term`, `settings`, `rows`) can be used and
tested anywhere. Results through it are labelled `teacher=cached`.
"""

from __future__ import annotations

import os

from mimesim.train.verl_plugin.adapters import register

__all__ = ["register"]

if __name__ in os.environ.get("VERL_USE_EXTERNAL_MODULES", "").replace(" ", "").split(","):
    register()
