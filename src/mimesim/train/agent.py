"""Stage two: train an agent against a frozen user with multi-turn GRPO, with CSD or without.

Reads top to bottom: tasks, dataset, TRL arguments, trainer, run, checkpoint. The user is frozen by
construction: it is injected into the gym and no optimizer knows it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback

from mimesim import config as configs
from mimesim import jsonio
from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, check_ranges
from mimesim.envs.load import gym_spec, load_tasks
from mimesim.errors import ConfigError
from mimesim.judges.load import make_judge
from mimesim.models.local import quiet_loading
from mimesim.models.tiny import load_policy
from mimesim.rollout.policy import PolicyConfig
from mimesim.seeds import derive, file_fingerprint
from mimesim.train import arms
from mimesim.train.coach import Coach, CoachConfig, make_coach, read_coach, same_model
from mimesim.train.collect import GymCollector, World
from mimesim.train.credit import CreditConfig
from mimesim.train.csd import CsdConfig, CsdTrainer, check_csd
from mimesim.train.csd_record import csd_block
from mimesim.train.folder import training_folder
from mimesim.train.notes import NoteConfig, check_notes
from mimesim.train.rl import BatchLog, Keeper, OnBatch, grpo_arguments
from mimesim.train.warmstart import WarmConfig, warm_start
from mimesim.users.base import UserSource
from mimesim.users.load import make_user
from mimesim.users.mixture import Mixture, UserShare, check_shares, make_mixture

__all__ = ["AgentConfig", "BatchLog", "OnBatch", "train_agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """One RL run of an agent.

    Attributes:
        init: checkpoint of the warm-started policy.
        out: folder of this run; the result is `out/policy`.
        user: door name of the frozen user. users: several, with shares, in its place. judge: of the judge, where the gym needs one.
        gym_options: settings of the gym.
        batches: generation batches ("steps" of the paper).
        prompts, group: tasks per batch, rollouts per task.
        minibatches: optimizer steps per batch.
        lr, warmup: peak rate, and warm-up in batches; constant afterwards.
        clip: lower and upper PPO clip.
        micro_rows: rows per forward.
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
    gym_options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    batches: int = 150
    prompts: int = 8
    group: int = 8
    minibatches: int = 2
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
    save_every: int = 50
    threads: int = 1

    @classmethod
    def settle(cls, tree: dict[str, Any]) -> None:
        """Set the keys that the arm decides; see `config.Settling`.

        Raises:
            ConfigError: another key contradicts the arm.
        """
        arms.settle(tree)

    def __post_init__(self) -> None:
        """Refuse settings that cannot be trained with.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "batches", "prompts", "minibatches", "micro_rows", "save_every")
        check_ranges(self, COUNT, "threads")
        check_ranges(self, POSITIVE, "lr")
        check_ranges(self, NATURAL, "warmup")
        check_ranges(self, COUNT, "policy.max_tokens")
        check_ranges(self, POSITIVE, "policy.temperature")
        check_shares(self.users)
        check_csd(self)
        check_notes(self)
        read_coach(self.coach)
        arms.applied(self)
        if self.group < 2:
            raise ConfigError("'group' must be at least 2: GRPO compares rollouts of one task")
        if self.prompts * self.group % self.minibatches:
            raise ConfigError(
                f"'minibatches' {self.minibatches} does not divide {self.prompts * self.group}",
                expected="a divisor of prompts x group",
            )


def train_agent(config: AgentConfig, *, on_batch: OnBatch | None = None) -> dict[str, Any]:
    """Train, or go on where an interrupted run stopped; return the result record.

    Returns:
        `checkpoint`, `steps`, `curve` (one dict a batch), `csd` (see `train.csd_record`), `wall_s`,
        `cpu_s`.

    Raises:
        UsageError: wrong settings or surroundings, or the folder holds another training.
        EnvironmentFault: a damaged checkpoint, a full disk, another process at work there.
    """
    config = arms.applied(config)
    _make_start(config)
    place = {"checkpoint": str(config.out / "policy")}
    with training_folder(config.out, _settings(config)):
        done = config.out / "agent.json"
        if done.exists():
            return {**jsonio.read_object(done, "curve", "steps"), **place}
        result = {**place, **_train(config, on_batch)}
        jsonio.write_json(done, result)
        return result


def _make_start(config: AgentConfig) -> None:
    """Make the warm-started policy that the run begins with, if it is to be made."""
    if config.start is None or (config.init / "model.safetensors").is_file():
        return
    if (config.start.out / "policy").absolute() != config.init.absolute():
        raise ConfigError(
            f"'start.out' makes {str(config.start.out / 'policy')!r}",
            expected=f"'init', which is {str(config.init)!r}",
        )
    warm_start(config.start)


def _settings(config: AgentConfig) -> dict[str, Any]:
    """Return all that decides the result; the start is known by its weights, not its place."""
    weights = config.init / "model.safetensors"
    start = file_fingerprint(weights) if weights.is_file() else str(config.init)
    neutral = replace(config, init=Path(), out=Path(), threads=1, save_every=1, start=None)
    told = configs.dump(neutral)
    if not config.users:
        told.pop("users")  # folders of before there were mixtures can be gone on with
    return {"kind": "agent", **told, "init": start, "out": ""}


def _train(config: AgentConfig, on_batch: OnBatch | None) -> dict[str, Any]:
    torch.set_num_threads(config.threads)
    started, cpu = time.monotonic(), time.process_time()
    model, tokenizer = load_policy(config.init)
    tasks = load_tasks(
        config.gym,
        profile=config.profile,
        split="train",
        seed=derive(config.seed, "tasks"),
        count=config.batches * config.prompts,
    )
    judged = gym_spec(config.gym, config.profile).needs_judge
    judge = make_judge(config.judge) if judged else None
    user, options = _users(config), config.gym_options
    world = World(config.gym, config.profile, user, judge=judge, options=options)
    coach, asking = _coach(config, user), read_coach(config.coach)
    collector = GymCollector(
        world,
        tasks,
        tokenizer,
        config.policy,
        config.seed,
        coach,
        config.notes,
        asking=asking,
    )
    keeper = Keeper(config, ("episode/", "credit/", "csd/"), _Ring(collector), on_batch)
    checkpoint = keeper.last_checkpoint()
    with quiet_loading(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TRL warns of settings that are chosen here
        trainer = CsdTrainer(
            model=model,
            args=grpo_arguments(config),
            processing_class=tokenizer,
            train_dataset=Dataset.from_dict(
                {"prompt": [t.id for t in tasks], "task_index": list(range(len(tasks)))}
            ),
            callbacks=[keeper],
            collector=collector,
            credit=config.credit,
            micro_rows=config.micro_rows,
            csd=config.csd,
        )
        trainer.remove_callback(PrinterCallback)
        with closing(collector):
            collector.check()
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    model.eval()
    with quiet_loading():
        model.save_pretrained(config.out / "policy")
    tokenizer.save_pretrained(config.out / "policy")
    return {
        "steps": config.batches,
        "user": config.user if not config.users else [share.name for share in config.users],
        "seed": config.seed,
        "curve": keeper.curve,
        "csd": csd_block(config, keeper.curve, coach, asking),
        "wall_s": round(time.monotonic() - started, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
    }


def _users(config: AgentConfig) -> UserSource | Mixture:
    if config.users:
        return make_mixture(config.users, derive(config.seed, "users"))
    return make_user(config.user)


def _coach(config: AgentConfig, met: UserSource | Mixture) -> Coach | None:
    asking = read_coach(config.coach)
    if config.csd.alpha == 0 or asking is None:
        return None  # alpha = 0 asks no coach and draws no random number
    users = met.sources if isinstance(met, Mixture) else (met,)
    if asking.name == "user" and len(users) > 1:
        raise ConfigError(
            f"coach 'user' asks the model behind the user, and 'users' has {len(users)}",
            where="coach",
            mend="take coach = 'rule' or 'model:<model>'",
        )
    coach = make_coach(asking, users[0])
    for user in users:
        if config.arm == "csd-othercoach" and same_model(coach, user):
            raise ConfigError(
                f"the coach is the model of the user, {user.identity.name!r}",
                where="coach",
                expected="another model in the arm 'csd-othercoach'",
            )
    return coach


class _Ring:
    """The placebo ring and the counts of notes, as what a checkpoint keeps."""

    def __init__(self, collector: GymCollector) -> None:
        self._collector = collector

    def numbers(self) -> dict[str, float]:
        """Return what became of the notes of the last batch."""
        return self._collector.counts.numbers() if self._collector.coach else {}

    def state(self) -> dict[str, Any]:
        """Return the ring."""
        return {"ring": self._collector.ring.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a ring."""
        self._collector.ring.restore(state["ring"])
