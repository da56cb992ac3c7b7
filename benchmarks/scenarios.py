"""Speed of composing scenarios, with the machine named -> benchmarks/scenarios.json.

    python benchmarks/scenarios.py [abcd:FOLDER]

CPU time of one core for 10,000 valid rows, of our manual and of ABCD where a copy is named. The
aim is recorded beside the figures and never asserted: seconds depend on the machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

from run import machine, measured

import mimesim
from mimesim import jsonio
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.compose import ComposeResult, compose

OUT = Path(__file__).with_name("scenarios.json")
ROWS = 10_000
TARGET = 20.0


def main() -> None:
    """Compose with each manual and each replay, and write the figures."""
    figures = []
    for source in ("company", *sys.argv[1:2]):
        manual = manuals.load(source)
        for replay in ("none", "identity"):
            made: list[ComposeResult] = []
            cost = measured(
                lambda m=manual, r=replay, into=made: into.append(
                    compose(m, seed=3, count=ROWS, replay=r)
                )
            )
            figures.append(
                {
                    "manual": manual.name,
                    "replay": replay,
                    "rows": len(made[0].rows),
                    "dropped": dict(made[0].dropped),
                    "cpu_s": round(cost.cpu, 2),
                }
            )
    result = {
        "schema": "mimesim.benchmark/1",
        "machine": machine(),
        "versions": {"mimesim": mimesim.__version__},
        "target_cpu_s": TARGET,
        "figures": figures,
    }
    jsonio.write_json(OUT, result)
    for figure in figures:
        print(figure)


if __name__ == "__main__":
    main()
