"""Stage one, step 3: reinforcement learning of the user simulator over several tasks at once.

Top to bottom: start, prompts, score before, GRPO through the one driver, checkpoint, score after.
All parameters or a LoRA are trained. Rewards come from the judges of the tasks, the scores before
and after from judges that share no cue with them. The checkpoint is a user: `trained:<out>/policy`.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback

from mimesim import config as configs
from mimesim import jsonio
from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, ROWS, Range, check_ranges
from mimesim.envs.base import Task
from mimesim.models.local import load_pretrained, quiet_loading
from mimesim.rollout.policy import PolicyConfig
from mimesim.seeds import derive, file_fingerprint
from mimesim.train.alarms import AlarmConfig, Alarms
from mimesim.train.credit import CreditConfig
from mimesim.train.folder import training_folder
from mimesim.train.grpo import CreditTrainer
from mimesim.train.rl import (
    Keeper,
    OnBatch,
    Watch,
    check_clip,
    check_geometry,
    grpo_arguments,
    quiet_trl,
)
from mimesim.train.trackers import AUTO, check_trackers, note
from mimesim.train.user_measure import (
    MeasureConfig,
    Scored,
    difference,
    dump,
    measure,
    summary,
    without_a_score,
)
from mimesim.train.user_rollouts import Speaker, TaskCollector
from mimesim.train.user_tasks import (
    BEHAVIOR_TASK,
    SceneConfig,
    Stage,
    TaskPart,
    check_parts,
    check_run,
    judge_names,
    rows_of,
    schedule,
)
from mimesim.train.versions import check_versions
from mimesim.train.weights import load_start, save_whole, start_identity, with_lora
from mimesim.users.settings import trained_as

CARD = "mimesim.json"
"""Written last into the checkpoint: with it, the folder is a finished user."""
RESULT = "user_rl.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRlConfig:
    """One RL run of a user simulator.

    Attributes:
        init: checkpoint to start from, or `embedded`.
        out: folder of this run; the result is `out/policy`.
        tasks: the mixture.
        scenes: the behavior scenarios that are composed where no row file is named.
        batches: generation batches ("steps" of the paper).
        minutes: wall-clock after which the batch in progress is the last one; 0 = no limit. A run
            that was cut by it cannot be repeated to the digit.
        prompts, group: prompts of a batch, rollouts of a prompt.
        minibatches: optimizer steps of a batch.
        accumulation: backward passes of an optimizer step; more need less memory.
        micro_rows: rows per forward.
        lr, warmup: peak rate, and warm-up in batches; constant afterwards.
        clip: lower and upper PPO clip. ratio_cap: bounds the loss of bad rollouts (dual clip).
        thinking: whether the user thinks before it writes; `checkpoint` = as it was trained.
        policy: sampling; its `max_tokens` caps one message, thought included.
        credit: `compat` repeats the original, judged failures as 0 included.
        lora_rank: 0 = train all parameters.
        measure: the scores before and after.
        alarms: when the run calls for attention, or ends.
        trackers: `auto` (TensorBoard where it is installed), `tensorboard`, `wandb`, `trackio`.
        save_every: batches between checkpoints; an interrupted run goes on from the last one.
    """

    init: str = "embedded"
    out: Path = Path("out/user-rl")
    tasks: tuple[TaskPart, ...] = (TaskPart(name=BEHAVIOR_TASK, held_out_judge="rule-heldout"),)
    scenes: SceneConfig = field(default_factory=SceneConfig)
    seed: int = 0
    batches: int = 30
    minutes: float = 0.0
    prompts: int = 8
    group: int = 8
    minibatches: int = 2
    accumulation: int = 1
    micro_rows: int = 8
    lr: float = 1e-4
    warmup: int = 2
    clip: tuple[float, float] = (0.2, 0.28)
    ratio_cap: float = 10.0
    thinking: Literal["checkpoint", "on", "off"] = "checkpoint"
    policy: PolicyConfig = field(default_factory=lambda: PolicyConfig(1.0, 64))
    credit: CreditConfig = field(default_factory=CreditConfig)
    lora_rank: int = 0
    dtype: Literal["bf16", "fp32"] = "fp32"
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    alarms: AlarmConfig = field(default_factory=AlarmConfig)
    trackers: tuple[str, ...] = (AUTO,)
    save_every: int = 10
    threads: int = 1

    def __post_init__(self) -> None:
        """Refuse settings that cannot be trained with.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, ROWS, "batches", "prompts")
        check_ranges(self, COUNT, "minibatches", "accumulation")
        check_ranges(self, COUNT, "micro_rows", "save_every", "threads")
        check_ranges(self, POSITIVE, "lr", "policy.temperature")
        check_ranges(self, NATURAL, "minutes", "warmup", "lora_rank")
        check_clip(self)
        check_ranges(self, Range(1 + self.clip[1], above=True), "ratio_cap")
        check_parts(self.tasks)
        check_geometry(self, self.accumulation, 1)


