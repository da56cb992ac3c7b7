"""Bytes on one machine: states of the training, activations, and what sampling needs."""

from __future__ import annotations

from dataclasses import dataclass

from mimesim.train.plan.assumptions import Side, assumed
from mimesim.train.plan.timing import Setting
from mimesim.train.plan.workload import Reinforced, Supervised, Tuning

_ADAPTERS = 0.01
"""Share of the parameters that adapters have; rank 16 on all matrices of an 8B model is 0.5 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes on one machine at the worst moment of a training.

    Attributes:
        weights, gradients, optimizer: this machine's part of them.
        gathered: weights that are whole for a moment, where they are sharded.
        activations: as the recipe has it. kept, checkpointed: without and with checkpointing.
        logits: of one chunk of the loss.
        sampler: weights of the serving engine, where it shares the machine. cache: of attention.
        reserve: fragmentation, context, buffers.
    """

    weights: float
    gradients: float
    optimizer: float
    gathered: float
    activations: float
    kept: float
    checkpointed: float
    logits: float
    sampler: float
    cache: float
    reserve: float

    @property
    def whole(self) -> float:
        """The larger of learning and sampling, on top of what is always there."""
        held = self.weights + self.gradients + self.optimizer
        learning = self.gathered + self.activations + self.logits
        return held + max(learning, self.sampler + self.cache) + self.reserve


def memory_of(load: Supervised | Reinforced, setting: Setting, side: Side) -> Memory:
    """Return the bytes on one machine; the slow side has all rows at their longest."""
    tuning, shape = load.tuning, setting.shape
    parts = setting.count if setting.sharded else 1
    trained = _ADAPTERS if tuning.lora else 1.0
    held = shape.parameters / parts
    weights = held * tuning.width
    gradients = trained * held * tuning.width
    optimizer = 2 * gradients  # both moments, in the precision of the weights
    if isinstance(load, Supervised):
        rows = tuning.micro
        row = {"fast": load.row.fast, "slow": load.longest}.get(
            side, (load.row.at("point") * load.longest) ** 0.5
        )
        sampler = cache = 0.0
    else:
        rows = max(1.0, tuning.micro / setting.count)
        row = load.conversation(side).student
        sampler = setting.sampled_width * shape.parameters if setting.engine == "vllm" else 0.0
        at_once = max(1.0, load.rollouts / setting.count)
        cache = at_once * (row * shape.cache_bytes * setting.sampled_width / 2 + shape.state_bytes)
    kept, checkpointed = activation_bytes(setting, tuning, rows * row)
    activations = checkpointed if tuning.checkpointing else kept
    logits = assumed("head_chunk", side) * shape.vocabulary * 8  # logits and gradient, fp32
    largest = max(shape.layer_parameters, shape.vocabulary * shape.hidden)
    gathered = 2 * largest * 2 if parts > 1 else 0.0  # this one and the next, in bf16
    used = weights + gradients + optimizer + max(gathered + activations + logits, sampler + cache)
    context = assumed("context", side) if setting.machine.is_gpu else 0.0
    return Memory(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        gathered=gathered,
        activations=activations,
        kept=kept,
        checkpointed=checkpointed,
        logits=logits,
        sampler=sampler,
        cache=cache,
        reserve=used * (assumed("reserve", side) - 1) + context,
    )


def activation_bytes(setting: Setting, tuning: Tuning, tokens: float) -> tuple[float, float]:
    """Return the bytes of activations of a micro-batch without and with checkpointing."""
    shape = setting.shape
    width = 2 if setting.machine.is_gpu else tuning.width  # computing is in bf16 on a GPU
    layer = shape.kept_bytes(width) * tokens
    return layer * shape.layers, layer + shape.layers * width * shape.hidden * tokens
