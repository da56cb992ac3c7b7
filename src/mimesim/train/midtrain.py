"""Stage one for a user simulator: role-reversed training on human chats, measured before and after.

Top to bottom: load model and corpus, split by conversation, score held-out human turns, train,
score again, save. The checkpoint carries its chat template, a model card with the corpora and
their terms, and `mimesim.json`, which is written last: a folder with that file is finished. Paper:
mid-training of stage one, here on few tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from mimesim import jsonio, prompts, seeds
from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, SHARE, check_ranges
from mimesim.corpora.base import Corpus, HumanDialogue, is_held_out
from mimesim.corpora.load import open_corpus
from mimesim.errors import DataError, UsageError
from mimesim.models import templates
from mimesim.models.embedded import embedded_folder
from mimesim.models.local import Loaded, load_pretrained, quiet_loading
from mimesim.train.cards import user_card
from mimesim.train.folder import training_folder
from mimesim.train.heldout import HeldOut, held_out_nll
from mimesim.train.rows import SYSTEM_TEMPLATE, Rows, TrainRow, midtrain_rows
from mimesim.train.sft import Progress, SftConfig, run_sft

UNMODERATED = "Trained on human chats that nobody moderated; a word filter is no guarantee."

_RESULT = "mimesim.json"
_BEFORE = "before.json"
_SHORTEST_CAP = 32
"""Tokens that every user may take for a message, however short those it learnt from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserConfig:
    """One user training.

    Attributes:
        out: folder of the checkpoint.
        model: `embedded`, or a path or hub id with or without `hf:`.
        corpus: a name of `corpora.load` or a file of own logs.
        corpus_limit: conversations read, in the order of their ids' hashes; 0 = all.
        token_budget: input tokens to train on; rows are taken until it is reached.
        held_out_share: share of conversations never trained on, by hash of their ids.
        eval_conversations: how many of those are scored.
        max_length: tokens of a row; older turns are dropped.
        lora_rank: 0 = all parameters.
        dtype: precision of weights and optimizer.
        save_every: updates between checkpoints; 0 = none.
    """

    out: Path = Path("out/user")
    model: str = "embedded"
    corpus: str = "chitchat"
    corpus_limit: int = 700
    token_budget: int = 32_000
    held_out_share: float = 0.1
    eval_conversations: int = 32
    max_length: int = 256
    lr: float = 1e-3
    batch_size: int = 4
    warmup_steps: int = 2
    lora_rank: int = 16
    dtype: Literal["bf16", "fp32"] = "bf16"
    seed: int = 0
    threads: int = 2
    save_every: int = 20
    resume: bool = True

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "token_budget", "eval_conversations", "max_length")
        check_ranges(self, COUNT, "batch_size", "threads")
        check_ranges(self, NATURAL, "corpus_limit", "warmup_steps", "lora_rank", "save_every")
        check_ranges(self, POSITIVE, "lr")
        check_ranges(self, SHARE, "held_out_share")


@dataclass(frozen=True, slots=True)
class _Material:
    """What one run works with."""

    corpus: Corpus
    train: Rows
    held_out: Rows


def train_user(
    cfg: UserConfig, *, on_progress: Callable[[Progress], None] | None = None
) -> dict[str, Any]:
    """Train a user, or return the result of a run with the same settings that is finished.

    Returns:
        JSON values: checkpoint, steps, before, after, gain (each nll, ci95, n_tokens,
        n_conversations), tokens_trained, learnt_tokens, wall_s, cpu_s, counts, label.

    Raises:
        UsageError: `out` holds a run with other settings.
        DataError: nothing to train on or to score.
        EnvironmentFault: model or corpus is not installed, the template is unfit, the disk is
            full, a checkpoint is damaged, or another process trains there.
    """
    settings = _settings(cfg)
    digest = seeds.fingerprint(jsonio.canonical(settings))
    with training_folder(cfg.out, settings, fresh=not cfg.resume):
        if not cfg.resume:
            (cfg.out / _RESULT).unlink(missing_ok=True)
        return _finished(cfg.out, digest) or _train(cfg, digest, on_progress)


def _train(
    cfg: UserConfig, digest: str, on_progress: Callable[[Progress], None] | None
) -> dict[str, Any]:
    out = cfg.out
    wall, cpu = time.monotonic(), time.process_time()
    torch.set_num_threads(cfg.threads)
    loaded = _load_model(cfg)
    material = _material(cfg, loaded)
    before = _before(cfg, digest, loaded, material.held_out.rows)
    outcome = run_sft(
        loaded.model, loaded.tokenizer, material.train.rows, _sft(cfg), on_progress=on_progress
    )
    after = held_out_nll(outcome.model, material.held_out.rows, batch_size=cfg.batch_size)
    _save(out, outcome.model, loaded.tokenizer)
    result = {
        "checkpoint": str(out),
        "steps": outcome.steps,
        "before": before.summary(cfg.seed),
        "after": after.summary(cfg.seed),
        "gain": before.gain(after, cfg.seed),
        "tokens_trained": outcome.tokens,
        "learnt_tokens": outcome.learnt_tokens,
        "wall_s": time.monotonic() - wall,
        "cpu_s": time.process_time() - cpu,
        "counts": {
            "corpus": dict(material.corpus.counts),
            "train": dict(material.train.counts),
            "held_out": dict(material.held_out.counts),
        },
        "label": "" if material.corpus.info.moderated else UNMODERATED,
        "losses": [[event.step, event.loss] for event in outcome.history],
    }
    _write_card(cfg, digest, material.corpus, result, _message_tokens(material.train.rows))
    return result