def check_user_rl(config: UserRlConfig) -> None:
    """Refuse a run that could only fail; nothing is written and no weights are read.

    Raises:
        UsageError: a name that nobody has, a task without rows, a judge that must stay silent.
    """
    check_run(config.tasks, config.scenes, scored=config.measure.rows > 0)


def train_user_rl(config: UserRlConfig, *, on_batch: OnBatch | None = None) -> dict[str, Any]:
    """Train, or go on where an interrupted run stopped; return the result record.

    Returns:
        JSON values: `checkpoint`, `steps`, `tasks`, `before`, `after` (`user_measure.summary`),
        `gain` (`user_measure.difference`), `curve` (one dict a batch), `alarms`, `without_score`
        (tasks of which every rollout failed), `seed`, `wall_s`, `cpu_s`.

    Raises:
        UsageError: wrong settings or surroundings, or the folder holds another training.
        DataError: a task without rows.
        EnvironmentFault: a damaged checkpoint, a full disk, another process at work there, or an
            alarm that ends the run.
    """
    check_user_rl(config)
    check_versions()
    check_trackers(config.trackers)
    with training_folder(config.out, _settings(config)):
        done = config.out / RESULT
        place = {"checkpoint": str(config.out / "policy")}
        if done.exists():
            return {**jsonio.read_object(done, "curve", "steps"), **place}
        result = {**place, **_Run(config).train(on_batch)}
        jsonio.write_json(done, result)
        return result


def _settings(config: UserRlConfig) -> dict[str, Any]:
    """Return all that decides the result; the start is known by its weights, not its place."""
    neutral = replace(config, init="", out=Path(), threads=1, save_every=1)
    rows = {p.name: file_fingerprint(Path(p.rows)) for p in config.tasks if Path(p.rows).is_file()}
    start = start_identity(config.init)
    told = configs.dump(neutral)
    del told["trackers"], told["alarms"]  # who watches decides nothing
    return {"kind": "user RL", **told, "init": start, "out": "", "rows": rows}


