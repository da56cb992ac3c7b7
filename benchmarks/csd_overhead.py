"""What CSD costs a training step of the mini desk -> benchmarks/csd_overhead.json.

    python -m benchmarks.csd_overhead [POLICY]

POLICY is a warm-started policy of `support-desk` (`out/warm-start/policy` unless named). Batches of 8
tasks x 8 rollouts, every turn noted by the rule coach, in three arms that take turns in one process:
plain GRPO, CSD with the placebo (the default), CSD without. A step is a generation batch: rollouts,
notes and all its updates. CPU time of one process on one thread; the ratios are what counts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.run import machine
from mimesim import jsonio
from mimesim.errors import EnvironmentFault
from mimesim.train.agent import AgentConfig, BatchLog, train_agent
from mimesim.train.collect import GymCollector
from mimesim.train.csd import CsdConfig
from mimesim.train.notes import NoteConfig

OUT = Path(__file__).with_name("csd_overhead.json")
INIT = Path("out/warm-start/policy")
ROUNDS = 3
BATCHES = 8
WARM = 2
"""First batches of a run that are not measured: they load and fill the ring of placebos."""
ARMS: Mapping[str, tuple[float, bool]] = {
    "grpo": (0.0, False),
    "csd": (0.01, True),
    "csd without placebo": (0.01, False),
}
"""Arm -> alpha, placebo."""
TARGETS = {"csd": 1.75, "csd without placebo": 1.40}
"""Step time over that of GRPO that is aimed at."""


class Clock:
    """CPU seconds of every batch of a run, and the part of them that went into rollouts."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.rollouts: list[float] = []
        self.noted: list[float] = []
        self._last = time.process_time()
        self._played = 0.0

    def played(self, seconds: float) -> None:
        """Count rollouts and notes."""
        self._played += seconds

    def tick(self, log: BatchLog) -> None:
        """Close a batch."""
        now = time.process_time()
        self.steps.append(now - self._last)
        self.rollouts.append(self._played)
        self.noted.append(log.values.get("csd/noted_tokens", 0.0))
        self._last, self._played = now, 0.0


class Timed:
    """Times the collector of a run; what it does is untouched."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._collect = GymCollector.collect

    def __enter__(self) -> None:
        clock, collect = self._clock, self._collect

        def timed(own: GymCollector, *args: Any, **kwargs: Any) -> Any:
            started = time.process_time()
            try:
                return collect(own, *args, **kwargs)
            finally:
                clock.played(time.process_time() - started)

        setattr(GymCollector, "collect", timed)  # noqa: B010 - mypy forbids the plain form

    def __exit__(self, *_: object) -> None:
        setattr(GymCollector, "collect", self._collect)  # noqa: B010 - as above


def measured(init: Path, arm: str, round_: int) -> dict[str, list[float]]:
    """Train one arm for a few batches; return CPU seconds of each batch after the first ones."""
    alpha, placebo = ARMS[arm]
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, Timed(clock):
        config = AgentConfig(
            init=init,
            out=Path(folder) / "run",
            batches=BATCHES,
            seed=round_,
            csd=CsdConfig(alpha=alpha, null_probe=False),
            notes=NoteConfig(debias=placebo, max_noted=16),
            save_every=BATCHES,
        )
        train_agent(config, on_batch=clock.tick)
    played = clock.rollouts[WARM:]
    steps = clock.steps[WARM:]
    return {
        "step": steps,
        "rollouts": played,
        "update": [step - play for step, play in zip(steps, played, strict=True)],
        "noted_tokens": clock.noted[WARM:],
    }


def over(found: Mapping[str, Sequence[Mapping[str, list[float]]]], arm: str, key: str) -> float:
    """Return the median ratio of an arm to GRPO: the same batches, the same tasks, side by side."""
    pairs = zip(found[arm], found["grpo"], strict=True)
    return median(median(a[key]) / median(b[key]) for a, b in pairs)


def main() -> None:
    """Measure and write.

    Raises:
        EnvironmentFault: there is no policy to measure with.
    """
    init = Path(sys.argv[1]) if len(sys.argv) > 1 else INIT
    if not (init / "config.json").is_file():
        raise EnvironmentFault(
            f"no policy in {str(init)!r}",
            mend="make one with `mimesim train warm-start --recipe warm-start`, or name one",
        )
    found: dict[str, list[dict[str, list[float]]]] = {arm: [] for arm in ARMS}
    for round_ in range(ROUNDS):
        for arm in ARMS:
            found[arm].append(measured(init, arm, round_))
            print(f"{arm:20} step {median(found[arm][-1]['step']):.3f} s CPU", flush=True)
    seconds = {
        arm: {
            key: round(median(value for run in runs for value in run[key]), 4)
            for key in ("step", "rollouts", "update")
        }
        for arm, runs in found.items()
    }
    ratios = {
        arm: {key: round(over(found, arm, key), 3) for key in ("step", "update")} for arm in TARGETS
    }
    result = {
        "schema": "mimesim.benchmark/1",
        "machine": machine(),
        "gym": "support-desk, profile compact, user scripted:realistic, coach rule",
        "prompts": 8,
        "group": 8,
        "rounds": ROUNDS,
        "batches": BATCHES - WARM,
        "cpu_s": seconds,
        "noted_tokens": round(median(n for run in found["csd"] for n in run["noted_tokens"])),
        "ratios": ratios,
        "targets": TARGETS,
    }
    jsonio.write_json(OUT, result)
    for arm, pair in ratios.items():
        print(f"{arm:20} step {pair['step']}x (aimed at {TARGETS[arm]}), update {pair['update']}x")


if __name__ == "__main__":
    main()
