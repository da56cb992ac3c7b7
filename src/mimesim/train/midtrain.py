"""Stage one for a user simulator: supervised training on human chats, measured before and after.

Top to bottom: load model and corpus, split, score held-out human turns, train while scoring a
validation part, score again, save. `stage` says what a row is: role-reversed chats (`midtrain`)
or chats with private thoughts (`thought`). The checkpoint carries its chat template, a model card
with the corpora and their terms, and `mimesim.json`, which is written last: a folder with that
file is finished. Paper: mid-training and thought SFT of stage one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch

from mimesim import jsonio, prompts, seeds
from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, SHARE, check_ranges
from mimesim.errors import ConfigError, UsageError
from mimesim.models.local import Loaded
from mimesim.train import launch
from mimesim.train.cards import user_card
from mimesim.train.folder import training_folder
from mimesim.train.heldout import HeldOut, held_out_nll
from mimesim.train.launch import Launch
from mimesim.train.material import Material, Wanted, gather, read_corpus, system_template
from mimesim.train.rows import TrainRow
from mimesim.train.samples import SampleConfig, sample_profiles
from mimesim.train.sft import Progress, SftConfig, SftOutcome, Watch, run_sft
from mimesim.train.weights import model_place, prepared

UNMODERATED = "Trained on human chats that nobody moderated; a word filter is no guarantee."

_RESULT = "mimesim.json"
_BEFORE = "before.json"
_VALIDATION = "validation.jsonl"
_SAMPLE_CAP = 64
"""Tokens of a message that is drawn for text statistics; an untrained model hardly ever stops."""
_SHORTEST_CAP = 32
"""Tokens that every user may take for a message, however short those it learnt from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserConfig:
    """One user training.

    Attributes:
        out: folder of the checkpoint.
        model: `embedded`, or a path or hub id with or without `hf:`.
        corpus: a folder of `mimesim data build`, a source such as `star:<path>`, or a file of own
            logs.
        stage: what a row is; `thought` puts the private thought before every message.
        reactions: thoughts about the other side's last message count, too (`thought` only).
        corpus_limit: conversations read, in the order of their ids' hashes; 0 = all.
        token_budget: input tokens of one pass; rows are taken until it is reached; 0 = all rows.
        epochs: passes over these rows.
        held_out_share: share of conversations never trained on, by hash of their ids, where the
            corpus has no splits of its own.
        eval_conversations: how many of those are scored, of each corpus.
        eval_every: updates between scores of the validation part; 0 = none.
        validation_conversations: how many conversations that part has, of each corpus.
        samples: held-out conversations of each corpus that the model writes a first and a later
            message for, before and after; 0 = none (`midtrain` only).
        max_length: tokens of a row; older turns are dropped.
        lora_rank: 0 = all parameters.
        dtype: precision of weights and optimizer.
        save_every: updates between checkpoints; 0 = none.
        launch: what the hardware is used for.
    """

    out: Path = Path("out/user")
    model: str = "embedded"
    corpus: str = "chitchat"
    stage: Literal["midtrain", "thought"] = "midtrain"
    reactions: bool = False
    corpus_limit: int = 700
    token_budget: int = 32_000
    epochs: int = 1
    held_out_share: float = 0.1
    eval_conversations: int = 32
    eval_every: int = 0
    validation_conversations: int = 8
    samples: int = 0
    max_length: int = 256
    lr: float = 1e-3
    batch_size: int = 4
    accumulation: int = 1
    warmup_steps: int = 2
    lora_rank: int = 16
    dtype: Literal["bf16", "fp32"] = "bf16"
    seed: int = 0
    threads: int = 2
    save_every: int = 20
    resume: bool = True
    launch: Launch = field(default_factory=Launch)

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "epochs", "eval_conversations", "max_length")
        check_ranges(
            self, COUNT, "validation_conversations", "batch_size", "accumulation", "threads"
        )
        check_ranges(self, NATURAL, "corpus_limit", "token_budget", "eval_every", "samples")
        check_ranges(self, NATURAL, "warmup_steps", "lora_rank", "save_every")
        check_ranges(self, POSITIVE, "lr")
        check_ranges(self, SHARE, "held_out_share")
        if self.samples and self.stage == "thought":
            raise ConfigError(
                "'samples' writes messages without thoughts",
                where="samples",
                expected="0 with the stage 'thought'",
            )