class _Run:
    """One run in the making."""

    def __init__(self, config: UserRlConfig) -> None:
        torch.set_num_threads(config.threads)
        self.config = config
        self.card = _start_card(config)
        self.thinking = _thinks(config)
        loaded = load_start(config.init, config.dtype)
        self.model, self.tokenizer = loaded.model, loaded.tokenizer
        self.speaker = Speaker(self.tokenizer, self.thinking, config.policy)
        self.watch = Watch(
            Alarms(config.alarms), notes=tuple(filter(None, [note(config.trackers)]))
        )
        self.failures = _Failures()

    def train(self, on_batch: OnBatch | None) -> dict[str, Any]:
        """Score, train, save, score."""
        config, started, cpu = self.config, time.monotonic(), time.process_time()
        before = self._measured("before")
        keeper = self._keep(on_batch)
        after = self._measured("after")
        judges = judge_names(config.tasks, held_out=True)
        return {
            "steps": len(keeper.curve),
            "tasks": [configs.dump(part) for part in config.tasks],
            "seed": config.seed,
            "thinking": self.thinking,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "before": summary(before, config.measure, judges) if before else {},
            "after": summary(after, config.measure, judges) if after else {},
            "gain": difference(before, after),
            "without_score": without_a_score(keeper.curve, after),
            "curve": keeper.curve,
            "alarms": self.watch.alarms.told if self.watch.alarms else [],
            "wall_s": round(time.monotonic() - started, 1),
            "cpu_s": round(time.process_time() - cpu, 1),
        }

    def _measured(self, when: str) -> list[Scored]:
        """Score the weights as they are, or read what an interrupted run scored."""
        config, cfg = self.config, self.config.measure
        path = config.out / f"{when}.json"
        if path.is_file():
            return [Scored.read(one) for one in jsonio.read_object(path, "scored")["scored"]]
        if not cfg.rows:
            return []
        tasks = [
            task
            for part in config.tasks
            for task in rows_of(part, "test", config.scenes, cfg.rows, cfg.seed)
        ]
        speaker = replace(self.speaker, policy=replace(config.policy, temperature=cfg.temperature))
        stage = Stage(config.tasks, held_out=True)
        scored = measure(
            self.model, tasks, stage, speaker, cfg, config.out / f"{when}-episodes.jsonl"
        )
        jsonio.write_json(path, {"scored": dump(scored)})
        return scored

    def _keep(self, on_batch: OnBatch | None) -> Keeper:
        """Train unless the trained weights stand there already."""
        config = self.config
        keeper = Keeper(config, ("episode/",), self.failures, on_batch, self.watch)
        checkpoint = keeper.last_checkpoint()
        policy = config.out / "policy"
        if (policy / CARD).is_file():
            self.model = load_pretrained(str(policy.absolute()), dtype=config.dtype).model
            return keeper
        prompts = self._prompts()
        model = self.model
        if config.lora_rank:
            model = with_lora(model, config.lora_rank, config.seed)
        with keeper.tracked(config.trackers, config):
            self._fit(model, prompts, keeper, checkpoint)
        keeper.check()
        self.model = model.merge_and_unload() if config.lora_rank else model
        self.model.eval()
        save_whole(self.model, self.tokenizer, policy)
        jsonio.write_json(policy / CARD, {**self.card, "thinking": self.thinking})
        return keeper

    def _prompts(self) -> list[Task]:
        config = self.config
        seed = derive(config.seed, "prompts")
        count = config.batches * config.prompts
        rows = {p.name: rows_of(p, "train", config.scenes, count, seed) for p in config.tasks}
        return schedule(config.tasks, rows, count, seed)

    def _fit(
        self, model: Any, prompts: Sequence[Task], keeper: Keeper, checkpoint: Path | None
    ) -> None:
        config = self.config
        collector = TaskCollector(
            Stage(config.tasks), prompts, self.speaker, config.seed, compat=config.credit.compat
        )
        self.failures.collector = collector
        with quiet_loading(), quiet_trl(), warnings.catch_warnings(), closing(collector):
            warnings.simplefilter("ignore")  # TRL warns of settings that are chosen here
            trainer = CreditTrainer(
                model=model,
                args=grpo_arguments(
                    config, accumulation=config.accumulation, delta=config.ratio_cap
                ),
                processing_class=self.tokenizer,
                train_dataset=Dataset.from_dict(
                    {"prompt": [t.id for t in prompts], "place": list(range(len(prompts)))}
                ),
                callbacks=[keeper, _Clock(config.minutes)],
                collector=collector,
                credit=config.credit,
                micro_rows=config.micro_rows,
            )
            trainer.remove_callback(PrinterCallback)
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)


class _Clock(TrainerCallback):
    """Ends a training after so many minutes, between two batches, with a checkpoint."""

    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60 * minutes if minutes else math.inf

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Look at the clock when a batch is done."""
        del args, state
        if time.monotonic() >= self._end:
            control.should_save = True
            control.should_training_stop = True


@dataclass(slots=True)
class _Failures:
    """How rollouts failed; they depend on weights, prompts and seeds alone, so nothing is kept."""

    collector: TaskCollector | None = None

    def numbers(self) -> dict[str, float]:
        """Return how many episodes of the last batch failed, by status."""
        failed = self.collector.failed if self.collector else {}
        return {f"failed/{status}": float(count) for status, count in failed.items()}

    def state(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take nothing over."""


def _thinks(config: UserRlConfig) -> bool:
    if config.thinking != "checkpoint":
        return config.thinking == "on"
    # The embedded chat model was never taught to think; its folder says nothing about it.
    return config.init != "embedded" and trained_as(config.init).thinking


def _start_card(config: UserRlConfig) -> dict[str, Any]:
    """Return what the new checkpoint says of itself: what the old one said, and how it goes on."""
    path = Path(config.init) / CARD
    told = jsonio.read_object(path) if path.is_file() else {}
    names: tuple[str, ...] = ("system_template", "end_marker", "speaks_as", "label")
    kept: dict[str, Any] = {name: told[name] for name in names if name in told}
    return {
        "kind": "user",
        "stage": "rl",
        **kept,
        "base_model": told.get("base_model", Path(config.init).name),
        "max_tokens": config.policy.max_tokens,
        "tasks": [part.name for part in config.tasks],
    }
