"""`python -m tests.support.agent_runs START OUT JSON [KILL_AT]`: one agent run, alone, under torchrun, or killed.

JSON holds settings of the run; KILL_AT names the batch after which the process kills itself, as an
out-of-memory killer would.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.rollout.policy import PolicyConfig
from mimesim.train import launch
from mimesim.train.agent import AgentConfig, BatchLog, train_agent
from mimesim.train.csd import CsdConfig
from mimesim.train.launch import Launch
from mimesim.train.validation import ValidationConfig

_TABLES: Mapping[str, Any] = {
    "csd": CsdConfig,
    "launch": Launch,
    "policy": PolicyConfig,
    "validation": ValidationConfig,
}


def config(start: Path, out: Path, **changed: Any) -> AgentConfig:
    """Return a run of a few seconds; tables may be given as dicts."""
    given: dict[str, Any] = {
        "init": start,
        "out": out,
        "batches": 4,
        "prompts": 2,
        "group": 4,
        "minibatches": 2,
        "lr": 1e-3,
        "warmup": 1,
        "csd": CsdConfig(alpha=0.1),
        "policy": PolicyConfig(1.0, 6),
        "trackers": (),
        "save_every": 1,
    }
    for key, value in changed.items():
        given[key] = _TABLES[key](**value) if isinstance(value, dict) else value
    return AgentConfig(**given)


def main(start: Path, out: Path, settings: dict[str, Any], kill_at: int) -> None:
    """Train; the first process writes what it heard."""
    heard: list[int] = []

    def hear(log: BatchLog) -> None:
        heard.append(log.batch)
        if log.batch == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    train_agent(config(start, out, **settings), on_batch=hear)
    name = "first" if launch.is_first() else "other"
    jsonio.write_json(out.with_name(f"{out.name}-{name}.json"), {"heard": heard})


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        jsonio.loads(sys.argv[3]),
        int(sys.argv[4]) if len(sys.argv) > 4 else -1,
    )
