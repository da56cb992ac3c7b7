"""The workload of a recipe on a machine: at the fast end, at the point, at the slow end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mimesim.config import recipes
from mimesim.train.plan.assumptions import SIDES, Side
from mimesim.train.plan.calls import Calls, calls_of
from mimesim.train.plan.machines import CPU, check_count, machine_named
from mimesim.train.plan.memory import Memory, memory_of
from mimesim.train.plan.recipe import Asked, Read, located, read
from mimesim.train.plan.shapes import SHAPES, Shape, shape_of
from mimesim.train.plan.timing import (
    BatchSeconds,
    Setting,
    batch_seconds,
    supervised_seconds,
    teacher_tokens,
)
from mimesim.train.plan.workload import Reinforced, Supervised, Workload, workload_of

_USER = "qwen3.5-9b"
"""Shape of a served user whose path does not tell: the larger one of the paper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One side of a plan.

    Attributes:
        seconds: wall-clock. batch: of one generation batch; None where nothing is played.
        gpu_hours: of the machines that train and of those that serve (cores on a CPU).
        generated, trained, teacher: tokens of the whole run.
    """

    seconds: float
    batch: BatchSeconds | None
    gpu_hours: float
    generated: float
    trained: float
    teacher: float
    memory: Memory
    calls: list[Calls] = field(default_factory=list)

    @property
    def dollars(self) -> float | None:
        """What the calls cost; None = a price is not known."""
        found = [call.dollars for call in self.calls]
        return None if None in found else sum(d for d in found if d is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A recipe, what it has to compute, on what, and the three sides of that."""

    read: Read
    load: Workload
    setting: Setting
    sides: Mapping[Side, Estimate]


def sketch(recipe: Path, asked: Asked) -> Sketch:
    """Return the estimates of a training recipe, by path or by name.

    Raises:
        ConfigError: it is no training, or does not say how much there is to read.
        UnknownNameError: no such recipe, machine, model or gym.
    """
    found = read(located(recipe), asked)
    load = workload_of(found)
    setting = setting_of(found, load, asked)
    sides = {side: estimate(load, setting, asked, side) for side in SIDES}
    return Sketch(read=found, load=load, setting=setting, sides=sides)


def estimate(load: Workload, setting: Setting, asked: Asked, side: Side) -> Estimate:
    """Return one side of a plan."""
    memory = memory_of(load, setting, side)
    if isinstance(load, Supervised):
        seconds = supervised_seconds(load, setting, side)
        return Estimate(
            seconds=seconds,
            batch=None,
            gpu_hours=seconds / 3600 * setting.count,
            generated=0.0,
            trained=load.tokens.at(side),
            teacher=0.0,
            memory=memory,
        )
    batch = batch_seconds(load, setting, side)
    talk, count = load.conversation(side), load.batches * load.rollouts
    return Estimate(
        seconds=batch.whole * load.batches,
        batch=batch,
        gpu_hours=batch.whole * load.batches / 3600 * (setting.count + setting.servers),
        generated=count * talk.generated,
        trained=count * talk.student,
        teacher=count * teacher_tokens(load, side),
        memory=memory,
        calls=calls_of(load, asked.prices, side),
    )


def setting_of(found: Read, load: Workload, asked: Asked) -> Setting:
    """Return what runs where: as asked, else as the recipe notes, else one core each thread.

    Raises:
        UnknownNameError: no such machine or model.
        ConfigError: a number of machines that cannot be.
    """
    notes = found.notes
    machine = machine_named(asked.gpu or notes.gpu or CPU)
    usual = notes.gpus if machine.name == notes.gpu else None
    count = asked.gpus or usual or (1 if machine.is_gpu else load.cores)
    served = isinstance(load, Reinforced) and any(p.place == "served" for p in load.parties)
    shape = shape_of(asked.model or notes.model or load.model, [recipes.base(found.path)])
    return Setting(
        shape=shape,
        machine=machine,
        count=check_count(count, "--gpus"),
        user_shape=_user_shape(found, load),
        servers=check_count(notes.server_gpus or count, "x-plan.server_gpus") if served else 0,
        engine=asked.engine or ("vllm" if machine.is_gpu else "hf"),
        sharded=asked.sharded if asked.sharded is not None else machine.is_gpu and count > 1,
    )


def _user_shape(found: Read, load: Workload) -> Shape:
    if found.notes.user_model:
        return shape_of(found.notes.user_model, where="x-plan.user_model")
    named = [p.model for p in load.parties if p.place == "served"] if isinstance(load, Reinforced) else []  # fmt: skip
    return shape_of(named[0]) if named and named[0] in SHAPES else SHAPES[_USER]
