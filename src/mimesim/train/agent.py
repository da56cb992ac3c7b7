"""Stage two: train an agent against a frozen user with multi-turn GRPO, with CSD or without.

Reads top to bottom: tasks, dataset, TRL arguments, trainer, run, checkpoint. The user is frozen by
construction: it is injected into the gym and no optimizer knows it.
"""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from datasets import Dataset
from transformers import PrinterCallback

from mimesim import config as configs
from mimesim import jsonio
from mimesim.config.build import HUB
from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, ROWS, check_ranges
from mimesim.errors import ConfigError, EnvironmentFault
from mimesim.models.local import quiet_loading
from mimesim.rollout.engine import Job
from mimesim.rollout.policy import PolicyConfig
from mimesim.seeds import derive
from mimesim.train import arms, gyms, launch
from mimesim.train.agent_cast import (
    Kept,
    cast_names,
    coach_of,
    make_worlds,
    practice_of,
    spent_in,
)
from mimesim.train.alarms import AlarmConfig, Alarms
from mimesim.train.coach import CoachConfig, read_coach
from mimesim.train.collect import GymCollector, World
from mimesim.train.credit import CreditConfig
from mimesim.train.csd import CsdConfig, CsdTrainer, check_csd
from mimesim.train.csd_record import csd_block
from mimesim.train.folder import training_folder
from mimesim.train.frozen import Frozen
from mimesim.train.grpo import Sample
from mimesim.train.gyms import GymShare, first_trials
from mimesim.train.launch import Launch
from mimesim.train.notes import NoteConfig, check_notes
from mimesim.train.rl import (
    BatchLog,
    Keeper,
    OnBatch,
    Watch,
    check_clip,
    check_geometry,
    grpo_arguments,
    quiet_trl,
)
from mimesim.train.sampling import Delivery, SamplerConfig, check_sampler
from mimesim.train.trackers import AUTO, check_trackers, note
from mimesim.train.validation import ValidationConfig, Validator
from mimesim.train.versions import check_versions
from mimesim.train.warmstart import WarmConfig, warm_start
from mimesim.train.weights import load_start, save_whole, start_identity, with_lora
from mimesim.users.mixture import UserShare, check_shares

__all__ = ["AgentConfig", "BatchLog", "OnBatch", "check_agent", "train_agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """One RL run of an agent.

    Attributes:
        init: folder of the policy that is trained, or `hub:<owner>/<name>`.
        out: folder of this run; the result is `out/policy`.
        user: door name of the frozen user. users: several, with shares, in its place.
        judge: door name of the judge, where the gym needs one; `self` = each user's own model.
        judge_options: settings of it (`judges.rubric.JudgeSettings`), where it is a model.
        gym_options: settings of the gym.
        gyms: several gyms with their rows, in its place (`train.gyms`).
        batches: generation batches ("steps" of the paper).
        prompts, group: tasks per batch, rollouts per task.
        minibatches: optimizer steps per batch.
        accumulation: backward passes of an optimizer step; more need less memory.
        lr, warmup: peak rate, and warm-up in batches; constant afterwards.
        clip: lower and upper PPO clip.
        micro_rows: rows per forward.
        lora_rank: 0 = train all parameters. lora_alpha: scale; 0 = twice the rank.
        lora_targets: layers with adapters; none named = all linear ones but the head.
        dtype: precision of the weights.
        sampler: who samples the replies, the model itself or a vLLM server.
        launch: the hardware; batch and prompts are those of all processes together.
        validation: tasks held out of the training tasks, the best weights, when to stop early.
        alarms: when the run calls for attention, or ends.
        trackers: `auto` (TensorBoard where it is installed), `tensorboard`, `wandb`, `trackio`.
        save_every: batches between checkpoints; an interrupted run goes on from the last one.
        coach: `rule`, `user`, `model:<model>`, a table with one of them as its `name`, or None;
            only asked when `csd.alpha` is above 0.
        arm: which variant of CSD this is (`train.arms`); None = as the keys say.
        start: warm start of the embedded policy that makes `init` where it is missing; None = it
            must be there.
    """

    init: Path = Path("out/warm-start/policy")
    out: Path = Path("out/agent")
    user: str = "scripted:realistic"
    users: tuple[UserShare, ...] = ()
    gym: str = "support-desk"
    profile: str = "compact"
    judge: str = "rule"
    judge_options: Mapping[str, Any] = field(default_factory=dict)
    gym_options: Mapping[str, Any] = field(default_factory=dict)
    gyms: tuple[GymShare, ...] = ()
    seed: int = 0
    batches: int = 150
    prompts: int = 8
    group: int = 8
    minibatches: int = 2
    accumulation: int = 1
    lr: float = 1.5e-4
    warmup: int = 10
    clip: tuple[float, float] = (0.2, 0.28)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    credit: CreditConfig = field(default_factory=CreditConfig)
    csd: CsdConfig = field(default_factory=CsdConfig)
    notes: NoteConfig = field(default_factory=NoteConfig)
    coach: CoachConfig | str | None = "rule"
    arm: str | None = None
    start: WarmConfig | None = None
    micro_rows: int = 8
    lora_rank: int = 0
    lora_alpha: float = 0.0
    lora_targets: tuple[str, ...] = ()
    dtype: Literal["bf16", "fp32"] = "fp32"
    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    launch: Launch = field(default_factory=Launch)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    alarms: AlarmConfig = field(default_factory=AlarmConfig)
    trackers: tuple[str, ...] = (AUTO,)
    save_every: int = 50
    threads: int = 1

    @classmethod
    def settle(cls, tree: dict[str, Any]) -> None:
        """Set the keys that the arm decides; see `config.Settling`.

        Raises:
            ConfigError: another key contradicts the arm.
        """
        arms.settle(tree)
        gyms.settle(tree)

    def __post_init__(self) -> None:
        """Refuse settings that cannot be trained with.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, ROWS, "batches", "prompts")
        check_ranges(self, COUNT, "minibatches", "micro_rows", "save_every")
        check_ranges(self, COUNT, "threads", "accumulation")
        check_ranges(self, POSITIVE, "lr")
        check_ranges(self, NATURAL, "warmup", "lora_rank", "lora_alpha")
        check_ranges(self, COUNT, "policy.max_tokens")
        check_ranges(self, POSITIVE, "policy.temperature")
        check_clip(self)
        check_shares(self.users)
        gyms.check_gyms(self)
        check_csd(self)
        check_notes(self)
        read_coach(self.coach)
        arms.applied(self)
        check_sampler(self.sampler, self.launch.device)
        if self.launch.packing:
            raise ConfigError(
                "'launch.packing' is for supervised training", expected="false for an agent"
            )
        check_geometry(self, self.accumulation, max(1, self.launch.processes))