def train_user(
    cfg: UserConfig, *, on_progress: Callable[[Progress], None] | None = None
) -> dict[str, Any]:
    """Train a user, or return the result of a run with the same settings that is finished.

    Returns:
        JSON values: checkpoint, steps, before, after, gain (`HeldOut.summary` each), lower_by (the
        share by which the NLL fell, macro where there are several corpora), validation (scores
        during training), samples, tokens_trained, learnt_tokens, wall_s, cpu_s, counts, label.

    Raises:
        UsageError: `out` holds a run with other settings.
        DataError: nothing to train on or to score.
        EnvironmentFault: model or corpus is not installed, the template is unfit, the disk is
            full, a checkpoint is damaged, another process trains there, or the run was not
            started on as many processes as it says.
    """
    cfg.launch.start()
    settings = _settings(cfg)
    digest = seeds.fingerprint(jsonio.canonical(settings))
    with training_folder(cfg.out, settings, fresh=not cfg.resume):
        if not cfg.resume and launch.is_first():
            (cfg.out / _RESULT).unlink(missing_ok=True)
        launch.wait()
        return _finished(cfg.out, digest) or _train(cfg, digest, on_progress)


def _train(
    cfg: UserConfig, digest: str, on_progress: Callable[[Progress], None] | None
) -> dict[str, Any]:
    wall, cpu = time.monotonic(), time.process_time()
    torch.set_num_threads(cfg.threads)
    corpus = read_corpus(wanted(cfg))
    loaded = _load_model(cfg)
    material = gather(loaded.tokenizer, wanted(cfg), corpus)
    before = _before(cfg, digest, loaded, material.held_out.rows)
    outcome, validation = _fit(cfg, loaded, material, on_progress)
    after = held_out_nll(outcome.model, material.held_out.rows, batch_size=cfg.batch_size)
    outcome.save(cfg.out)
    first, last = before.summary(cfg.seed), after.summary(cfg.seed)
    result = {
        "checkpoint": str(cfg.out),
        "steps": outcome.steps,
        "before": first,
        "after": last,
        "gain": before.gain(after, cfg.seed),
        "lower_by": 1 - _headline(last) / _headline(first),
        "validation": validation,
        "samples": _samples(cfg, loaded.tokenizer, outcome.model, material),
        "tokens_trained": outcome.tokens,
        "learnt_tokens": outcome.learnt_tokens,
        "wall_s": time.monotonic() - wall,
        "cpu_s": time.process_time() - cpu,
        "counts": material.counts(),
        "label": "" if material.moderated else UNMODERATED,
        "losses": [[event.step, event.loss] for event in outcome.history],
    }
    if launch.is_first():
        loaded.tokenizer.save_pretrained(cfg.out)
        _write_card(cfg, digest, material, result)
    launch.wait()
    return result


def _headline(summary: dict[str, Any]) -> float:
    """Return the NLL that counts: the mean over corpora, or over tokens if there is one corpus."""
    found: float = summary.get("macro", summary)["nll"]
    return found


def _fit(
    cfg: UserConfig,
    loaded: Loaded,
    material: Material,
    on_progress: Callable[[Progress], None] | None,
) -> tuple[SftOutcome, list[dict[str, Any]]]:
    """Train; return the outcome and the validation scores, those before a resumption included."""
    log = cfg.out / _VALIDATION
    if launch.is_first() and not cfg.resume:
        log.unlink(missing_ok=True)

    def score(step: int, model: Any) -> None:
        found = held_out_nll(model, material.validation.rows, batch_size=cfg.batch_size)
        if launch.is_first():
            with jsonio.Appender(log) as out:
                out.append({"step": step, **found.summary(cfg.seed)})

    watch = Watch(cfg.eval_every, score) if cfg.eval_every and material.validation.rows else None
    if launch.is_first():
        jsonio.cut_torn_tail(log)
    outcome = run_sft(
        loaded.model,
        loaded.tokenizer,
        material.train.rows,
        _sft(cfg),
        on_progress=on_progress,
        watch=watch,
    )
    if watch is None:
        return outcome, []
    # A step that was done again after an interruption was scored again: the later score stands.
    scores = {line.value["step"]: line.value for line in jsonio.read_jsonl(log)}
    return outcome, [scores[step] for step in sorted(scores)]


