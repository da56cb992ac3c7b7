"""What a recipe asks for, read without its config class: nothing here loads torch.

The views below repeat the names and defaults of the config classes; a test keeps them equal. What a
recipe cannot say (how long people talk, on what it will run) stands in its table `x-plan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimesim import config as configs
from mimesim.config import recipes
from mimesim.errors import ConfigError, UnknownNameError
from mimesim.registry import unknown_name
from mimesim.train import arms, gyms
from mimesim.train.plan.assumptions import Span
from mimesim.train.plan.money import Prices

Given = float | tuple[float, float] | None
"""A number, or its fast and its slow end."""
VERBS = ("user", "agent")
NOTES = "x-plan"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for beside the recipe; None = the recipe's `x-plan`, else a default.

    Attributes:
        gpu: name of a machine. gpus: how many train (cores, where it is `cpu`).
        model: shape of what is trained.
        engine: who samples: `vllm` or `hf`, the trainer's own process.
        sharded: weights, gradients and optimizer are spread over the machines.
    """

    gpu: str | None = None
    gpus: int | None = None
    model: str | None = None
    engine: str | None = None
    sharded: bool | None = None
    prices: Prices = field(default_factory=Prices)
    overrides: tuple[str, ...] = ()
    quick: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """The table `x-plan` of a recipe.

    Attributes:
        model: shape of what is trained, where the path does not tell.
        gpu, gpus: what it runs on. server_gpus: further ones, for a user that is served.
        user_model: shape of a user, judge or coach that is served.
        rows: conversations of the corpus. row_tokens: of each.
        prompt, turns, reply, message, note: see `volume.Conversation`.
        longest: tokens that the policy writes in the longest conversation of a batch.
        judged: share of the turns (agents) or conversations (users) that a judge grades.
    """

    model: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    server_gpus: int | None = None
    user_model: str | None = None
    rows: Given = None
    row_tokens: Given = None
    prompt: Given = None
    turns: Given = None
    reply: Given = None
    message: Given = None
    note: Given = None
    longest: Given = None
    judged: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchView:
    """Of `train.launch.Launch`."""

    gradient_checkpointing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisedView:
    """Of `train.midtrain.UserConfig`."""

    model: str = "embedded"
    stage: str = "midtrain"
    token_budget: int = 32_000
    epochs: int = 1
    max_length: int = 256
    batch_size: int = 4
    accumulation: int = 1
    lora_rank: int = 16
    dtype: str = "bf16"
    threads: int = 2
    launch: LaunchView = field(default_factory=LaunchView)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSftView(SupervisedView):
    """Of `train.agent_sft.AgentSftConfig`; how many rows there are, a recipe has to say."""

    stage: str = "agent SFT"
    token_budget: int = 0
    epochs: int = 3
    max_length: int = 16_384
    batch_size: int = 2
    lora_rank: int = 0
    dtype: str = "fp32"
    threads: int = 1
    accumulation: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshView:
    """Of `train.fresh.FreshConfig`; which steps and batch, a recipe has to say."""

    steps: int = 600
    batch: int = 64
    threads: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyView:
    """Of `rollout.policy.PolicyConfig`."""

    max_tokens: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneView:
    """Of `train.user_tasks.SceneConfig`."""

    turn_budget: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """Of `train.user_tasks.TaskPart`."""

    name: str
    weight: float = 1.0
    judge: str = "rule"
    partner: str = "rule"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRlView:
    """Of `train.user_rl.UserRlConfig`."""

    init: str = "embedded"
    tasks: tuple[TaskView, ...] = (TaskView(name="behavior"),)
    scenes: SceneView = field(default_factory=SceneView)
    batches: int = 30
    prompts: int = 8
    group: int = 8
    minibatches: int = 2
    accumulation: int = 1
    policy: PolicyView = field(default_factory=lambda: PolicyView(max_tokens=64))
    lora_rank: int = 0
    dtype: str = "fp32"
    threads: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CsdView:
    """Of `train.csd.CsdConfig`."""

    alpha: float = 0.0
    teacher: str = "packed"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteView:
    """Of `train.collect.NoteConfig`."""

    debias: bool = True
    max_noted: int = 16
    concurrency: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class UserShareView:
    """Of `users.mixture.UserShare`."""

    name: str
    weight: float = 1.0
    from_batch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GymView:
    """Of `train.gyms.GymShare`."""

    gym: str
    rows: int
    profile: str = ""
    user: str = ""
    users: tuple[UserShareView, ...] = ()
    judge: str = ""
    max_steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationView:
    """Of `train.validation.ValidationConfig`."""

    share: float = 0.0
    at_most: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerView:
    """Of `train.sampling.SamplerConfig`."""

    kind: str = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """Of `train.agent.AgentConfig`."""

    init: str = "out/warm-start/policy"
    user: str = "scripted:realistic"
    users: tuple[UserShareView, ...] = ()
    gym: str = "support-desk"
    profile: str = "compact"
    gyms: tuple[GymView, ...] = ()
    judge: str = "rule"
    batches: int = 150
    prompts: int = 8
    group: int = 8
    minibatches: int = 2
    accumulation: int = 1
    policy: PolicyView = field(default_factory=PolicyView)
    csd: CsdView = field(default_factory=CsdView)
    notes: NoteView = field(default_factory=NoteView)
    coach: Any = "rule"
    arm: str | None = None
    lora_rank: int = 0
    dtype: str = "fp32"
    threads: int = 1
    launch: LaunchView = field(default_factory=LaunchView)
    sampler: SamplerView = field(default_factory=SamplerView)
    validation: ValidationView = field(default_factory=ValidationView)

    @classmethod
    def settle(cls, tree: dict[str, Any]) -> None:
        """Set the keys that the arm decides; see `config.Settling`.

        Raises:
            ConfigError: another key contradicts the arm, or one gym is named beside several.
        """
        arms.settle(tree)
        gyms.settle(tree)

    def __post_init__(self) -> None:
        """Refuse a mixture of gyms that cannot be drawn from.

        Raises:
            ConfigError: as `train.gyms.check_gyms`.
        """
        gyms.check_gyms(self)


