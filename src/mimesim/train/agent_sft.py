"""Warm start of an agent by supervised training: episodes that went well, and ShareGPT files.

Reads top to bottom: rows, training, checkpoint. What a row is and which are kept, `sft_rows` says.
The checkpoint is the folder itself, so an RL recipe names it as its `init`; `agent-sft.json` is
written last: a folder with that file is finished. Paper: SFT before stage two.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch

from mimesim import config as configs
from mimesim import jsonio, seeds
from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, SHARE, check_ranges
from mimesim.errors import ConfigError, DataError
from mimesim.models.local import Loaded
from mimesim.rollout.store import episode_file
from mimesim.train import launch
from mimesim.train.folder import training_folder
from mimesim.train.launch import Launch
from mimesim.train.sft import Progress, SftConfig, run_sft
from mimesim.train.sft_rows import Gathered, KeepConfig, Reader
from mimesim.train.weights import model_place, prepared, start_identity

_RESULT = "agent-sft.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSftConfig:
    """One supervised warm start of an agent.

    Attributes:
        out: folder of the checkpoint.
        model: `embedded`, or a path or hub id with or without `hf:`.
        episodes: run folders or episode files.
        sharegpt: ShareGPT files, JSON or JSON Lines.
        keep: which episodes are learnt from, and how their replies are written.
        epochs: passes over the rows.
        max_length: tokens of a row; a longer one is left out.
        schedule: shape of the learning rate after the warm-up.
        warmup_share: share of all updates in which the learning rate rises.
        lora_rank: 0 = all parameters.
        dtype: precision of weights and optimizer.
        save_every: updates between checkpoints; 0 = none.
        launch: what the hardware is used for.
    """

    out: Path = Path("out/agent-sft")
    model: str = "embedded"
    episodes: tuple[Path, ...] = ()
    sharegpt: tuple[Path, ...] = ()
    keep: KeepConfig = field(default_factory=KeepConfig)
    epochs: int = 3
    max_length: int = 16_384
    lr: float = 1e-5
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    warmup_share: float = 0.1
    batch_size: int = 2
    accumulation: int = 4
    lora_rank: int = 0
    dtype: Literal["bf16", "fp32"] = "fp32"
    seed: int = 0
    threads: int = 1
    save_every: int = 50
    launch: Launch = field(default_factory=Launch)

    def __post_init__(self) -> None:
        """Refuse settings that make no run.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "epochs", "max_length", "batch_size", "accumulation", "threads")
        check_ranges(self, NATURAL, "lora_rank", "save_every")
        check_ranges(self, POSITIVE, "lr")
        check_ranges(self, SHARE, "warmup_share")


def train_agent_sft(
    cfg: AgentSftConfig, *, on_progress: Callable[[Progress], None] | None = None
) -> dict[str, Any]:
    """Train an agent, or return the result of a run with the same settings that is finished.

    Returns:
        JSON values: checkpoint, steps, rows, tokens and learnt_tokens (of one pass), tokens_trained
        (of all), sources (`Gathered.summary` of each), losses, wall_s, cpu_s.

    Raises:
        UsageError: `out` holds a run with other settings, or nothing is left to learn from.
        EnvironmentFault: model or template is unfit, the disk is full, a checkpoint is damaged,
            another process trains there, or the run was not started on as many processes as it says.
    """
    if not (cfg.episodes or cfg.sharegpt):
        raise ConfigError(
            "nothing to learn from",
            where="episodes, sharegpt",
            expected="run folders, episode files or ShareGPT files",
            mend="add --set \"episodes=['<run folder>']\"",
        )
    cfg.launch.start()
    with training_folder(cfg.out, _settings(cfg)):
        done = cfg.out / _RESULT
        if done.is_file():
            return {**jsonio.read_object(done, "steps", "sources"), "checkpoint": str(cfg.out)}
        launch.wait()
        result = {"checkpoint": str(cfg.out), **_train(cfg, on_progress)}
        if launch.is_first():
            jsonio.write_json(done, result)
        launch.wait()
        return result


def _train(cfg: AgentSftConfig, on_progress: Callable[[Progress], None] | None) -> dict[str, Any]:
    wall, cpu = time.monotonic(), time.process_time()
    torch.set_num_threads(cfg.threads)
    loaded = _load(cfg)
    found = gather(cfg, loaded.tokenizer)
    rows = [row for part in found for row in part.rows]
    outcome = run_sft(
        loaded.model, loaded.tokenizer, rows, _sft(cfg, len(rows)), on_progress=on_progress
    )
    outcome.save(cfg.out)
    if launch.is_first():
        loaded.tokenizer.save_pretrained(cfg.out)
    return {
        "steps": outcome.steps,
        "rows": len(rows),
        "tokens": sum(len(row.input_ids) for row in rows),
        "learnt_tokens": sum(row.learnt for row in rows),
        "tokens_trained": outcome.tokens,
        "sources": [part.summary() for part in found],
        "losses": [[event.step, event.loss] for event in outcome.history],
        "wall_s": round(time.monotonic() - wall, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
    }


def gather(cfg: AgentSftConfig, tokenizer: Any) -> list[Gathered]:
    """Return the rows of every source, with what was left out.

    Raises:
        DataError: a file is missing or damaged, or nothing at all is kept.
        EnvironmentFault: the template is not fit for rollouts.
    """
    reader = Reader(tokenizer, cfg.keep, cfg.max_length)
    found = reader.episodes(cfg.episodes) + [reader.sharegpt(path) for path in cfg.sharegpt]
    if not any(part.rows for part in found):
        dropped = reader.reasons(found)
        raise DataError(
            f"no conversation is kept of {sum(part.read for part in found)}: {dropped}",
            where=", ".join(part.source for part in found),
            expected=f"at least one that passes [keep] and fits into {cfg.max_length} tokens",
            mend="change keep.min_reward, keep.success, keep.splits or max_length, or play more",
        )
    return found


def _load(cfg: AgentSftConfig) -> Loaded:
    loaded = prepared(model_place(cfg.model), cfg.dtype)
    return loaded._replace(model=loaded.model.to(cfg.launch.place()))


def _sft(cfg: AgentSftConfig, rows: int) -> SftConfig:
    update = cfg.batch_size * cfg.accumulation * launch.processes()
    return SftConfig(
        out=cfg.out,
        lr=cfg.lr,
        epochs=cfg.epochs,
        batch_size=cfg.batch_size,
        accumulation=cfg.accumulation,
        schedule=cfg.schedule,
        warmup_steps=math.ceil(cfg.warmup_share * cfg.epochs * math.ceil(rows / update)),
        lora_rank=cfg.lora_rank,
        seed=cfg.seed,
        threads=cfg.threads,
        save_every=cfg.save_every,
        log_every=1,
        **cfg.launch.supervised(),
    )


def _settings(cfg: AgentSftConfig) -> dict[str, Any]:
    """Return all that decides the result; what is read is known by its bytes, not its place."""
    neutral = replace(cfg, out=Path(), episodes=(), sharegpt=(), threads=1, save_every=0)
    return {
        "kind": "agent sft",
        **configs.dump(neutral),
        "out": "",
        "model": start_identity(model_place(cfg.model)),
        "keep": asdict(cfg.keep),
        "episodes": [_bytes(episode_file(path)) for path in cfg.episodes],
        "sharegpt": [_bytes(path) for path in cfg.sharegpt],
    }


def _bytes(path: Path) -> str:
    """Return what tells one file from another; a missing one is told of by its reader."""
    return seeds.file_fingerprint(path) if path.is_file() else str(path)