def _samples(cfg: UserConfig, tokenizer: Any, trained: Any, material: Material) -> dict[str, Any]:
    """Return text statistics of what people, the base model and the trained one write."""
    if not cfg.samples:
        return {}
    base = _load_model(cfg).model
    settings = SampleConfig(
        count=cfg.samples,
        seed=cfg.seed,
        max_tokens=min(_SAMPLE_CAP, _message_tokens(material.train.rows)),
    )
    models = {"base": base, "trained": trained}
    return sample_profiles(models, tokenizer, material.held_dialogues, settings)


def _settings(cfg: UserConfig) -> dict[str, Any]:
    """Return all that decides the result; own logs are known by their bytes, too."""
    neutral = asdict(replace(cfg, out=Path(), resume=True, threads=1, save_every=0))
    return {
        "kind": "user",
        **neutral,
        "out": "",
        "prompt": prompts.prompt_hash(system_template(cfg.stage)),
        "logs": _fingerprint(cfg.corpus),
    }


def _fingerprint(corpus: str) -> str:
    """Return what tells one file of logs, or one built folder, from another."""
    for name in (corpus, corpus.partition(":")[2]):
        for path in (Path(name), Path(name) / "build.json"):
            if name and path.is_file():
                return seeds.file_fingerprint(path)
    return ""


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
    loaded = prepared(model_place(cfg.model), cfg.dtype)
    return loaded._replace(model=loaded.model.to(cfg.launch.place()))


def wanted(cfg: UserConfig) -> Wanted:
    """Return which rows these settings ask for."""
    return Wanted(
        corpus=cfg.corpus,
        stage=cfg.stage,
        reactions=cfg.reactions,
        limit=cfg.corpus_limit,
        token_budget=cfg.token_budget,
        held_out_share=cfg.held_out_share,
        eval_conversations=cfg.eval_conversations,
        validation_conversations=cfg.validation_conversations if cfg.eval_every else 0,
        max_length=cfg.max_length,
        seed=cfg.seed,
    )


def _before(cfg: UserConfig, digest: str, loaded: Loaded, rows: list[TrainRow]) -> HeldOut:
    """Score the untrained model, or read what an interrupted run of the same settings scored."""
    path = Path(cfg.out) / _BEFORE
    if cfg.resume and path.is_file():
        stored = jsonio.read_object(path, "digest", "scores")
        if stored["digest"] == digest:
            return HeldOut.read(stored["scores"])
    scored = held_out_nll(loaded.model, rows, batch_size=cfg.batch_size)
    if launch.is_first():
        jsonio.write_json(path, {"digest": digest, "scores": scored.as_dict()})
    return scored


def _sft(cfg: UserConfig) -> SftConfig:
    return SftConfig(
        out=Path(cfg.out),
        lr=cfg.lr,
        epochs=cfg.epochs,
        batch_size=cfg.batch_size,
        accumulation=cfg.accumulation,
        warmup_steps=cfg.warmup_steps,
        lora_rank=cfg.lora_rank,
        seed=cfg.seed,
        threads=cfg.threads,
        save_every=cfg.save_every,
        log_every=1,
        **cfg.launch.supervised(),
        resume=cfg.resume,
    )


def _message_tokens(rows: list[TrainRow]) -> int:
    """Return how long a message may get when this user talks: all but 1 % of those it learnt from.

    A small model seldom ends a message by itself once it has run past what people write.
    """
    lengths = sorted(length for row in rows for length in row.turn_lengths)
    return max(_SHORTEST_CAP, lengths[int(0.99 * (len(lengths) - 1))])


def _write_card(cfg: UserConfig, digest: str, material: Material, result: dict[str, Any]) -> None:
    """Write the model card, then the file that says that the checkpoint is whole."""
    jsonio.write_text(cfg.out / "README.md", user_card(cfg.model, material.terms, result))
    jsonio.write_json(
        cfg.out / _RESULT,
        {
            "kind": "user",
            "digest": digest,
            "base_model": cfg.model,
            "corpora": [terms.as_dict() for terms in material.terms],
            "label": result["label"],
            "stage": cfg.stage,
            "system_template": material.serving_template,
            "thinking": cfg.stage == "thought",
            "max_tokens": _message_tokens(material.train.rows),
            "result": result,
        },
    )
    for name in (_BEFORE, _VALIDATION):
        (cfg.out / name).unlink(missing_ok=True)
