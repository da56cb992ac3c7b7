"""The plan of a recipe, with its warnings and with the model's own errors beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mimesim.train.plan import published
from mimesim.train.plan.assumptions import Side
from mimesim.train.plan.estimate import Estimate, Sketch, sketch
from mimesim.train.plan.recipe import AgentView, Asked
from mimesim.train.plan.timing import Setting
from mimesim.train.plan.workload import Reinforced, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a recipe would cost.

    Attributes:
        sides: fast, point and slow.
        error: how far the same model is off the published cost of this stage; None = none is
            published.
        warnings: what should be known before one believes it.
        rows: of each gym of a mixture, in an epoch and held out; empty for one gym.
        epochs: how often all rows are met; None for one gym.
    """

    recipe: Path
    label: str
    setting: Setting
    sides: Mapping[Side, Estimate]
    error: published.Error | None
    warnings: list[str]
    passed_over: list[str]
    price_date: str
    gpu_hour: float | None
    rows: Mapping[str, Split] = field(default_factory=dict)
    epochs: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        setting = self.setting
        return {
            "recipe": str(self.recipe),
            "label": self.label,
            "model": setting.shape.name,
            "parameters": setting.shape.parameters,
            "machine": setting.machine.name,
            "machines": setting.count,
            "serving_machines": setting.servers,
            "engine": setting.engine,
            "sharded": setting.sharded,
            "estimates": {side: _side_json(found) for side, found in self.sides.items()},
            "published": asdict(self.error) if self.error else None,
            "warnings": self.warnings,
            "keys_without_influence": self.passed_over,
            "price_date": self.price_date,
            "gpu_hour": self.gpu_hour,
            "rows": {gym: split._asdict() for gym, split in self.rows.items()},
            "epochs": self.epochs,
        }


def plan_recipe(recipe: Path, asked: Asked | None = None) -> Plan:
    """Plan a training recipe, by path or by name.

    Raises:
        ConfigError: it is no training, or does not say how much there is to read.
        UnknownNameError: no such recipe, machine, model or gym.
    """
    asked = asked or Asked()
    found = sketch(recipe, asked)
    machine = found.setting.machine.name
    rows = found.load.rows if isinstance(found.load, Reinforced) else {}
    return Plan(
        recipe=found.read.path,
        label=found.load.label,
        setting=found.setting,
        sides=found.sides,
        error=published.error(found.load.label),
        warnings=_warnings(found),
        passed_over=list(found.read.passed_over),
        price_date=asked.prices.date,
        gpu_hour=asked.prices.gpu_hour.get(machine),
        rows=rows,
        epochs=_epochs(found.read.view, rows),
    )


def _epochs(view: Any, rows: Mapping[str, Split]) -> float | None:
    """Return how often a run meets all rows of its mixture."""
    whole = sum(split.trained for split in rows.values())
    return view.batches * view.prompts / whole if whole else None


def _side_json(found: Estimate) -> dict[str, Any]:
    """Return one side as JSON values, its sums included."""
    whole = {"whole": found.memory.whole}
    batch = {"batch": {**asdict(found.batch), "whole": found.batch.whole}} if found.batch else {}
    return {
        **asdict(found),
        **batch,
        "memory": {**asdict(found.memory), **whole},
        "dollars": found.dollars,
    }


def _sampling(view: Any) -> str:
    """Return what to know of a plan with an engine: the trainer has none unless it is told of one."""
    if isinstance(view, AgentView) and view.sampler.kind == "vllm":
        return "sampling by vLLM, as the recipe says, nobody has run with this project"
    return (
        "sampling by vLLM is assumed, which nobody has run with this project; as it stands this "
        "recipe samples in the trainer's own process, which --engine hf counts"
    )


def _warnings(found: Sketch) -> list[str]:
    load, setting, sides = found.load, found.setting, found.sides
    told = []
    room = setting.machine.memory * (1 if setting.machine.is_gpu else setting.count)
    if sides["fast"].memory.whole > room:
        told.append("does not fit into memory even at the fast end")
    elif sides["slow"].memory.whole > room:
        told.append("does not fit into memory at the slow end")
    if isinstance(load, Reinforced) and load.agent:
        told.append("unvalidated: no cost of an agent RL run is published")
    if any(call.dollars is None for call in sides["point"].calls):
        told.append("a model has no price; give one with --prices")
    if isinstance(load, Reinforced) and setting.engine == "vllm":
        told.append(_sampling(found.read.view))
    return told
