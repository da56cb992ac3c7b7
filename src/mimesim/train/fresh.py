"""Supervised training of a small model from nothing: what both warm starts share.

The model is made and trained from the seed, its folder holds one training only, and the checkpoint
is `policy` in it. What a row is, each warm start says itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mimesim import config as configs
from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, check_ranges
from mimesim.models.local import quiet_loading
from mimesim.models.tiny import TinyConfig, build_model
from mimesim.train.folder import training_folder
from mimesim.train.rows import TrainRow
from mimesim.train.sft import Progress, SftConfig, run_sft


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshConfig:
    """How a fresh model is trained.

    Attributes:
        out: folder; the checkpoint is `out/policy`.
        steps, batch: updates and rows of each.
        lr: of embeddings and norms (AdamW). muon_lr: of the matrices.
        save_every: updates between checkpoints; an interrupted run goes on from the last one.
    """

    out: Path
    seed: int = 0
    shape: TinyConfig = field(default_factory=TinyConfig)
    steps: int
    batch: int
    lr: float
    muon_lr: float
    save_every: int
    threads: int = 1

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "steps", "batch", "threads")
        check_ranges(self, NATURAL, "muon_lr", "save_every")
        check_ranges(self, POSITIVE, "lr")


def folder_for(kind: str, config: FreshConfig) -> AbstractContextManager[None]:
    """Hold the folder of a run (see `training_folder`); `kind` names the warm start."""
    neutral = replace(config, out=Path(), threads=1, save_every=0)
    return training_folder(config.out, {"kind": kind, **configs.dump(neutral), "out": ""})


def train_fresh(
    tokenizer: Any,
    rows: Sequence[TrainRow],
    config: FreshConfig,
    *,
    seed: int,
    log_every: int,
    on_progress: Callable[[Progress], None] | None,
) -> dict[str, Any]:
    """Make a model, train it on `rows` and save it with its tokenizer.

    Args:
        tokenizer: what `rows` were made with.
        rows: the demonstrations.
        config: the run.
        seed: of weights and order.
        log_every: updates between progress events.
        on_progress: hears of them.

    Returns:
        JSON values: checkpoint, steps, tokens, learnt_tokens, parameters, losses.
    """
    outcome = run_sft(
        build_model(tokenizer, seed, config.shape),
        tokenizer,
        rows,
        SftConfig(
            out=config.out,
            lr=config.lr,
            muon_lr=config.muon_lr,
            steps=config.steps,
            batch_size=config.batch,
            schedule="cosine",
            warmup_steps=max(1, config.steps // 20),
            weight_decay=0.01,
            betas=(0.9, 0.98),
            seed=seed,
            threads=config.threads,
            save_every=config.save_every,
            log_every=log_every,
        ),
        on_progress=on_progress,
    )
    policy = config.out / "policy"
    with quiet_loading():
        outcome.model.save_pretrained(policy)
    tokenizer.save_pretrained(policy)
    return {
        "checkpoint": str(policy),
        "steps": outcome.steps,
        "tokens": outcome.tokens,
        "learnt_tokens": outcome.learnt_tokens,
        "parameters": sum(p.numel() for p in outcome.model.parameters()),
        "losses": [[event.step, event.loss] for event in outcome.history],
    }
