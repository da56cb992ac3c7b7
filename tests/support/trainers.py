"""The real TRL trainers on random records: a fixed collector, a watching trainer, losses by hand.

The hand-made loss shares no code with the trainer: every log-prob is one unpadded forward of one
row, every teacher row is put together here, and the sums are divided once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig

from mimesim.rollout.tokens import TokenRecord, TokenRollout
from mimesim.seeds import generator
from mimesim.train.credit import CreditConfig
from mimesim.train.csd import CsdConfig, CsdTrainer
from mimesim.train.grpo import CreditTrainer, Sample
from mimesim.train.teacher import NotedTurn
from tests.support import policies

TOKENS = policies.tokenizer()
HEADER = [2, 6]  # <|im_start|> assistant
END = int(TOKENS.eos_token_id)
LOW, HIGH = 0.2, 0.28


def policy(seed: int = 0) -> Any:
    """Return a random policy whose log-probs lie around -3."""
    return policies.random_policy(TOKENS, seed, sharpness=4.0)


def words(rng: Any, low: int, high: int) -> list[int]:
    """Return random plain tokens."""
    return [rng.randrange(7, len(TOKENS)) for _ in range(rng.randint(low, high))]


def record(
    rng: Any, turns: int, *, size: int | None = None, prompt: int | None = None
) -> TokenRollout:
    """Return a random record without log-probs; `size` and `prompt` fix the lengths."""
    low, high = (size, size) if size else (1, 5)
    before = words(rng, *((prompt, prompt) if prompt else (3, 8)))
    made = TokenRecord((*before, *HEADER), header=len(HEADER))
    for turn in range(turns):
        if turn:
            made.add_context([END, *words(rng, 1, 5), *HEADER], header=len(HEADER))
        made.add_reply(words(rng, low, high), None)
    return made.finish()


def with_logprobs(model: Any, rollout: TokenRollout, noise: Callable[[], float]) -> TokenRollout:
    """Fill in the model's own log-probs, off by `noise`."""
    naive = policies.naive_logprobs(model, rollout.prompt_ids, rollout.completion_ids)
    values = [
        (value + noise()) if mask else 0.0
        for value, mask in zip(naive.tolist(), rollout.env_mask, strict=True)
    ]
    return replace(rollout, logprobs=tuple(values))


def make_samples(
    model: Any,
    seed: int,
    *,
    groups: int = 2,
    group: int = 4,
    noise: float = 0.0,
    placebo: bool = True,
) -> list[Sample]:
    """Return random multi-turn samples; about two thirds of their turns are noted."""
    rng = generator(seed, "samples")
    found = []
    for index in range(groups * group):
        turns = rng.randint(1, 4)
        rollout = with_logprobs(model, record(rng, turns), lambda: rng.uniform(-noise, noise))
        noted = []
        for span in rollout.spans:
            if rng.random() < 0.67:
                other = tuple(words(rng, 2, 6)) if placebo and rng.random() < 0.6 else None
                note = tuple(words(rng, 2, 7))
                noted.append(NotedTurn(span.start, span.end, span.header, note, other))
        rewards = tuple(float(rng.choice((0, 0.1, 0.4, 1))) for _ in range(turns))
        found.append(Sample(f"g{index // group}", rollout, rewards, True, tuple(noted)))
    return found


@dataclass
class Fixed:
    """A collector of given batches; the last one repeats. Notes which rows it was handed."""

    batches: Sequence[Sequence[Sample]]
    rows: list[tuple[int, list[int]]] = field(default_factory=list)

    def collect(self, rows: Sequence[Mapping[str, Any]], model: Any, batch: int) -> list[Sample]:
        """Return the samples of a batch."""
        self.rows.append((batch, [int(row["task_index"]) for row in rows]))
        return list(self.batches[min(batch, len(self.batches) - 1)])


