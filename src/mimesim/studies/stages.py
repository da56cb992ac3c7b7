"""What each stage of the embedded study does; `python -m mimesim.studies.stages stage.json`.

A stage reads its settings from the file, works in its folder, says how far it is, and writes
`result.json` last. Errors that a user can mend end it with one line and exit code 2.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.errors import EnvironmentFault, UsageError
from mimesim.studies.scheduler import ATTACHED, Reporter

Settings = Mapping[str, Any]
Stage = Callable[[Path, Settings, Reporter], dict[str, Any]]


def train_the_user(folder: Path, settings: Settings, report: Reporter) -> dict[str, Any]:
    """Train SmolLM2 as the human side of chats; held-out NLL before and after."""
    from mimesim.train.midtrain import UserConfig, train_user
    from mimesim.train.sft import Progress

    def tell(event: Progress) -> None:
        report.say(event.step / max(1, event.steps), f"step {event.step}, loss {event.loss:.3f}")

    report.say(0.0, "held-out NLL before training")
    return train_user(
        UserConfig(
            out=folder / "checkpoint",
            token_budget=int(settings["tokens"]),
            eval_conversations=int(settings["evaluation"]),
            seed=int(settings["seed"]),
            threads=1,
        ),
        on_progress=tell,
    )


def start_the_agent(folder: Path, settings: Settings, report: Reporter) -> dict[str, Any]:
    """Warm-start the embedded policy on demonstrations and check the gate."""
    from mimesim.train.sft import Progress
    from mimesim.train.warmstart import DemoConfig, WarmConfig, warm_start

    def tell(event: Progress) -> None:
        report.say(event.step / max(1, event.steps), f"step {event.step}, loss {event.loss:.3f}")

    report.say(0.0, "playing demonstrations")
    config = WarmConfig(
        out=folder,
        seed=int(settings["seed"]),
        demos=DemoConfig(rows=int(settings["demos"])),
        steps=int(settings["steps"]),
        batch=int(settings["batch"]),
        lr=float(settings["lr"]),
        muon_lr=float(settings["muon_lr"]),
    )
    result = warm_start(config, on_progress=tell)
    reached = _gate(folder / "policy")
    if reached < float(settings["gate"]):
        raise EnvironmentFault(
            f"the warm start reached {reached:.1%} greedy success with the cooperative user",
            expected=f"at least {float(settings['gate']):.0%} before RL may start",
            mend="train it longer (sft_steps) or on more demonstrations (demos)",
        )
    return {**result, "gate": reached}


def _gate(policy: Path) -> float:
    """Return greedy success with the cooperative user on 200 tasks of their own."""
    from mimesim.bench.agents import MatrixConfig, run_cell

    cell = run_cell("gate", 0, "scripted:cooperative", _policy(policy), MatrixConfig(seed=909))
    return sum(cell.success.values()) / max(1, len(cell.success))


def _policy(checkpoint: Path) -> Any:
    from mimesim.models.load import make_token_model
    from mimesim.rollout.policy import PolicyConfig, PolicySource

    return PolicySource(make_token_model(f"policy:{checkpoint}"), PolicyConfig(temperature=0.0))


def train_the_agent(folder: Path, settings: Settings, report: Reporter) -> dict[str, Any]:
    """Train one arm with multi-turn GRPO against its frozen user."""
    from mimesim.train.agent import AgentConfig, BatchLog, train_agent
    from mimesim.train.csd import CsdConfig

    batches = int(settings["batches"])

    def tell(log: BatchLog) -> None:
        success = log.values.get("episode/success", 0.0)
        report.say(log.batch / batches, f"batch {log.batch}, success {success:.0%}")

    config = AgentConfig(
        init=Path(settings["init"]),
        out=folder,
        user=str(settings["user"]),
        seed=int(settings["seed"]),
        batches=batches,
        csd=CsdConfig(alpha=float(settings["alpha"])),
        save_every=25,
    )
    result = train_agent(config, on_batch=tell)
    return {**result, "arm": settings["arm"], "sft": settings["sft"], "rl": settings["rl"]}


def evaluate(folder: Path, settings: Settings, report: Reporter) -> dict[str, Any]:
    """Run one checkpoint against every evaluation user; episodes stay beside the result."""
    from mimesim.bench.agents import MatrixConfig, run_cell
    from mimesim.envs.agents.load import make_agent

    config = MatrixConfig(tasks=int(settings["tasks"]), seed=int(settings["seed"]))
    label = int(settings["sft"]) * 100 + int(settings["rl"])
    users = list(settings["users"])
    if "checkpoint" in settings:
        agent = _policy(Path(settings["checkpoint"]))
    else:
        agent = make_agent(str(settings["agent"]), action_format=config.action_format)
    cells = []
    for index, user in enumerate(users):
        report.say(index / len(users), user)
        where = folder / user.partition(":")[2]
        cell = run_cell(str(settings["arm"]), label, user, agent, config, where)
        cells.append(
            {
                "user": user,
                "success": [[*key, value] for key, value in cell.success.items()],
                "reward": [[*key, value] for key, value in cell.reward.items()],
                "ends": dict(cell.ends),
                "invalid": cell.invalid,
            }
        )
    return {
        "arm": settings["arm"],
        "seed": label,
        "agent": settings.get("agent", "policy"),
        "cells": cells,
    }


def _talk(folder: Path, settings: Settings, report: Reporter) -> dict[str, Any]:
    from mimesim.studies.talk import talk

    return talk(folder, settings, report)


STAGES: dict[str, Stage] = {
    "user-training": train_the_user,
    "warm-start": start_the_agent,
    "rl": train_the_agent,
    "evaluate": evaluate,
    "user-talk": _talk,
}


def main(request: Path) -> int:
    """Run the stage that `request` describes; return the exit code."""
    settings = jsonio.read_json(request)
    folder = Path(settings["folder"])
    wall, cpu = time.monotonic(), time.process_time()
    try:
        result = STAGES[settings["kind"]](folder, settings, Reporter(folder))
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    result = {
        **result,
        "stage_wall_s": round(time.monotonic() - wall, 1),
        "stage_cpu_s": round(time.process_time() - cpu, 1),
    }
    jsonio.write_json(folder / "result.json", result)
    return 0


def _end_with_the_scheduler() -> None:
    """End this stage and all it started once stdin closes: nobody waits for it any more."""
    while os.read(0, 64):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    if ATTACHED in sys.argv:
        threading.Thread(target=_end_with_the_scheduler, daemon=True).start()
    sys.exit(main(Path(sys.argv[1])))
