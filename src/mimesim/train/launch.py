"""How a training is laid over hardware: device, precision, memory, and the processes of a launch.

One process per device, started by `torchrun` or by `accelerate launch` with a config of
`recipes/paper`. Everything that asks which process this is asks here: only the first one writes
what is not a shard. A run that names its number of processes refuses any other number, for a
launcher that quietly starts one process makes another batch of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from torch.serialization import register_package

from mimesim.config.ranges import NATURAL, check_ranges
from mimesim.errors import EnvironmentFault

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What the hardware is used for.

    Attributes:
        device: `auto` takes the GPU of this process where there is one.
        precision: `model` computes in the precision of the weights; `mixed` keeps them and computes
            in bf16.
        gradient_checkpointing: compute activations twice instead of keeping them.
        packing: lay the rows of a micro-batch end to end instead of padding them; refused for
            models that would let rows see one another.
        processes: how many the run is made for; 0 = as many as were started.
    """

    device: Literal["cpu", "auto"] = "cpu"
    precision: Literal["model", "mixed"] = "model"
    gradient_checkpointing: bool = False
    packing: bool = False
    processes: int = 0

    def __post_init__(self) -> None:
        """Refuse a number of processes that cannot be.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, NATURAL, "processes")

    def start(self) -> None:
        """Make sure that the run was started as it says, and let its processes find one another.

        Raises:
            EnvironmentFault: another number of processes, or several GPUs and no launcher.
        """
        started = processes()
        if self.processes and started != self.processes:
            raise EnvironmentFault(
                f"{started} process{'' if started == 1 else 'es'} started, {self.processes} wanted",
                where="launch.processes",
                expected="one process per device, all of one batch",
                mend=f"start with torchrun --nproc_per_node, {self.processes} processes over all "
                "nodes",
            )
        if self.device == "auto" and started == 1 and torch.cuda.device_count() > 1:
            raise EnvironmentFault(
                f"{torch.cuda.device_count()} GPUs are visible to one process",
                where="launch.device",
                expected="one process per GPU",
                mend="start with torchrun --nproc_per_node, or set CUDA_VISIBLE_DEVICES to one",
            )
        if started > 1:
            PartialState(cpu=self.device == "cpu")
            register_package(15, lambda storage: None, _on_this_cpu)

    def place(self) -> str:
        """Return the device of this process, as torch names it."""
        if self.device == "auto" and torch.cuda.is_available():
            return f"cuda:{int(os.environ.get('LOCAL_RANK') or 0)}"
        return "cpu"

    def supervised(self) -> dict[str, Any]:
        """Return the fields of `sft.SftConfig` that are told of it."""
        return {
            "device": self.device,
            "precision": self.precision,
            "gradient_checkpointing": self.gradient_checkpointing,
            "packing": self.packing,
        }

    def arguments(self) -> dict[str, Any]:
        """Return what a trainer is told of it."""
        return {
            "use_cpu": self.device == "cpu",
            "bf16": self.precision == "mixed",
            "gradient_checkpointing": self.gradient_checkpointing,
            "ddp_find_unused_parameters": False,  # every parameter is in every loss
            "ddp_broadcast_buffers": False,  # they are constants, and forwards may be uneven
        }


def _on_this_cpu(storage: Any, location: str) -> Any:
    """Let torch read a file to "cpu:0", as trainers ask for when several CPU processes go on."""
    return storage if location.startswith("cpu:") else None


def processes() -> int:
    """Return how many processes train together."""
    return int(os.environ.get("WORLD_SIZE") or 1)


def is_first() -> bool:
    """Tell whether this process is the one that writes."""
    return rank() == 0


def wait() -> None:
    """Wait until all processes of a started run are here; one process waits for nobody."""
    if processes() > 1:
        PartialState().wait_for_everyone()


def rank() -> int:
    """Return the number of this process, from 0."""
    return int(os.environ.get("RANK") or 0)


def shared(value: T) -> list[T]:
    """Return what every process has, in their order; all of them must ask."""
    if processes() == 1:
        return [value]
    return list(gather_object([value]))


def summed(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the sums over all processes, by key; all of them must ask."""
    found: dict[str, float] = {}
    for part in shared(dict(numbers)):
        for key, value in part.items():
            found[key] = found.get(key, 0) + value
    return found


def sharded(trainer: Any) -> bool:
    """Tell whether each process holds but a part of the model."""
    return bool(trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled)