def train_agent(config: AgentConfig, *, on_batch: OnBatch | None = None) -> dict[str, Any]:
    """Train, or go on where an interrupted run stopped; return the result record.

    Returns:
        `checkpoint`, `steps` (batches), `frozen` (fingerprints of users and judges),
        `curve` (one dict a batch), `csd` (see `train.csd_record`), `gyms` (each gym of a mixture),
        `validation` (`Validator.summary`), `stopped_early`, `alarms`, `usage`, `processes`,
        `wall_s`, `cpu_s`.

    Raises:
        UsageError: wrong settings or surroundings, or the folder holds another training.
        EnvironmentFault: a damaged checkpoint, a full disk, another process at work there, other
            versions of the engine, or an alarm that ends the run.
    """
    check_versions()
    config = arms.applied(config)
    config.launch.start()
    check_geometry(config, config.accumulation, launch.processes())
    check_agent(config)
    config.sampler.check_here()
    _make_start(config)
    place = {"checkpoint": str(config.out / "policy")}
    with training_folder(config.out, _settings(config)):
        done = config.out / "agent.json"
        if done.exists():
            return {**jsonio.read_object(done, "curve", "steps"), **place}
        result = {**place, **_Run(config, on_batch).train()}
        if launch.is_first():
            jsonio.write_json(done, result)
        return result


def check_agent(config: AgentConfig) -> str:
    """Refuse a run that could only fail; no weights are read, and no model is asked.

    Returns:
        What has to be made before the run; empty = nothing.

    Raises:
        UsageError: a name that nobody has, an option that is not known, tasks that are not there.
    """
    check_trackers(config.trackers)
    gyms.fingerprints(config.gyms)
    worlds = make_worlds(config)
    practice_of(config)
    found = [worlds] if isinstance(worlds, World) else list(worlds.values())
    coach_of(arms.applied(config), list({id(world.user): world.user for world in found}.values()))
    _check_start(config)
    place = str(config.init)
    if config.start is not None or place == "embedded" or place.startswith(HUB):
        return ""
    return "" if config.init.expanduser().is_dir() else f"'init': there is no folder {place} yet"


def _check_start(config: AgentConfig) -> None:
    """Refuse a warm start that makes another policy than the run begins with."""
    if config.start is None or (config.init / "model.safetensors").is_file():
        return
    if (config.start.out / "policy").absolute() != config.init.absolute():
        raise ConfigError(
            f"'init' {str(config.init)!r} is not there, and 'start.out' makes "
            f"{str(config.start.out / 'policy')!r}",
            expected="one folder",
            mend="name a folder that is there, or let 'start.out' follow 'init'",
        )


def _make_start(config: AgentConfig) -> None:
    """Make the warm-started policy that the run begins with, if it is to be made."""
    if config.start is None or (config.init / "model.safetensors").is_file():
        return
    if launch.processes() > 1:
        raise ConfigError(
            "'start' makes the first policy in one process",
            where="start",
            mend="run mimesim train warm-start before, or this recipe once without torchrun",
        )
    warm_start(config.start)


def _settings(config: AgentConfig) -> dict[str, Any]:
    """Return all that decides the result; the start is known by its weights, not its place.

    Who watches, and on how many processes, decides nothing.
    """
    neutral = replace(
        config, init=Path(), out=Path(), threads=1, save_every=1, start=None, trackers=()
    )
    told = configs.dump(neutral)
    del told["trackers"], told["alarms"]
    told["launch"] = {"precision": told["launch"]["precision"]}
    told["sampler"] = config.sampler.kind
    if config.gyms:
        told["task_files"] = gyms.fingerprints(config.gyms)
    else:
        del told["gyms"]
    return {"kind": "agent", **told, "init": start_identity(config.init), "out": ""}


