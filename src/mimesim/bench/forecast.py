"""What an evaluation would do: its cells, episodes and calls, and what is missing; nothing is called."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from mimesim.bench.config import EvaluationConfig
from mimesim.bench.outline import Cell, Outline, folder_of, outline
from mimesim.bench.ready import missing, self_judge, speaks_through
from mimesim.bench.rows import NOBODY
from mimesim.config import redact
from mimesim.envs.load import gym_spec
from mimesim.judges.load import SELF


@dataclass(frozen=True, slots=True)
class Forecast:
    """An evaluation before it is run.

    Attributes:
        cells: what is played, with the folder of each below `out`.
        episodes: by gym, over all its cells.
        calls: (endpoint, party) -> calls at most, retries of lost ones left out.
        missing: what must be there before it can start, one line each.
    """

    cells: tuple[Cell, ...]
    tasks: dict[str, int]
    episodes: dict[str, int]
    calls: dict[tuple[str, str], int]
    missing: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "ready": not self.missing,
            "missing": list(self.missing),
            "cells": [
                {
                    "arm": cell.arm.label,
                    "seed": cell.arm.seed,
                    "agent": redact(cell.arm.agent),
                    "user": cell.user,
                    "gym": cell.gym,
                    "episodes": self.episodes_of(cell),
                    "folder": str(folder_of(cell)),
                }
                for cell in self.cells
            ],
            "episodes": sum(self.episodes.values()),
            "calls_at_most": [
                {"endpoint": place, "party": party, "calls": n}
                for (place, party), n in self.calls.items()
            ],
        }

    def episodes_of(self, cell: Cell) -> int:
        """Return the episodes of one cell; those of a gym are all alike."""
        return self.episodes[cell.gym] // sum(other.gym == cell.gym for other in self.cells)


def forecast(config: EvaluationConfig) -> Forecast:
    """Say what a configuration would run.

    Raises:
        UsageError: a name that does not exist, or what makes no matrix.
    """
    plan = outline(config)
    lacks = missing(config)
    tasks = {gym: len(ground.tasks) for gym, ground in plan.grounds.items()}
    episodes: Counter[str] = Counter()
    calls: Counter[tuple[str, str]] = Counter()
    for cell in plan.cells:
        n = tasks[cell.gym] * config.gyms.trials
        episodes[cell.gym] += n
        for place, party, each in _calls(config, plan, cell):
            if place:
                calls[place, party] += n * each
    return Forecast(plan.cells, tasks, dict(episodes), dict(calls), tuple(lacks))


def _calls(config: EvaluationConfig, plan: Outline, cell: Cell) -> list[tuple[str, str, int]]:
    """Return (endpoint, party, calls per episode at most) of a cell."""
    spec = gym_spec(cell.gym, plan.grounds[cell.gym].profile)
    steps = min(spec.max_steps, config.matrix.limits.max_steps or spec.max_steps)
    found = [(speaks_through(cell.arm.agent), f"agent {cell.arm.name}", steps)]
    if spec.needs_user:
        options = config.user_options.get(cell.user)
        found.append((speaks_through(cell.user, options), f"user {redact(cell.user)}", steps + 1))
    if spec.needs_judge:
        judge = who = config.gyms.judge
        if judge == SELF and cell.user != NOBODY:
            judge, _ = self_judge(cell.user, config.user_options.get(cell.user))
            who = cell.user
        found.append((speaks_through(judge), f"judge {redact(who)}", steps))
    return found