class Watcher(TrainerCallback):  # type: ignore[misc]
    """Keeps the gradient of every optimizer step."""

    def __init__(self) -> None:
        self.gradients: list[dict[str, torch.Tensor]] = []

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Copy the gradients."""
        model = given["model"]
        learnt = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        self.gradients.append({n: p.grad.clone() for n, p in learnt})


@dataclass
class Seen:
    """One micro-step: its inputs, loss, loss by hand, and the log-probs with their gradient."""

    inputs: dict[str, Any]
    loss: float
    by_hand: float | None
    logps: torch.Tensor | None


class Watching:
    """Mixed into a trainer: keeps every micro-step and computes its loss by hand."""

    hand: Callable[..., torch.Tensor] | None = None

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        result = super()._get_per_token_logps_and_entropies(*args, **kwargs)  # type: ignore[misc]
        if torch.is_grad_enabled():
            result[0].retain_grad()
            self.logps = result[0]
        return result

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        by_hand = None
        if self.hand is not None:
            with torch.no_grad():
                by_hand = float(self.hand(model, inputs, self._samples))  # type: ignore[attr-defined]
        loss: torch.Tensor = super()._compute_loss(model, inputs)  # type: ignore[misc]
        self.seen = [*self.__dict__.get("seen", []), Seen(inputs, loss.item(), by_hand, self.logps)]
        return loss


class WatchingCredit(Watching, CreditTrainer):
    """Plain GRPO, watched."""


class WatchingCsd(Watching, CsdTrainer):
    """GRPO with CSD, watched."""


def arguments(out: Path, **changed: Any) -> GRPOConfig:
    """Return trainer arguments: two groups of four, plain SGD so that gradients can be compared."""
    given: dict[str, Any] = {
        "output_dir": str(out),
        "seed": 3,
        "max_steps": 1,
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 1,
        "num_generations": 4,
        "max_completion_length": 512,
        "learning_rate": 0.05,
        "lr_scheduler_type": "constant",
        "optim": "sgd",
        "weight_decay": 0.0,
        "max_grad_norm": 0.0,
        "epsilon": LOW,
        "epsilon_high": HIGH,
        "beta": 0.0,
        "loss_type": "dapo",
        "temperature": 1.0,
        "disable_dropout": True,
        "shuffle_dataset": False,
        "remove_unused_columns": False,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "dataloader_pin_memory": False,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
    }
    return GRPOConfig(**{**given, **changed})


@dataclass
class Run:
    """A finished training run."""

    trainer: Any
    model: Any
    watcher: Watcher
    collector: Any

    @property
    def seen(self) -> list[Seen]:
        """All micro-steps."""
        return list(self.trainer.__dict__.get("seen", []))

    @property
    def parameters(self) -> dict[str, torch.Tensor]:
        """The parameters after training."""
        return {n: p.detach().clone() for n, p in self.model.named_parameters()}

    def logged(self, key: str) -> list[float]:
        """Return what was logged under `key`."""
        return [entry[key] for entry in self.trainer.state.log_history if key in entry]


@dataclass(frozen=True)
class Setting:
    """How a run is set up.

    Attributes:
        csd: None = the trainer without CSD.
        hand: what computes each loss by hand.
        resume: a checkpoint to go on from.
        make: makes another (model, tokenizer) than the usual word-level one.
        peft: LoRA config; the adapters are made not to be zero, as if they were trained.
    """

    csd: CsdConfig | None = None
    credit: CreditConfig = field(default_factory=CreditConfig)
    micro_rows: int = 8
    hand: Callable[..., torch.Tensor] | None = None
    resume: str | None = None
    make: Callable[[], tuple[Any, Any]] | None = None
    peft: Any = None


def train(out: Path, collector: Any, setting: Setting, **changed: Any) -> Run:
    """Run the real trainer."""
    model, tokenizer = setting.make() if setting.make else (policy(), TOKENS)
    watcher = Watcher()
    prompts = {"prompt": [f"t{i}" for i in range(64)], "task_index": list(range(64))}
    kind: Any = WatchingCredit if setting.csd is None else WatchingCsd
    extra: dict[str, Any] = {} if setting.csd is None else {"csd": setting.csd}
    if setting.peft is not None:
        extra["peft_config"] = setting.peft
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = kind(
            model=model,
            args=arguments(out, **changed),
            processing_class=tokenizer,
            train_dataset=Dataset.from_dict(prompts),
            callbacks=[watcher],
            collector=collector,
            credit=setting.credit,
            micro_rows=setting.micro_rows,
            **extra,
        )
        trainer.hand = setting.hand
        if setting.peft is not None:
            model = trainer.model
            stir(model)
        trainer.train(resume_from_checkpoint=setting.resume)
    return Run(trainer, model, watcher, collector)


def stir(model: Any) -> None:
    """Fill the half of each adapter that starts at zero with small numbers."""
    rng = torch.Generator().manual_seed(7)
    for name, value in model.named_parameters():
        if "lora_B" in name:
            value.data = torch.randn(value.shape, generator=rng) * 0.1


# -- by hand --------------------------------------------------------------------------------


def rows_of(inputs: Mapping[str, Any], samples: Sequence[Sample]) -> list[tuple[int, Sample]]:
    """Return the samples of a micro-batch with their row, found again by their tokens."""
    by_tokens = {s.tokens.completion_ids: s for s in samples if s.tokens is not None and s.valid}
    found = []
    for row, (ids, mask) in enumerate(
        zip(inputs["completion_ids"], inputs["completion_mask"], strict=True)
    ):
        sample = by_tokens.get(tuple(ids[mask.bool()].tolist()))
        if sample is not None:
            found.append((row, sample))
    return found


@dataclass(frozen=True)
class ByHand:
    """GRPO plus alpha times CSD from first principles.

    Attributes:
        advantages: token advantages of a sample (equal length as its completion).
        windows: micro-batches of a generation batch over micro-batches of an optimizer step.
        off_policy: whether the recorded log-probs are those of older weights.
        form: the loss of a noted turn; see `Turn`.
    """

    advantages: Callable[[Sample], Sequence[float]]
    alpha: float = 0.0
    beta: float = 5.0
    windows: float = 1.0
    off_policy: bool = True
    form: Callable[[Turn], torch.Tensor] | None = None

    def __call__(
        self, model: Any, inputs: Mapping[str, Any], samples: Sequence[Sample]
    ) -> torch.Tensor:
        """Return the loss of one micro-batch."""
        used = [s for s in samples if s.valid and s.tokens is not None]
        sampled = sum(sum(s.tokens.env_mask) for s in used if s.tokens is not None)
        noted = sum(t.end - t.start for s in used for t in s.noted)
        policy_sum = torch.zeros(())
        csd_sum = torch.zeros(())
        for _, sample in rows_of(inputs, samples):
            tokens = sample.tokens
            assert tokens is not None
            student = score(model, tokens.prompt_ids, tokens.completion_ids)
            policy_sum = policy_sum + self._clipped(student, tokens, self.advantages(sample))
            for turn in sample.noted:
                csd_sum = csd_sum + self._turn(model, student, tokens, turn)
        loss = policy_sum * self.windows / max(sampled, 1)
        return loss + self.alpha * csd_sum * self.windows / max(noted, 1)

    def _clipped(
        self, student: torch.Tensor, tokens: TokenRollout, advantages: Sequence[float]
    ) -> torch.Tensor:
        total = torch.zeros(())
        for k, mask in enumerate(tokens.env_mask):
            if mask:
                old = tokens.logprobs[k] if self.off_policy else float(student[k].detach())
                ratio = (student[k] - old).exp()
                clipped = ratio.clamp(1 - LOW, 1 + HIGH)
                total = total - torch.minimum(ratio * advantages[k], clipped * advantages[k])
        return total

    def _turn(
        self, model: Any, student: torch.Tensor, tokens: TokenRollout, turn: NotedTurn
    ) -> torch.Tensor:
        before = [*tokens.prompt_ids, *tokens.completion_ids[: turn.start]]
        cut = len(before) - turn.header
        reply = tokens.completion_ids[turn.start : turn.end]

        def taught(note: Sequence[int]) -> torch.Tensor:
            return score(model, [*before[:cut], *note, *before[cut:]], reply).detach()

        own = student[turn.start : turn.end]
        if self.form is not None:
            notes = [(), turn.note_ids, turn.placebo_ids]
            rows = [
                None if n is None else spread(model, [*before[:cut], *n, *before[cut:]], reply)
                for n in notes
            ]
            return self.form(Turn(rows[0], rows[1].detach(), rows[2], tuple(reply), before))
        reference = own.detach() if turn.placebo_ids is None else taught(turn.placebo_ids)
        gate = torch.sigmoid(self.beta * (taught(turn.note_ids) - reference))
        return -(gate * own).sum()


@dataclass(frozen=True)
class Turn:
    """One noted turn by hand: whole log-distributions (n, V), and the ids that were sampled."""

    student: torch.Tensor
    noted: torch.Tensor
    placebo: torch.Tensor | None
    reply: tuple[int, ...]
    before: list[int]

    def sampled(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the log-probs of the sampled tokens."""
        return torch.stack([rows[k, token] for k, token in enumerate(self.reply)])

    @property
    def gap(self) -> torch.Tensor:
        """The gap, placebo taken off where there is one."""
        other = self.student if self.placebo is None else self.placebo
        return (self.sampled(self.noted) - self.sampled(other)).detach()


def spread(model: Any, prompt: Sequence[int], completion: Sequence[int]) -> torch.Tensor:
    """Return the log-distributions (n, V) at the places of `completion`, with gradient."""
    ids = torch.tensor([[*prompt, *completion]])
    logits = model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
    return logits.log_softmax(-1)


def score(model: Any, prompt: Sequence[int], completion: Sequence[int]) -> torch.Tensor:
    """Return the log-probs of one unpadded row, with gradient."""
    ids = torch.tensor([[*prompt, *completion]])
    logits = model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
    return logits.log_softmax(-1).gather(1, ids[0, len(prompt) :, None]).squeeze(1)


def largest(one: Mapping[str, torch.Tensor], two: Mapping[str, torch.Tensor]) -> float:
    """Return the largest difference between two sets of tensors."""
    assert one.keys() == two.keys()
    return max(float((one[n] - two[n]).abs().max()) for n in one)
