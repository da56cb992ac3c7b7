"""`make bench`: speed figures of this checkout, with the machine named -> benchmarks/latest.json.

Seconds depend on the machine, so they are recorded and never asserted. Every figure is the median
of several repetitions in one run; ratios are made inside one run, where load cancels out.
"""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

import mimesim
from mimesim import jsonio
from mimesim.rollout.events import RunStarted
from mimesim.rollout.prepare import RunConfig, execute, prepare
from mimesim.rollout.store import Store

OUT = Path(__file__).with_name("latest.json")
REPETITIONS = 5
EPISODES = 200
TARGETS = {"import_cpu_s": 0.5, "help_cpu_s": 0.5}
"""What is aimed at; recorded beside the figure."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one repetition cost, in seconds."""

    wall: float
    cpu: float


def measured(work: Callable[[], object]) -> Cost:
    """Run `work` once, child processes included in its CPU time."""
    before, started = _cpu(), time.perf_counter()
    work()
    return Cost(time.perf_counter() - started, _cpu() - before)


def _cpu() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def repeated(work: Callable[[], object]) -> Cost:
    """Return the medians of several repetitions."""
    costs = [measured(work) for _ in range(REPETITIONS)]
    return Cost(median(c.wall for c in costs), median(c.cpu for c in costs))


def python(*arguments: str) -> Callable[[], object]:
    """Return a function that runs a fresh interpreter."""
    command = [sys.executable, *arguments]
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def play(out: Path, concurrency: int) -> None:
    """Play scripted episodes of the desk and store them."""
    config = RunConfig(user="scripted:neutral", episodes=EPISODES, seed=7, concurrency=concurrency)
    prepared = prepare(config)
    store = Store.open(out, prepared.plan, overwrite=True)
    try:
        asyncio.run(execute(prepared, store=store))
    finally:
        store.close()


def resume(out: Path) -> None:
    """Start a finished run again; nothing may be played."""
    prepared = prepare(RunConfig(user="scripted:neutral", episodes=EPISODES, seed=7))
    store = Store.open(out, prepared.plan)
    seen: list[RunStarted] = []
    try:
        asyncio.run(
            execute(
                prepared,
                store=store,
                on_event=lambda e: seen.append(e) if isinstance(e, RunStarted) else None,
            )
        )
    finally:
        store.close()
    assert seen[0].resumed == seen[0].total == EPISODES


def machine() -> dict[str, object]:
    """Name the machine."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text("utf-8").splitlines()
        cpu = next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), cpu)
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load_1min": round(os.getloadavg()[0], 2),
        "platform": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def report(episodes: Path) -> None:
    """Build the page of an episode file."""
    from mimesim.report import html, load

    html.render(load.load(episodes))


def main() -> None:
    """Measure everything and write the figures."""
    bare = repeated(python("-c", "pass"))
    light = repeated(python("-c", "import mimesim"))
    help_ = repeated(python("-m", "mimesim", "--help"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "episodes.jsonl"
        one = repeated(lambda: play(out, 1))
        eight = repeated(lambda: play(out, 8))
        again = repeated(lambda: resume(out))
        page = repeated(lambda: report(out))
        size = out.stat().st_size
    figures = {
        "import_cpu_s": round(light.cpu - bare.cpu, 4),
        "help_cpu_s": round(help_.cpu - bare.cpu, 4),
        "episodes_per_s": round(EPISODES / eight.wall, 1),
        "bytes_per_episode": size // EPISODES,
        "resume_s": round(again.wall, 4),
        "report_s": round(page.wall, 4),
    }
    ratios = {
        "wall of concurrency 8 to 1": round(eight.wall / one.wall, 3),
        "resuming to playing": round(again.wall / eight.wall, 3),
        "report to playing": round(page.wall / eight.wall, 3),
    }
    result = {
        "schema": "mimesim.benchmark/1",
        "machine": machine(),
        "versions": {n: version(n) for n in ("openai", "pydantic", "typer")}
        | {"mimesim": mimesim.__version__},
        "episodes": EPISODES,
        "repetitions": REPETITIONS,
        "figures": figures,
        "targets": TARGETS,
        "ratios": ratios,
    }
    jsonio.write_json(OUT, result)
    for name, value in {**figures, **ratios}.items():
        print(f"{name:32} {value}")


if __name__ == "__main__":
    main()