def _settings(cfg: UserConfig) -> dict[str, Any]:
    """Return all that decides the result; own logs are known by their bytes, too."""
    neutral = asdict(replace(cfg, out=Path(), resume=True, threads=1, save_every=0))
    logs = Path(cfg.corpus)
    return {
        "kind": "user",
        **neutral,
        "out": "",
        "prompt": prompts.prompt_hash(SYSTEM_TEMPLATE),
        "logs": seeds.file_fingerprint(logs) if logs.is_file() else "",
    }


def _finished(out: Path, digest: str) -> dict[str, Any] | None:
    path = out / _RESULT
    if not path.is_file():
        return None
    stored = jsonio.read_object(path, "digest", "result")
    if stored["digest"] != digest:
        raise UsageError(
            "this folder holds a user that was trained with other settings",
            where=str(out),
            expected="the same settings, or a new folder",
            mend="choose another --out",
        )
    result: dict[str, Any] = stored["result"]
    return {**result, "checkpoint": str(out)}


def _load_model(cfg: UserConfig) -> Loaded:
    place = str(embedded_folder()) if cfg.model == "embedded" else cfg.model.removeprefix("hf:")
    loaded = load_pretrained(place, dtype=cfg.dtype)
    templates.install(loaded.tokenizer)
    loaded.model.generation_config.eos_token_id = loaded.tokenizer.eos_token_id
    return loaded


def _material(cfg: UserConfig, loaded: Loaded) -> _Material:
    corpus = open_corpus(cfg.corpus, limit=cfg.corpus_limit or None)
    held: list[HumanDialogue] = []
    free: list[HumanDialogue] = []
    for dialogue in corpus.dialogues:
        (held if is_held_out(dialogue.id, cfg.held_out_share) else free).append(dialogue)
    if not held or not free:
        raise DataError(
            f"{len(corpus.dialogues)} conversations do not give both a training and a held-out part",
            where=cfg.corpus,
            expected=f"enough for a held-out share of {cfg.held_out_share}",
            mend="take more conversations or another held_out_share",
        )
    held = held[: cfg.eval_conversations]
    return _Material(
        corpus,
        _budgeted(cfg, loaded, free),
        midtrain_rows(loaded.tokenizer, held, cfg.max_length),
    )


def _budgeted(cfg: UserConfig, loaded: Loaded, dialogues: list[HumanDialogue]) -> Rows:
    """Take rows in an order drawn from the seed until the token budget is reached."""
    seeds.generator(cfg.seed, "midtrain-rows").shuffle(dialogues)
    made = midtrain_rows(loaded.tokenizer, dialogues, cfg.max_length)
    taken: list[TrainRow] = []
    tokens = 0
    for row in made.rows:
        if tokens >= cfg.token_budget:
            break
        taken.append(row)
        tokens += len(row.input_ids)
    return Rows(taken, {**made.counts, "rows_trained": len(taken)})


def _before(cfg: UserConfig, digest: str, loaded: Loaded, rows: list[TrainRow]) -> HeldOut:
    """Score the untrained model, or read what an interrupted run of the same settings scored."""
    path = Path(cfg.out) / _BEFORE
    if cfg.resume and path.is_file():
        stored = jsonio.read_object(path, "digest", "nll")
        if stored["digest"] == digest:
            return HeldOut({name: tuple(tokens) for name, tokens in stored["nll"].items()})
    scored = held_out_nll(loaded.model, rows, batch_size=cfg.batch_size)
    jsonio.write_json(path, {"digest": digest, "nll": dict(scored.nll)})
    return scored


def _sft(cfg: UserConfig) -> SftConfig:
    return SftConfig(
        out=Path(cfg.out),
        lr=cfg.lr,
        batch_size=cfg.batch_size,
        warmup_steps=cfg.warmup_steps,
        lora_rank=cfg.lora_rank,
        seed=cfg.seed,
        threads=cfg.threads,
        save_every=cfg.save_every,
        log_every=1,
        resume=cfg.resume,
    )


def _save(out: Path, model: Any, tokenizer: Any) -> None:
    with quiet_loading():
        model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def _message_tokens(rows: list[TrainRow]) -> int:
    """Return how long a message may get when this user talks: all but 1 % of those it learnt from.

    A small model seldom ends a message by itself once it has run past what people write.
    """
    lengths = sorted(length for row in rows for length in row.turn_lengths)
    return max(_SHORTEST_CAP, lengths[int(0.99 * (len(lengths) - 1))])


def _write_card(
    cfg: UserConfig, digest: str, corpus: Corpus, result: dict[str, Any], message_tokens: int
) -> None:
    """Write the model card, then the file that says that the checkpoint is whole."""
    out = Path(cfg.out)
    jsonio.write_text(out / "README.md", user_card(cfg.model, corpus.info, result))
    jsonio.write_json(
        out / _RESULT,
        {
            "kind": "user",
            "digest": digest,
            "base_model": cfg.model,
            "corpora": [corpus.info.as_dict()],
            "label": result["label"],
            "system_template": SYSTEM_TEMPLATE,
            "thinking": False,
            "max_tokens": message_tokens,
            "result": result,
        },
    )
    (out / _BEFORE).unlink(missing_ok=True)
