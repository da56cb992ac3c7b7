"""Agent RL on TRL: multi-turn GRPO whose rollouts, masks and (B, C) advantages are ours.

`train.csd` adds coached self-distillation to it. The hooks H1 to H6 are where it enters TRL, pinned
to TRL 1.16 and guarded by a contract test. Shapes: B rows, P prompt columns, C completion columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from trl import GRPOTrainer

from mimesim.errors import CallerError
from mimesim.rollout.tokens import TokenRollout, TurnSpan
from mimesim.train.credit import NOT_AGENT, CreditConfig, Rollout, assign
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
    """

    group: str
    tokens: TokenRollout | None
    rewards: tuple[float, ...]
    valid: bool
    noted: tuple[NotedTurn, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)


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
        super().__init__(*args, reward_funcs=recorded_reward, rollout_func=self._collect, **kwargs)

    # H1: roll-outs, token in and token out
    def _collect(self, prompts: list[Any], trainer: GRPOTrainer) -> dict[str, list[Any]]:
        samples = self._collector.collect(self._rows, self.model, self._generation_batch())
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
        assignment = assign(rollouts, self._credit)
        advantages = torch.zeros(len(rollouts), width)
        for i, row in enumerate(assignment.tokens):
            if assignment.in_loss[i]:
                advantages[i, : len(row)] = torch.tensor(row, dtype=torch.float32)
        out["advantages"] = advantages.to(out["completion_ids"].device)
        self._note_metrics(assignment)
        return out

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
        keys = sorted({key for sample in self._samples for key in sample.metrics})
        for key in keys:
            values = [s.metrics[key] for s in self._samples if key in s.metrics]
            log[f"episode/{key}"].append(sum(values) / len(values))
        log["credit/invalid"].append(float(assignment.removed))
        log["credit/flat_groups"].append(float(assignment.flat_groups))
        log["credit/small_groups"].append(float(assignment.small_groups))
        log["credit/uncredited"].append(assignment.uncredited_token_share)

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
        return logps, entropies, None


def _trainable(sample: Sample) -> bool:
    return sample.valid and sample.tokens is not None


def _used_columns(mask: Tensor, keep: int) -> tuple[int, int]:
    """Return the range of columns in which any row of `mask` (b, n) has a token."""
    columns = mask.any(0).nonzero().squeeze(1)
    start = mask.shape[1] - keep
    return min(int(columns[0]), start - 1), max(int(columns[-1]) + 1, start + 1)
