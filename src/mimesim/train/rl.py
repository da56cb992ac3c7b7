"""What agent RL and user RL share: TRL's arguments, the curve, and going on where a run stopped.

Whatever a run needs beside weights and optimizer (a ring of placebo notes, say) is its `Extra`; it
is written into a checkpoint last, so a checkpoint without it is not gone on from.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from mimesim import jsonio
from mimesim.rollout.policy import PolicyConfig
from mimesim.seeds import derive
from mimesim.train.folder import newest_checkpoint

MARK = "mimesim.json"
"""Written last into a checkpoint."""
_KEPT = ("reward", "entropy", "grad_norm", "step_time")


class Settings(Protocol):
    """What an RL run must say; `train.agent.AgentConfig` has the meaning of each."""

    @property
    def out(self) -> Path:
        """Folder of the run."""
        ...

    @property
    def seed(self) -> int:
        """Run seed."""
        ...

    @property
    def batches(self) -> int:
        """Generation batches."""
        ...

    @property
    def prompts(self) -> int:
        """Prompts of a batch."""
        ...

    @property
    def group(self) -> int:
        """Rollouts of a prompt."""
        ...

    @property
    def minibatches(self) -> int:
        """Optimizer steps of a batch."""
        ...

    @property
    def lr(self) -> float:
        """Peak rate."""
        ...

    @property
    def warmup(self) -> int:
        """Warm-up in batches."""
        ...

    @property
    def clip(self) -> tuple[float, float]:
        """Lower and upper PPO clip."""
        ...

    @property
    def policy(self) -> PolicyConfig:
        """How the policy samples."""
        ...

    @property
    def save_every(self) -> int:
        """Batches between checkpoints."""
        ...


@dataclass(frozen=True, slots=True)
class BatchLog:
    """Numbers of one generation batch, averaged over its optimizer steps."""

    batch: int
    values: Mapping[str, float]


OnBatch = Callable[[BatchLog], None]


def grpo_arguments(config: Settings, *, accumulation: int = 1, **more: Any) -> GRPOConfig:
    """Return TRL's arguments; every default that would be wrong here is set.

    Args:
        config: the run.
        accumulation: backward passes of an optimizer step; more of them need less memory.
        more: further arguments, which win.
    """
    rows = config.prompts * config.group // config.minibatches
    given: dict[str, Any] = {
        "output_dir": str(config.out / "trainer"),
        "seed": derive(config.seed, "trainer") % 2**31,
        "max_steps": config.batches * config.minibatches,
        "per_device_train_batch_size": rows // accumulation,
        "gradient_accumulation_steps": accumulation,
        "steps_per_generation": config.minibatches * accumulation,
        "num_generations": config.group,
        "num_iterations": 1,
        "max_completion_length": 4096,
        "learning_rate": config.lr,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": config.warmup * config.minibatches,
        "adam_beta1": 0.9,
        "adam_beta2": 0.99,
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        "epsilon": config.clip[0],
        "epsilon_high": config.clip[1],
        "beta": 0.0,
        "loss_type": "dapo",
        "scale_rewards": "group",
        "temperature": config.policy.temperature,
        "mask_truncated_completions": False,
        "disable_dropout": True,
        "shuffle_dataset": False,
        "remove_unused_columns": False,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": False,
        "logging_steps": config.minibatches,
        "save_strategy": "steps",
        "save_steps": config.save_every * config.minibatches,
        "save_total_limit": 2,  # the older one stays until the newer has its extra and curve
        "report_to": [],
        "disable_tqdm": True,
    }
    return GRPOConfig(**{**given, **more})


@contextmanager
def quiet_trl() -> Iterator[None]:
    """Keep TRL from printing every rollout without a reward: those are counted in the curve."""
    logger = logging.getLogger(GRPOTrainer.__module__)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


class Extra(Protocol):
    """What a run keeps beside weights and optimizer."""

    def numbers(self) -> Mapping[str, float]:
        """Return counts of the last batch for the curve."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state."""
        ...


class Keeper(TrainerCallback):
    """Keeps the curve and the extra of a run, in memory and beside the checkpoints.

    Args:
        config: the run.
        prefixes: of the log entries that are kept beside the usual ones.
        extra: what else goes into a checkpoint.
        on_batch: hears of every batch.
    """

    def __init__(
        self, config: Settings, prefixes: tuple[str, ...], extra: Extra, on_batch: OnBatch | None
    ) -> None:
        self._config = config
        self._prefixes = prefixes
        self._extra = extra
        self._on_batch = on_batch
        self.curve: list[dict[str, float]] = []

    def last_checkpoint(self) -> Path | None:
        """Return the newest whole checkpoint, its extra and curve restored."""
        newest = newest_checkpoint(self._config.out / "trainer", MARK)
        if newest is None:
            return None
        state = jsonio.read_object(newest / MARK, "curve")
        self.curve = list(state["curve"])
        self._extra.restore(state)
        return newest

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: Any
    ) -> None:
        """Keep one batch's numbers."""
        if "reward" not in logs:
            return
        values = {
            key: float(value)
            for key, value in logs.items()
            if value is not None
            and math.isfinite(float(value))
            and (key in _KEPT or key.startswith(self._prefixes))
        }
        batch = state.global_step // self._config.minibatches
        values |= self._extra.numbers()
        self.curve.append({"batch": batch, **values})
        if self._on_batch is not None:
            self._on_batch(BatchLog(batch, values))

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write extra and curve last: a checkpoint without them is not whole."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        jsonio.write_json(folder / MARK, {"curve": self.curve, **self._extra.state()})


def last_means(curve: Sequence[Mapping[str, float]], prefix: str) -> dict[str, float]:
    """Return the means of the last 25 batches of all entries with `prefix`, which is cut off."""
    last = curve[-25:]
    keys = sorted({key for row in last for key in row if key.startswith(prefix)})
    means = {}
    for key in keys:
        values = [row[key] for row in last if key in row]
        means[key.removeprefix(prefix)] = sum(values) / len(values)
    return means