VIEWS: dict[str, type[Any]] = {
    "mimesim.train.midtrain:UserConfig": SupervisedView,
    "mimesim.train.warmstart:WarmConfig": FreshView,
    "mimesim.train.gymstart:GymStartConfig": FreshView,
    "mimesim.train.user_warmstart:SpeakerConfig": FreshView,
    "mimesim.train.user_rl:UserRlConfig": UserRlView,
    "mimesim.train.agent:AgentConfig": AgentView,
    "mimesim.train.agent_sft:AgentSftConfig": AgentSftView,
}
"""Config class of a recipe -> the view of it."""


@dataclass(frozen=True, slots=True)
class Read:
    """A recipe as read.

    Attributes:
        kind: its config class. view: one of the views. notes: its `x-plan`.
        passed_over: keys that have no influence on a plan.
    """

    path: Path
    kind: str
    view: Any
    notes: Notes
    passed_over: Sequence[str]


def located(given: Path) -> Path:
    """Return the recipe that a path, or a bare name of any kind of training, means.

    Raises:
        UnknownNameError: a bare name that no recipe has.
    """
    if given.parent != Path() or given.suffix:
        return given
    for verb in VERBS:
        try:
            return recipes.find(given.name, verb)
        except UnknownNameError:
            continue
    known = sorted({name for verb in VERBS for name in recipes.names(verb)})
    raise unknown_name("recipe", given.name, known)


def read(path: Path, asked: Asked) -> Read:
    """Read a training recipe.

    Raises:
        ConfigError: it cannot be read, or is for something that is no training.
    """
    kind = configs.meant_for([path])
    if kind not in VIEWS:
        configs.part(Notes, [path], NOTES)  # tells what is wrong with a file that cannot be read
        raise ConfigError(
            f"this recipe is for {kind}" if kind else "the recipe does not say what it is for",
            where=str(path),
            expected=f"{configs.FOR} = one of " + ", ".join(VIEWS),
            mend="take the recipe of a training",
        )
    view, passed_over = configs.part(
        VIEWS[kind], [path], overrides=asked.overrides, quick=asked.quick
    )
    notes, unknown = configs.part(
        Notes, [path], NOTES, overrides=asked.overrides, quick=asked.quick
    )
    if unknown:
        raise ConfigError(
            f"unknown key {unknown[0]!r}",
            where=str(path),
            expected="one of " + ", ".join(sorted(Notes.__dataclass_fields__)),
        )
    return Read(path, kind, view, notes, passed_over)


def span(given: Given, fast: float, slow: float) -> Span:
    """Return what the recipe says of a quantity, else the two ends."""
    if given is None:
        return Span(fast, slow)
    return Span(*given) if isinstance(given, tuple) else Span(given, given)
