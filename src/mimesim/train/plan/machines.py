"""Machines as their data sheets have them."""

from __future__ import annotations

from dataclasses import dataclass

from mimesim.errors import ConfigError
from mimesim.registry import unknown_name

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Machine:
    """One accelerator, or one CPU core.

    Attributes:
        flops: dense peak per second, bf16 on a GPU, fp32 on a core.
        bandwidth: peak bytes per second to its memory.
        memory: bytes.
        source: where the three stand.
    """

    name: str
    flops: float
    bandwidth: float
    memory: float
    source: str

    @property
    def is_gpu(self) -> bool:
        """Tell whether it is an accelerator."""
        return self.name != CPU


CPU = "cpu"
MACHINES = {
    machine.name: machine
    for machine in (
        Machine("a100-80gb", 312e12, 2.039e12, 80e9, "NVIDIA A100 80GB SXM data sheet"),
        Machine("h100", 989e12, 3.35e12, 80e9, "NVIDIA H100 SXM data sheet, without sparsity"),
        Machine("h200", 989e12, 4.8e12, 141e9, "NVIDIA H200 SXM data sheet, without sparsity"),
        Machine(
            CPU,
            96e9,
            10e9,
            4e9,
            "one core: two 8-wide fp32 FMA units at 3 GHz; a fair share of memory and its bandwidth",
        ),
    )
}


def machine_named(name: str) -> Machine:
    """Return a machine.

    Raises:
        UnknownNameError: no such machine.
    """
    if name not in MACHINES:
        raise unknown_name("machine", name, list(MACHINES), "--gpu")
    return MACHINES[name]


def check_count(count: int, where: str) -> int:
    """Return a number of machines.

    Raises:
        ConfigError: it is not positive.
    """
    if count < 1:
        raise ConfigError(f"{count} machines", where=where, expected="1 or more")
    return count
