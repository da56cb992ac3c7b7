"""Supervised training on TRL's SFTTrainer, from rows that are tokens already.

`run_sft` trains any causal model on rows with labels; the order of the rows is laid out beforehand
from the seed, so a run that was interrupted goes on exactly where it was. Nothing is printed:
progress goes to a callback. Stages that use it: `train.midtrain`, and the agent's warm start.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal

import huggingface_hub.constants
import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import SFTConfig, SFTTrainer

from mimesim import seeds
from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, check_ranges
from mimesim.errors import ConfigError, DataError, EnvironmentFault
from mimesim.models.local import quiet_loading
from mimesim.train import launch
from mimesim.train.folder import newest_checkpoint
from mimesim.train.optimizers import MuonAdamW
from mimesim.train.packing import packing_allowed
from mimesim.train.rows import TrainRow
from mimesim.train.weights import with_lora

_GROUP = 32  # batches whose rows are sorted by length together


@dataclass(frozen=True, slots=True, kw_only=True)
class SftConfig:
    """One supervised run.

    Attributes:
        out: folder for checkpoints of the run in progress; removed when the run is done.
        epochs: passes over the rows.
        steps: number of updates; 0 = as many as `epochs` needs.
        batch_size: rows of one micro-batch; `accumulation` micro-batches of every process make an
            update.
        schedule: shape of the learning rate after the warm-up.
        lora_rank: 0 = train all parameters.
        muon_lr: above 0, the matrices are trained by Muon at this rate and the rest by AdamW at
            `lr` (full training only).
        threads: CPU threads of torch.
        save_every: updates between checkpoints; 0 = none, an interruption starts over.
        log_every: updates between progress events; `save_every` should be a multiple of it, for the
            loss since the last event is not kept in a checkpoint.
        device: this and what follows: see `launch.Launch`.
    """

    out: Path
    lr: float
    epochs: int = 1
    steps: int = 0
    batch_size: int = 8
    accumulation: int = 1
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    max_grad_norm: float = 1.0
    lora_rank: int = 0
    muon_lr: float = 0.0
    seed: int = 0
    threads: int = 1
    save_every: int = 0
    log_every: int = 50
    device: Literal["cpu", "auto"] = "cpu"
    precision: Literal["model", "mixed"] = "model"
    gradient_checkpointing: bool = False
    packing: bool = False
    resume: bool = True

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "epochs", "batch_size", "accumulation", "threads", "log_every")
        check_ranges(self, NATURAL, "steps", "warmup_steps", "weight_decay", "lora_rank")
        check_ranges(self, NATURAL, "muon_lr", "save_every")
        check_ranges(self, POSITIVE, "lr", "max_grad_norm")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. `loss` is the mean over learnt tokens since the last event, in nats."""

    step: int
    steps: int
    loss: float
    lr: float


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks at the model before the first update, after every `every`, and after the last.

    `tell` takes the step and the model; it may score it, and leaves it unchanged.
    """

    every: int
    tell: Callable[[int, Any], None]


@dataclass(frozen=True, slots=True)
class SftOutcome:
    """A finished run; `model` is the trained one, adapters merged.

    Attributes:
        tokens: input tokens seen, without padding. learnt_tokens: those with loss.
        history: all progress events, also of the part before a resumption.
        sharded: what writes a model of which every process holds a part; None = it is whole.
    """

    model: Any
    steps: int
    tokens: int
    learnt_tokens: int
    history: tuple[Progress, ...]
    resumed_at: int = 0
    sharded: Callable[[Path], None] | None = None

    def save(self, folder: Path) -> None:
        """Write weights and config; all processes of a run call it, one of them writes."""
        if self.sharded is not None:
            self.sharded(folder)
        elif launch.is_first():
            with quiet_loading():
                self.model.save_pretrained(folder)
        launch.wait()


def run_sft(
    model: Any,
    tokenizer: Any,
    rows: Sequence[TrainRow],
    cfg: SftConfig,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    watch: Watch | None = None,
) -> SftOutcome:
    """Train `model` in place on `rows` and return it with the account of the run.

    Raises:
        DataError: a row without anything to learn.
        ConfigError: the model has dropout, which makes runs irreproducible, or adapters that
            could not be merged in the end.
        EnvironmentFault: packing would let rows of this model see one another.
    """
    check_rows(rows)
    refuse_dropout(model)
    if cfg.packing:
        _refuse_packing(model)
    order = _lay_out(rows, cfg)
    updates = len(order) // _update_rows(cfg)
    if cfg.lora_rank:
        model = with_lora(model, cfg.lora_rank, cfg.seed)
    watcher = _Watcher(updates, on_progress, watch)
    with _quiet(), _threads(cfg.threads):
        trainer = SFTTrainer(
            model=model,
            args=_arguments(cfg, updates),
            train_dataset=_dataset(rows, order),
            processing_class=tokenizer,
            callbacks=[watcher],
            optimizers=(_muon(model, cfg), None),
        )
        trainer.remove_callback(PrinterCallback)
        parts = launch.sharded(trainer)
        if parts and cfg.lora_rank:
            raise _cannot_merge()
        start = newest_checkpoint(_folder(cfg), "trainer_state.json") if cfg.resume else None
        trainer.train(resume_from_checkpoint=str(start) if start else None)
    launch.wait()
    if launch.is_first():
        shutil.rmtree(_folder(cfg), ignore_errors=True)
    trained = trainer.model.merge_and_unload() if cfg.lora_rank else trainer.model
    seen = [rows[i] for i in order]
    return SftOutcome(
        model=_plain(trained),
        steps=trainer.state.global_step,
        tokens=sum(len(row.input_ids) for row in seen),
        learnt_tokens=sum(row.learnt for row in seen),
        history=tuple(watcher.history(trainer.state.log_history)),
        resumed_at=int(start.name.rpartition("-")[2]) if start else 0,
        sharded=partial(_save_parts, trainer) if parts else None,
    )


def check_rows(rows: Sequence[TrainRow]) -> None:
    """Make sure that every row has something to learn, before the first step.

    Raises:
        DataError: no rows, or a row whose labels are all masked.
    """
    if not rows:
        raise DataError("there are no rows to train on", expected="at least one row")
    for row in rows:
        if row.learnt == 0:
            raise DataError(
                f"row {row.id!r} has no learnt token: its loss mask is all zero",
                expected="labels other than -100",
                mend="check which side is learnt and whether max_length cuts it off",
            )


def refuse_dropout(model: Any) -> None:
    """Make sure that a model has no dropout.

    Raises:
        ConfigError: some dropout probability is above 0.
    """
    settings = model.config.to_dict()
    active = {
        name: value
        for name, value in settings.items()
        if ("dropout" in name or name.endswith("pdrop"))
        and isinstance(value, float | int)
        and value > 0
    }
    if active:
        name, value = next(iter(active.items()))
        raise ConfigError(
            f"the model has dropout: {name} = {value}",
            where=str(model.config.name_or_path or type(model).__name__),
            expected="0, so that runs repeat and a teacher equals its student",
            mend=f"set {name} to 0 in the model's config.json",
        )


def _refuse_packing(model: Any) -> None:
    reason = packing_allowed(model.config)
    if reason:
        raise EnvironmentFault(
            f"rows must not be packed: {reason}",
            where=str(model.config.name_or_path or type(model).__name__),
            expected="a model whose layers keep packed rows apart",
            mend="set packing to false, or install what is missing",
        )


class _Watcher(TrainerCallback):
    """Turns the trainer's log entries into progress events."""

    def __init__(
        self, steps: int, tell: Callable[[Progress], None] | None, watch: Watch | None
    ) -> None:
        self._steps = steps
        self._tell = tell
        self._watch = watch

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Look at the model before anything is learnt; a run that goes on was looked at."""
        del args, control
        if state.global_step == 0:
            self._look(0, more["model"])

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Look at the model when it is time to."""
        del args, control
        step = state.global_step
        if self._watch and (step % self._watch.every == 0 or step == self._steps):
            self._look(step, more["model"])

    def _look(self, step: int, model: Any) -> None:
        if self._watch:
            self._watch.tell(step, model)
            model.train()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Hand one entry on."""
        del args, control
        for event in self.history([{**(logs or {}), "step": state.global_step}]):
            if self._tell is not None and launch.is_first():
                self._tell(event)

    def history(self, entries: Sequence[dict[str, Any]]) -> Iterator[Progress]:
        """Yield the progress events among log entries."""
        for entry in entries:
            if "loss" in entry:
                yield Progress(
                    entry["step"], self._steps, float(entry["loss"]), entry["learning_rate"]
                )


def _lay_out(rows: Sequence[TrainRow], cfg: SftConfig) -> list[int]:
    """Return the indices of the rows in training order, whole updates only.

    Every epoch is shuffled; inside groups of batches rows are sorted by length, so that a batch
    holds little padding; then the batches of a group are shuffled again.
    """
    size = _update_rows(cfg)
    per_epoch = -(-len(rows) // size)
    wanted = (cfg.steps or cfg.epochs * per_epoch) * size
    order: list[int] = []
    epoch = 0
    while len(order) < wanted:
        random = seeds.generator(cfg.seed, "sft-order", epoch)
        indices = list(range(len(rows)))
        random.shuffle(indices)
        indices = list(islice(cycle(indices), per_epoch * size))  # fills up the last update
        for start in range(0, len(indices), _GROUP * size):
            group = sorted(
                indices[start : start + _GROUP * size],
                key=lambda i: (len(rows[i].input_ids), i),
            )
            batches = [group[k : k + size] for k in range(0, len(group), size)]
            random.shuffle(batches)
            order += [i for batch in batches for i in batch]
        epoch += 1
    return order[:wanted]


def _update_rows(cfg: SftConfig) -> int:
    """Return the rows of one update, those of all processes together."""
    return cfg.batch_size * cfg.accumulation * launch.processes()


def _dataset(rows: Sequence[TrainRow], order: Sequence[int]) -> Dataset:
    held = Dataset.from_dict(
        {
            "input_ids": [row.input_ids for row in rows],
            "labels": [row.labels for row in rows],
        }
    )
    return held.select(order)  # an index over the rows: repeated rows are stored once


def _arguments(cfg: SftConfig, updates: int) -> SFTConfig:
    return SFTConfig(
        output_dir=str(_folder(cfg)),
        max_steps=updates,
        per_device_train_batch_size=cfg.batch_size,
        gradient_accumulation_steps=cfg.accumulation,
        learning_rate=cfg.lr,
        lr_scheduler_type=cfg.schedule,
        warmup_steps=cfg.warmup_steps,
        weight_decay=cfg.weight_decay,
        adam_beta1=cfg.betas[0],
        adam_beta2=cfg.betas[1],
        max_grad_norm=cfg.max_grad_norm,
        optim="adamw_torch",
        seed=seeds.derive(cfg.seed, "sft") % 2**32,
        train_sampling_strategy="sequential",
        shuffle_dataset=False,
        max_length=None,
        packing=False,
        padding_free=cfg.packing,
        dataset_kwargs={"skip_prepare_dataset": True},
        bf16=cfg.precision == "mixed",  # else the model's own precision is used throughout
        use_cpu=cfg.device == "cpu",
        gradient_checkpointing=cfg.gradient_checkpointing,
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        logging_steps=cfg.log_every,
        logging_first_step=True,
        save_strategy="steps" if cfg.save_every else "no",
        save_steps=cfg.save_every or 500,
        save_total_limit=2,
        report_to=[],
        ddp_find_unused_parameters=False,  # every parameter is in every loss
        disable_tqdm=True,
    )


def _muon(model: Any, cfg: SftConfig) -> MuonAdamW | None:
    """Return the optimizer of the run, None = the trainer's own AdamW."""
    if not cfg.muon_lr:
        return None
    return MuonAdamW(model, lr=cfg.lr, muon_lr=cfg.muon_lr, betas=cfg.betas, decay=cfg.weight_decay)


def _plain(model: Any) -> Any:
    """Leave training mode, so that the model may be scored, sampled and saved."""
    vars(model).pop("forward", None)  # the trainer's patch: a forward that knows its loss
    model.eval()
    model.config.use_cache = True
    return model


def _save_parts(trainer: Any, folder: Path) -> None:
    """Let the trainer put the parts of all processes together and write them."""
    with quiet_loading():
        trainer.save_model(str(folder))
    if launch.is_first():
        (folder / "training_args.bin").unlink(
            missing_ok=True
        )  # binary, and full of this machine's paths


def _cannot_merge() -> ConfigError:
    return ConfigError(
        "adapters cannot be merged into a model of which every process holds a part",
        where="lora_rank",
        expected="0 under FSDP and DeepSpeed",
        mend="train all parameters, or start with plain torchrun",
    )


def _folder(cfg: SftConfig) -> Path:
    return cfg.out / "unfinished"


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the libraries from reporting home and from writing to the terminal."""
    huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY = True
    with quiet_loading(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions and hardware, nothing a user could mend
        yield
