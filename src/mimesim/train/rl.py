"""What agent RL and user RL share: TRL's arguments, the curve, and going on where a run stopped.

Whatever a run needs beside weights and optimizer (a ring of placebo notes, say) is its `Extra`; it
is written into a checkpoint last, so a checkpoint without it is not gone on from.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from mimesim import config as configs
from mimesim import jsonio
from mimesim.config.ranges import POSITIVE, Range
from mimesim.errors import ConfigError, EnvironmentFault
from mimesim.rollout.policy import PolicyConfig
from mimesim.seeds import derive
from mimesim.train import launch
from mimesim.train.alarms import Alarms
from mimesim.train.folder import newest_checkpoint
from mimesim.train.launch import Launch
from mimesim.train.trackers import Tracker, open_trackers
from mimesim.train.validation import Validator

MARK = "mimesim.json"
"""Written last into a checkpoint."""
_KEPT = (
    "reward",
    "entropy",
    "grad_norm",
    "step_time",
    "completions/mean_length",
    "clip_ratio/region_mean",
)
_SHARED = ("credit/", "update/", "ratio/")
"""Prefixes of what every RL run keeps."""


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
    """Numbers of one generation batch, averaged over its optimizer steps.

    Attributes:
        batch: from 1; 0 stands for what is told before the first.
        seconds: wall-clock of the batch, validation included.
        told: lines for people: alarms and notes.
    """

    batch: int
    values: Mapping[str, float]
    seconds: float = 0.0
    told: tuple[str, ...] = ()


OnBatch = Callable[[BatchLog], None]


def check_geometry(config: Settings, accumulation: int, processes: int) -> None:
    """Refuse a batch that cannot be laid over its updates, backward passes and processes.

    Raises:
        ConfigError: naming the keys.
    """
    if config.group < 2:
        raise ConfigError("'group' must be at least 2: GRPO compares rollouts of one prompt")
    if config.prompts % processes:
        raise ConfigError(
            f"'prompts' {config.prompts} cannot be shared out to {processes} processes",
            expected="a multiple: each process plays whole groups",
        )
    rows, parts = config.prompts * config.group // processes, config.minibatches * accumulation
    if rows % parts:
        more = "" if accumulation == 1 else f"'accumulation' {accumulation} x "
        raise ConfigError(
            f"{more}'minibatches' {config.minibatches} does not divide {rows}",
            expected="a divisor of prompts x group"
            + (f" / {processes} processes" if processes > 1 else ""),
        )


def check_clip(config: Settings) -> None:
    """Refuse a clip that leaves no ratio to learn from.

    Raises:
        ConfigError: naming the end.
    """
    ends = (("lower", Range(0, 1, above=True)), ("upper", POSITIVE))
    for (end, allowed), value in zip(ends, config.clip, strict=True):
        if not allowed.holds(value):
            raise ConfigError(f"the {end} end of 'clip' cannot be {value}", expected=str(allowed))


def grpo_arguments(
    config: Settings, *, accumulation: int = 1, place: Launch | None = None, **more: Any
) -> GRPOConfig:
    """Return TRL's arguments; every default that would be wrong here is set.

    Args:
        config: the run; its numbers are those of all processes together.
        accumulation: backward passes of an optimizer step; more of them need less memory.
        place: the hardware; None = one process on the CPU.
        more: further arguments, which win.
    """
    rows = config.prompts * config.group // config.minibatches // launch.processes()
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
        **(place or Launch()).arguments(),
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": False,
        "logging_steps": config.minibatches,
        "logging_nan_inf_filter": False,  # what is not finite is told, not averaged away
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


@dataclass(slots=True)
class Watch:
    """What looks at a run beside its curve; each may be missing.

    Attributes:
        alarms: tell when a policy is about to be lost.
        validator: scores the policy on held-out tasks.
        trackers: take the numbers of every batch.
        notes: lines to be told before the first batch.
    """

    alarms: Alarms | None = None
    validator: Validator | None = None
    trackers: Sequence[Tracker] = ()
    notes: tuple[str, ...] = ()

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps of it."""
        return {
            "alarms": self.alarms.state() if self.alarms else None,
            "validation": self.validator.scores if self.validator else None,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        if self.alarms and state.get("alarms"):
            self.alarms.restore(state["alarms"])
        if self.validator and state.get("validation"):
            self.validator.scores[:] = state["validation"]


class Keeper(TrainerCallback):
    """Keeps the curve and the extra of a run, in memory and beside the checkpoints.

    All processes of a run have one and see the same numbers; the first one alone writes and tells.

    Args:
        config: the run.
        prefixes: of the log entries that are kept beside the usual ones.
        extra: what else goes into a checkpoint.
        on_batch: hears of every batch.
        watch: what looks at every batch.

    Attributes:
        curve: one dict a batch.
        why: why the run has to end as failed; empty = it has not.
        early: the validations brought nothing better any more.
    """

    def __init__(
        self,
        config: Settings,
        prefixes: tuple[str, ...],
        extra: Extra,
        on_batch: OnBatch | None,
        watch: Watch | None = None,
    ) -> None:
        self._config = config
        self._prefixes = (*prefixes, *_SHARED)
        self._extra = extra
        self._on_batch = on_batch
        self._watch = watch or Watch()
        self._since = time.monotonic()
        self.curve: list[dict[str, float]] = []
        self.why = ""
        self.early = False

    def last_checkpoint(self) -> Path | None:
        """Return the newest whole checkpoint, its extra and curve restored."""
        newest = newest_checkpoint(self._config.out / "trainer", MARK)
        if newest is None:
            return None
        state = jsonio.read_object(newest / MARK, "curve")
        self.curve = list(state["curve"])
        self._extra.restore(state)
        self._watch.restore(state.get("watch", {}))
        return newest

    @contextmanager
    def tracked(self, names: Sequence[str], settings: Any) -> Iterator[None]:
        """Open the trackers of a run in its first process, and close them whatever comes.

        Args:
            names: see `train.trackers.open_trackers`.
            settings: the config of the run.

        Raises:
            EnvironmentFault: one of them cannot start.
        """
        opened: list[Tracker] = []
        if launch.is_first():
            flat = dict(configs.flatten(configs.dump(settings)))
            opened = open_trackers(names, self._config.out, flat, first=len(self.curve) + 1)
        self._watch.trackers = opened
        try:
            yield
        finally:
            for tracker in opened:
                tracker.close()

    def check(self) -> None:
        """Make sure that a run that ended has ended well.

        Raises:
            EnvironmentFault: an alarm ended it; its checkpoint is kept.
        """
        if self.why:
            raise EnvironmentFault(
                f"stopped after batch {len(self.curve)}: {self.why}",
                where=str(self._config.out),
                mend="the same command goes on from there, once that is mended",
            )

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Validate the weights that a run starts from; one that goes on did so before."""
        del args, control
        validator, numbers = self._watch.validator, {}
        if validator is not None and state.global_step == 0 and not validator.scores:
            numbers = validator.see(0, more["model"])
        if launch.is_first() and (numbers or self._watch.notes):
            self._tell(BatchLog(0, numbers, time.monotonic() - self._since, self._watch.notes))
        self._since = time.monotonic()

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **more: Any
    ) -> None:
        """Keep one batch's numbers, look at them, and end the run where it must."""
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
        told = self._look(batch, values, control, more.get("model"))
        self.curve.append({"batch": batch, **values})
        if launch.is_first():
            self._tell(BatchLog(batch, values, time.monotonic() - self._since, told))
        self._since = time.monotonic()

    def _look(
        self, batch: int, values: dict[str, float], control: Any, model: Any
    ) -> tuple[str, ...]:
        """Let alarms and validation see a batch; add their numbers, return their lines."""
        told: list[str] = []
        if self._watch.alarms is not None:
            told, self.why = self._watch.alarms.see(batch, values)
        validator = self._watch.validator
        if validator is not None and validator.due(batch, self._config.batches) and not self.why:
            values |= validator.see(batch, model)
            self.early = validator.exhausted() and batch < self._config.batches
        if self.early:
            told.append("stopped early: the last validations brought nothing better")
            # A run that is interrupted now comes here again, from the checkpoint before.
            control.should_save = False
        if self.why:
            control.should_save = True
        if self.early or self.why:
            control.should_training_stop = True
        return tuple(told)

    def _tell(self, log: BatchLog) -> None:
        for tracker in self._watch.trackers:
            tracker.log(log.batch, log.values)
        if self._on_batch is not None:
            self._on_batch(log)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write extra and curve last: a checkpoint without them is not whole."""
        launch.wait()  # the other processes have written their part
        if not launch.is_first():
            return
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        kept = {"curve": self.curve, "watch": self._watch.state(), **self._extra.state()}
        jsonio.write_json(folder / MARK, kept)


def last_means(curve: Sequence[Mapping[str, float]], prefix: str) -> dict[str, float]:
    """Return the means of the last 25 batches of all entries with `prefix`, which is cut off."""
    last = curve[-25:]
    keys = sorted({key for row in last for key in row if key.startswith(prefix)})
    means = {}
    for key in keys:
        values = [row[key] for row in last if key in row]
        means[key.removeprefix(prefix)] = sum(values) / len(values)
    return means
