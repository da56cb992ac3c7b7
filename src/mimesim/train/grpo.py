"""Agent RL on TRL: multi-turn GRPO whose rollouts, masks and (B, C) advantages are ours.

`train.csd` adds coached self-distillation to it. The hooks H1 to H6 are where it enters TRL, pinned
to TRL 1.16 and guarded by a contract test. Shapes: B rows, P prompt columns, C completion columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import TrainerCallback
from trl import GRPOTrainer

from mimesim.errors import CallerError
from mimesim.rollout.tokens import TokenRollout, TurnSpan
from mimesim.train import launch
from mimesim.train.credit import NOT_AGENT, CreditConfig, Rollout, assign_each
from mimesim.train.teacher import NotedTurn


@dataclass(frozen=True, slots=True)
class Sample:
    """One rollout as the trainer takes it.

    Attributes:
        group: the prompt's identity; members of a group share it.
        tokens: the record; None when the episode failed before the policy spoke.
        rewards: one per reply of the record.
        valid: whether the episode is counted.
        noted: turns to be scored by the teacher.
        metrics: numbers of this episode to be averaged in the log (success, turns, ...).
        spoilt: it is not counted because a reward is no finite number.
        credit: how its credit is assigned; None = as in the whole run.
    """

    group: str
    tokens: TokenRollout | None
    rewards: tuple[float, ...]
    valid: bool
    noted: tuple[NotedTurn, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    spoilt: bool = False
    credit: CreditConfig | None = None


class Collector(Protocol):
    """Turns dataset rows into rollouts with the current weights, one sample per row, in order."""

    def collect(self, rows: Sequence[Mapping[str, Any]], model: Any, batch: int) -> list[Sample]:
        """Run the episodes of generation batch number `batch`. Must not raise for one episode."""
        ...


def recorded_reward(prompts: list[Any], *, episode_reward: list[Any], **_: Any) -> list[Any]:
    """Return the recorded return of each row; None = not counted (hook H6)."""
    return list(episode_reward)


class CreditTrainer(GRPOTrainer):
    """GRPO with recorded rollouts and token-level advantages of `train.credit`.

    With several processes each one plays whole groups of its own. Whatever asks all of them is
    asked by all, whatever their rollouts are like. An update that nothing was learnt for, or whose
    gradient is not finite, is left out, so the optimizer's momentum moves nothing either.

    Args:
        collector: makes the rollouts.
        credit: how advantages are assigned.
        micro_rows: rows per forward; rows are sorted by length first, which changes nothing but
            the time.
    """

    def __init__(
        self, *args: Any, collector: Collector, credit: CreditConfig, micro_rows: int, **kwargs: Any
    ) -> None:
        self._collector = collector
        self._credit = credit
        self._micro_rows = micro_rows
        self._rows: list[dict[str, Any]] = []
        self._samples: list[Sample] = []
        self._sampled: Tensor | None = None
        self._learnt: Tensor | None = None
        self.played = 0
        super().__init__(*args, reward_funcs=recorded_reward, rollout_func=self._collect, **kwargs)
        self.add_callback(_Guard(self))

    # H1: roll-outs, token in and token out
    def _collect(self, prompts: list[Any], trainer: GRPOTrainer) -> dict[str, list[Any]]:
        launch.wait()  # nobody samples before all have the new weights
        found = self._collector.collect(self._rows, self.model, self._generation_batch())
        samples = [_sound(sample) for sample in found]
        if len(samples) != len(prompts):
            raise CallerError(f"{len(samples)} samples for {len(prompts)} prompts")
        self._samples = samples
        records = [self._record(sample) for sample in samples]
        width = max(len(r.completion_ids) for r in records)
        self._sampled = torch.zeros(len(records), width)
        for i, record in enumerate(records):
            self._sampled[i, : len(record.logprobs)] = torch.tensor(record.logprobs)
        if self._sampled.isnan().any():
            self._sampled = None  # a sampler without log-probs: TRL's own forward gives them
        return {
            "prompt_ids": [list(r.prompt_ids) for r in records],
            "completion_ids": [list(r.completion_ids) for r in records],
            "logprobs": [list(r.logprobs) for r in records],
            # The stand-in of a failed episode is masked out: it counts in no normalizer either.
            "env_mask": [
                [mask * _trainable(s) for mask in r.env_mask]
                for r, s in zip(records, samples, strict=True)
            ],
            "episode_reward": [sum(s.rewards) if s.valid else None for s in samples],
        }

    def _generation_batch(self) -> int:
        updates = self.args.steps_per_generation // self.args.gradient_accumulation_steps
        return int(self.state.global_step // max(1, updates))

    def _record(self, sample: Sample) -> TokenRollout:
        """Return the record, or one token in its place for an episode that failed."""
        if sample.tokens is not None and sample.valid:
            return sample.tokens
        end = self._tokenizer.eos_token_id
        return TokenRollout((end,), (end,), (1,), (0.0,), (TurnSpan(0, 1, 0),))

    # H2: advantages of (B, C)
    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        self._rows = inputs
        try:
            out: dict[str, Any] = super()._generate_and_score_completions(inputs)
        finally:
            self._sampled = None
        width = out["completion_ids"].shape[1]
        rollouts = [self._as_credit(sample) for sample in self._samples]
        assignment = assign_each(rollouts, [s.credit or self._credit for s in self._samples])
        advantages = torch.zeros(len(rollouts), width)
        for i, row in enumerate(assignment.tokens):
            if assignment.in_loss[i]:
                advantages[i, : len(row)] = torch.tensor(row, dtype=torch.float32)
        out["advantages"] = advantages.to(out["completion_ids"].device)
        self._note_metrics(assignment)
        return out

    # H4: the loss, and how far the weights are from those that sampled
    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        loss: Tensor = super()._compute_loss(model, inputs)
        then, now = inputs.get("old_per_token_logps"), self._learnt
        self._learnt = None
        if then is not None and now is not None:
            mask = inputs["completion_mask"] * inputs.get("tool_mask", 1)
            ratio = (now.detach() - then).exp() * mask
            own = torch.stack([ratio.sum(), mask.sum().to(ratio.dtype)])
            total, tokens = self.accelerator.gather(own[None]).sum(0).tolist()
            if tokens:
                self._metrics["train"]["ratio/mean"].append(total / tokens)
        return loss

    def _as_credit(self, sample: Sample) -> Rollout:
        record = self._record(sample)
        turns = [NOT_AGENT] * len(record.completion_ids)
        for index, span in enumerate(record.spans):
            turns[span.start : span.end] = [index] * (span.end - span.start)
        rewards = sample.rewards if sample.valid and sample.tokens else (0.0,)
        return Rollout(
            group=sample.group, rewards=rewards, token_turns=turns, valid=_trainable(sample)
        )

    def _note_metrics(self, assignment: Any) -> None:
        log = self._metrics["train" if self.model.training else "eval"]
        own: dict[str, float] = {
            "rows": len(self._samples),
            "valid": sum(map(_trainable, self._samples)),
            "not_finite": sum(sample.spoilt for sample in self._samples),
            "invalid": assignment.removed,
            "flat_groups": assignment.flat_groups,
            "small_groups": assignment.small_groups,
            "groups": len({sample.group for sample in self._samples}),
            "uncredited": assignment.uncredited_tokens,
            "agent_tokens": assignment.agent_tokens,
        }
        total = launch.summed(own)
        self.played = int(total["valid"])
        for key in ("valid", "not_finite", "invalid", "flat_groups", "small_groups", "groups"):
            log[f"credit/{key}"].append(float(total[key]))
        agent = total["agent_tokens"]
        log["credit/uncredited"].append(total["uncredited"] / agent if agent else 0.0)
        for key, values in sorted(_by_metric(self._samples).items()):
            log[f"episode/{key}"].append(sum(values) / len(values))

    # H3: log-probs in length-sorted micro-chunks
    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: Tensor,
        attention_mask: Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,  # noqa: FBT001 - the hook's own signature
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        if self._sampled is not None and not torch.is_grad_enabled():
            # TRL asks for the log-probs of the sampling weights: the sampler has them already.
            return self._sampled.to(input_ids.device), None, None
        order = attention_mask.sum(1).argsort()
        logps = input_ids.new_zeros((len(input_ids), logits_to_keep), dtype=torch.float32)
        entropies = torch.zeros_like(logps) if compute_entropy else None
        for rows in order.split(self._micro_rows):
            first, last = _used_columns(attention_mask[rows], logits_to_keep)
            keep = last - (input_ids.shape[1] - logits_to_keep)
            part, entropy, _ = super()._get_per_token_logps_and_entropies(
                model,
                input_ids[rows, first:last],
                attention_mask[rows, first:last],
                keep,
                compute_entropy=compute_entropy,
                **kwargs,
            )
            padded = torch.nn.functional.pad(part, (0, logits_to_keep - keep))
            logps = logps.index_copy(0, rows, padded.float())
            if entropies is not None and entropy is not None:
                filled = torch.nn.functional.pad(entropy, (0, logits_to_keep - keep))
                entropies = entropies.index_copy(0, rows, filled.detach().float())
        self._learnt = logps if torch.is_grad_enabled() else self._learnt
        return logps, entropies, None


class _Guard(TrainerCallback):
    """Leaves out an update that nothing was learnt for, or that would ruin the weights."""

    def __init__(self, trainer: CreditTrainer) -> None:
        self._trainer = trainer

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Drop the gradients where they must not be used; all processes decide alike."""
        del args, state, control
        model, log = given["model"], self._trainer._metrics["train"]
        own = [p.grad.float().norm() for p in model.parameters() if p.grad is not None]
        whole = [bool(torch.stack(own).isfinite().all())] if own else [True]
        finite = all(one for part in launch.shared(whole) for one in part)
        log["update/not_finite"].append(float(not finite))
        if not finite or not self._trainer.played:
            model.zero_grad(set_to_none=True)


def _sound(sample: Sample) -> Sample:
    """Return a sample whose rewards can be counted; with one that is no number it is not."""
    if not sample.valid or all(map(math.isfinite, sample.rewards)):
        return sample
    return replace(sample, valid=False, spoilt=True, metrics={})


def _by_metric(samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Return the values of all processes by metric."""
    found: dict[str, list[float]] = {}
    for part in launch.shared([dict(sample.metrics) for sample in samples]):
        for metrics in part:
            for key, value in metrics.items():
                found.setdefault(key, []).append(value)
    return found


def _trainable(sample: Sample) -> bool:
    return sample.valid and sample.tokens is not None


def _used_columns(mask: Tensor, keep: int) -> tuple[int, int]:
    """Return the range of columns in which any row of `mask` (b, n) has a token."""
    columns = mask.any(0).nonzero().squeeze(1)
    start = mask.shape[1] - keep
    return min(int(columns[0]), start - 1), max(int(columns[-1]) + 1, start + 1)