class _Run:
    """One run in the making, in this process."""

    def __init__(self, config: AgentConfig, on_batch: OnBatch | None) -> None:
        torch.set_num_threads(config.threads)
        self.config = config
        loaded = load_start(config.init, config.dtype)
        self.model, self.tokenizer = loaded.model, loaded.tokenizer
        self.practice = practice_of(config)
        worlds = make_worlds(config)
        self.collector = GymCollector(
            worlds,
            self.practice.tasks,
            self.tokenizer,
            config.policy,
            config.seed,
            notes=config.notes,
            asking=read_coach(config.coach),
            first_trials=first_trials(self.practice.tasks, config.prompts, config.group),
            sampler=config.sampler.make(self.tokenizer),
        )
        self.collector.coach = coach_of(config, self.collector.users)
        watch = Watch(Alarms(config.alarms), self._validator(self.practice.held))
        if launch.is_first():
            watch.notes = tuple(filter(None, (note(config.trackers), *self.practice.notes())))
        self.watch = watch
        self.delivery: Delivery | None = None
        self.frozen = Frozen(config.out, (*self.collector.users, *self.collector.judges))
        self.keeper = Keeper(config, ("episode/", "csd/"), Kept(self.collector), on_batch, watch)

    def train(self) -> dict[str, Any]:
        """Train, write the checkpoint, return the record."""
        config, started, cpu = self.config, time.monotonic(), time.process_time()
        checkpoint = self.keeper.last_checkpoint()
        if config.lora_rank:
            self.model = with_lora(
                self.model,
                config.lora_rank,
                config.seed,
                alpha=config.lora_alpha,
                targets=config.lora_targets,
            )
        with quiet_loading(), quiet_trl(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TRL warns of settings that are chosen here
            with closing(self.collector):
                self.collector.check()  # before anything is written
                self.frozen.begin()
                with self.keeper.tracked(config.trackers, config):
                    trainer = self._trainer()
                    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        self.keeper.check()
        self.model.eval()
        if launch.is_first():
            self._write()
        self.frozen.check()
        launch.wait()
        return self._record(started, cpu)

    def _trainer(self) -> CsdTrainer:
        config, tasks = self.config, self.collector.tasks
        trainer = CsdTrainer(
            model=self.model,
            args=grpo_arguments(
                config,
                accumulation=config.accumulation,
                place=config.launch,
                **config.sampler.arguments(),
            ),
            processing_class=self.tokenizer,
            train_dataset=Dataset.from_dict(
                {"prompt": [t.id for t in tasks], "task_index": list(range(len(tasks)))}
            ),
            callbacks=[self.keeper],
            collector=self.collector,
            credit=config.credit,
            micro_rows=config.micro_rows,
            csd=config.csd,
        )
        trainer.remove_callback(PrinterCallback)
        if launch.sharded(trainer):
            raise EnvironmentFault(
                "an agent samples its own replies, and each process holds a part of the model",
                where="launch",
                expected="whole models: torchrun without FSDP and DeepSpeed ZeRO-3",
            )
        if config.sampler.served:
            self.delivery = trainer.vllm_generation = Delivery(trainer, config.sampler)
        return trainer

    def _validator(self, held_out: Sequence[Job]) -> Validator | None:
        if not held_out:
            return None
        config = self.config

        def play(jobs: Sequence[Job], model: Any) -> list[Sample]:
            if self.delivery is not None:
                self.delivery.bring()
            return self.collector.measure(jobs, model, derive(config.seed, "validation"))

        def keep(model: Any) -> None:
            save_whole(model, self.tokenizer, config.out / "best")

        return Validator(config.validation, held_out, play, keep)

    def _write(self) -> None:
        out, validator = self.config.out, self.watch.validator
        if self.config.validation.keep == "best" and validator and validator.best:
            shutil.rmtree(out / "policy", ignore_errors=True)
            shutil.copytree(out / "best", out / "policy")
        else:
            save_whole(self.model, self.tokenizer, out / "policy")

    def _record(self, started: float, cpu: float) -> dict[str, Any]:
        config, curve, validator = self.config, self.keeper.curve, self.watch.validator
        coach, asking = self.collector.coach, self.collector.asking
        return {
            "steps": len(curve),
            **cast_names(config, self.collector.worlds),
            "frozen": self.frozen.record,
            "seed": config.seed,
            "curve": curve,
            **self.practice.record(curve),
            "csd": csd_block(config, curve, coach, asking),
            "validation": validator.summary() if validator else {},
            "stopped_early": self.keeper.early,
            "alarms": self.watch.alarms.told if self.watch.alarms else [],
            "usage": spent_in(curve),
            "processes": launch.processes(),
            "wall_s": round(time.monotonic() - started, 1),
            "cpu_s": round(time.process_time() - cpu, 1),
        }
