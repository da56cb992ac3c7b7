"""Agent RL on TRL: multi-turn GRPO with our credit, and CSD as one more additive loss.

Two trainers, read top to bottom. `CreditTrainer` is GRPO whose rollouts, masks and (B, C)
advantages are ours. `CsdTrainer` adds the live teacher and the gated likelihood; with alpha = 0 it
does nothing at all, bit for bit. The hooks H1 to H6 are where it enters TRL, pinned to TRL 1.16
and guarded by a contract test. Shapes: B rows, P prompt columns, C completion columns.
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
from mimesim.train.losses import csd_gate, csd_loss, masked_mean
from mimesim.train.teacher import (
    NotedTurn,
    TeacherScores,
    branches,
    pack,
    scatter,
    score_packed,
    score_rows,
)


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


@dataclass(frozen=True, slots=True)
class CsdConfig:
    """Coached self-distillation.

    Attributes:
        alpha: weight of the loss; 0 = plain GRPO, nothing of CSD runs.
        beta: gate sharpness; 0 = constant gate.
        teacher: `packed` (one row an episode, pure-attention models) or `rows`.
        null_probe: score the first batch once with empty notes and log the gap, which must be 0.
    """

    alpha: float = 0.0
    beta: float = 5.0
    teacher: str = "packed"
    null_probe: bool = True


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


class CsdTrainer(CreditTrainer):
    """GRPO plus alpha times CSD: same reply, note in the context, gap becomes a token weight."""

    loss_is_scaled_for_ga = True

    def __init__(self, *args: Any, csd: CsdConfig, **kwargs: Any) -> None:
        self._csd = csd
        self._student: Tensor | None = None
        self._probe_due = csd.null_probe
        super().__init__(*args, **kwargs)

    # H2: which turns are noted
    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        out = super()._generate_and_score_completions(inputs)
        if self._csd.alpha == 0:
            return out
        mask = torch.zeros(out["completion_ids"].shape, device=out["completion_ids"].device)
        noted = [list(s.noted) if s.valid and s.tokens else [] for s in self._samples]
        for i, turns in enumerate(noted):
            for turn in turns:
                mask[i, turn.start : turn.end] = 1
        out["csd_rows"] = noted
        out["csd_mask"] = mask
        out["csd_num_items"] = self.accelerator.gather(mask.sum()).sum()
        return out

    # H3: keep the student's own forward
    def _get_per_token_logps_and_entropies(
        self, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        logps, entropies, aux = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        self._student = logps if torch.is_grad_enabled() else self._student
        return logps, entropies, aux

    # H4: the loss
    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        if self._csd.alpha == 0 or not torch.is_grad_enabled():
            return super()._compute_loss(model, inputs)
        with torch.no_grad():
            scores = self._teach(model, inputs)
        loss: Tensor = super()._compute_loss(model, inputs)
        student, self._student = self._student, None
        assert student is not None
        if self._probe_due:
            self._probe_due = False
            self._null_probe(model, inputs, student.detach())
        mask = inputs["csd_mask"] * inputs["completion_mask"]
        reference = torch.where(scores.has_placebo, scores.placebo, student.detach())
        gap = scores.noted - reference
        norm = inputs["csd_num_items"].clamp(min=1.0) / self.accelerator.num_processes
        norm = norm * self.current_gradient_accumulation_steps / self.args.steps_per_generation
        term = csd_loss(student, gap, mask, beta=self._csd.beta, norm=norm)
        self._log_csd(term, gap, mask, scores, student.detach())
        return loss + self._csd.alpha * term

    def _teach(self, model: Any, inputs: dict[str, Any]) -> TeacherScores:
        return teacher_scores(
            model,
            inputs,
            inputs["csd_rows"],
            form=self._csd.teacher,
            trainer=self,
        )

    def _null_probe(self, model: Any, inputs: dict[str, Any], student: Tensor) -> None:
        empty = [
            [NotedTurn(t.start, t.end, t.header, ()) for t in turns] for turns in inputs["csd_rows"]
        ]
        with torch.no_grad():
            scores = teacher_scores(model, inputs, empty, form=self._csd.teacher, trainer=self)
        gap = ((scores.noted - student) * inputs["csd_mask"]).abs().max()
        self._metrics["train"]["csd/null_gap"].append(gap.item())

    def _log_csd(
        self, term: Tensor, gap: Tensor, mask: Tensor, scores: TeacherScores, student: Tensor
    ) -> None:
        log = self._metrics["train"]
        gate = csd_gate(gap, self._csd.beta)
        real = (scores.noted - student).abs()
        placebo = (scores.placebo - student).abs()
        log["csd/loss"].append(term.item())
        log["csd/gap_mean"].append(masked_mean(gap, mask).item())
        log["csd/gap_positive"].append(masked_mean((gap > 0).float(), mask).item())
        log["csd/gate_mean"].append(masked_mean(gate, mask).item())
        log["csd/real_abs"].append(masked_mean(real, mask).item())
        if bool(scores.has_placebo.any()):
            log["csd/placebo_abs"].append(masked_mean(placebo, mask * scores.has_placebo).item())
        log["csd/debiased"].append(masked_mean(scores.has_placebo.float(), mask).item())
        log["csd/noted_tokens"].append(mask.sum().item())


def teacher_scores(
    model: Any,
    inputs: Mapping[str, Any],
    turns: Sequence[Sequence[NotedTurn]],
    *,
    form: str,
    trainer: CreditTrainer,
) -> TeacherScores:
    """Score the noted turns of one micro-batch with the current weights.

    Args:
        model: the current weights, wrapped as the trainer has it.
        inputs: the trainer's micro-batch (`prompt_ids`, `prompt_mask`, ...).
        turns: noted turns per row.
        form: `packed` or `rows`.
        trainer: whose forward, temperature and batch size are used.
    """
    shape, device = inputs["completion_ids"].shape, inputs["completion_ids"].device
    found = branches(
        _unpadded(inputs["prompt_ids"], inputs["prompt_mask"]),
        _unpadded(inputs["completion_ids"], inputs["completion_mask"]),
        turns,
    )
    pad_id = trainer._tokenizer.pad_token_id
    batch = trainer._micro_rows
    if form == "packed":
        plain = trainer.accelerator.unwrap_model(model)
        heat = trainer.temperature
        pairs = score_packed(plain, pack(found), temperature=heat, batch=batch, pad_id=pad_id)
        return scatter([b for b, _ in pairs], [s for _, s in pairs], shape, device)

    def score(ids: Tensor, mask: Tensor, keep: int) -> Tensor:
        logps, _, _ = GRPOTrainer._get_per_token_logps_and_entropies(
            trainer, model, ids.to(device), mask.to(device), keep
        )
        return logps

    own = torch.tensor(-(-len(found) // batch), device=device)
    rounds = int(trainer.accelerator.gather(own).max())
    scores = score_rows(found, score, batch=batch, rounds=rounds, pad_id=pad_id)
    return scatter(found, scores, shape, device)


def _unpadded(ids: Tensor, mask: Tensor) -> list[list[int]]:
    return [row[keep.bool()].tolist() for row, keep in zip(ids, mask, strict=True)]
