"""Coached self-distillation: GRPO plus alpha times a loss that a live, noted teacher weighs.

`CsdTrainer` scores the sampled replies again with a coach's note in the context, before each
update and with the current weights, and adds the loss of an estimator (`train.losses`). With
alpha = 0 it does nothing at all, bit for bit. Shapes: B rows, C completion columns, M noted tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from peft import PeftModel
from torch import Tensor
from trl import GRPOTrainer

from mimesim.config.ranges import COUNT, NATURAL, POSITIVE, check_ranges
from mimesim.errors import ConfigError, EnvironmentFault
from mimesim.train.grpo import CreditTrainer
from mimesim.train.launch import sharded
from mimesim.train.losses import (
    Buckets,
    Estimator,
    Evidence,
    Tuning,
    csd_gate,
    debiased,
    estimator_of,
)
from mimesim.train.teacher import (
    Branch,
    Chosen,
    NotedTurn,
    Reader,
    TeacherScores,
    branches,
    pack,
    scatter,
    score_apart,
    score_packed,
    score_rows,
)

TEACHERS = ("packed", "rows")
NULL_TOLERANCE = 1e-3
"""Largest null gap of fp32 weights; rounding gives 1e-6, a mask that is not obeyed 0.01 and more."""


@dataclass(frozen=True, slots=True)
class CsdConfig:
    """Coached self-distillation.

    Attributes:
        alpha: weight of the loss; 0 = plain GRPO, nothing of CSD runs.
        beta: gate sharpness; 0 = constant gate.
        teacher: `packed` (one row an episode, pure-attention models) or `rows`.
        null_probe: score the first batch once with empty notes and log the gap, which must be 0.
        estimator: `sdar`, or one of the experimental ones of `train.losses`.
        top_k: likeliest tokens that the bucket forms (distill, sdpo, opsd) tell apart.
        mixture, entry_cap: see `train.losses.Tuning`.
    """

    alpha: float = 0.0
    beta: float = 5.0
    teacher: str = "packed"
    null_probe: bool = True
    estimator: str = "sdar"
    top_k: int = 100
    mixture: float = 0.5
    entry_cap: float = 0.05

    @property
    def tuning(self) -> Tuning:
        """Return the numbers of the estimator."""
        return Tuning(self.beta, self.mixture, self.entry_cap)


def check_csd(config: Any) -> None:
    """Refuse settings of the table `csd` of a run that cannot be trained with.

    Raises:
        ConfigError: naming the key.
        UnknownNameError: no such estimator.
    """
    csd: CsdConfig = config.csd
    check_ranges(config, NATURAL, "csd.alpha", "csd.beta")
    check_ranges(config, COUNT, "csd.top_k")
    check_ranges(config, POSITIVE, "csd.entry_cap")
    if csd.teacher not in TEACHERS:
        raise ConfigError(
            f"'csd.teacher' cannot be {csd.teacher!r}", expected=" or ".join(TEACHERS)
        )
    if not 0 < csd.mixture < 1:
        raise ConfigError(
            f"'csd.mixture' cannot be {csd.mixture}", expected="a number between 0 and 1"
        )
    estimator_of(csd.estimator)


class Lesson(NamedTuple):
    """What the teacher says about one micro-batch; `buckets` where the estimator needs them."""

    scores: TeacherScores
    buckets: Buckets | None


class CsdTrainer(CreditTrainer):
    """GRPO plus alpha times CSD: same reply, note in the context, gap becomes a token weight."""

    loss_is_scaled_for_ga = True

    def __init__(self, *args: Any, csd: CsdConfig, **kwargs: Any) -> None:
        self._csd = csd
        self._estimator: Estimator = estimator_of(csd.estimator)
        self._student: Tensor | None = None
        self._probe_due = csd.null_probe
        super().__init__(*args, **kwargs)
        whole = csd.teacher == "packed" or self._estimator.buckets
        if csd.alpha > 0 and whole and sharded(self):
            raise ConfigError(
                "'csd.teacher' and 'csd.estimator' read the whole model, each process holds a part",
                expected="teacher = 'rows' and a token form: sdar, ref or k3",
            )

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
        lesson = self._teach(model, inputs)
        loss: Tensor = super()._compute_loss(model, inputs)
        student, self._student = self._student, None
        assert student is not None
        if self._probe_due:
            self._probe_due = False
            self._null_probe(model, inputs, student.detach())
        scores = lesson.scores
        reference = torch.where(scores.has_placebo, scores.placebo, student.detach())
        evidence = Evidence(
            student,
            gap=scores.noted - reference,
            mask=inputs["csd_mask"] * inputs["completion_mask"],
            ratio=_ratio(student.detach(), inputs.get("old_per_token_logps")),
            buckets=lesson.buckets,
        )
        norm = inputs["csd_num_items"].clamp(min=1.0) / self.accelerator.num_processes
        norm = norm * self.current_gradient_accumulation_steps / self.args.steps_per_generation
        term = self._estimator.loss(evidence, self._csd.tuning, norm)
        self._log_csd(term, evidence, scores)
        return loss + self._csd.alpha * term

    def _teach(self, model: Any, inputs: dict[str, Any]) -> Lesson:
        """Score the noted replies with the current weights, before the student's own forward."""
        turns = inputs["csd_rows"]
        if self._estimator.buckets:
            return _compare(self, model, inputs)
        with torch.no_grad():
            return Lesson(teacher_scores(self, model, inputs, turns), None)

    def _null_probe(self, model: Any, inputs: dict[str, Any], student: Tensor) -> None:
        """Score with empty notes: the teacher must be the student.

        Raises:
            EnvironmentFault: it is not, by far more than rounding: the model does not obey the
                mask of packed rows.
        """
        with torch.no_grad():
            scores = teacher_scores(self, model, inputs, _emptied(inputs["csd_rows"]))
        mask = inputs["csd_mask"] * inputs["completion_mask"]
        own = ((scores.noted - student) * mask).abs().max()
        gap = float(self.accelerator.gather(own).max())
        self._metrics["train"]["csd/null_gap"].append(gap)
        exact = student.dtype == self.model.dtype == torch.float32
        if exact and self.accelerator.mixed_precision == "no" and gap > NULL_TOLERANCE:
            raise EnvironmentFault(
                f"with an empty note the teacher differs from the student by {gap:.2g}",
                where=f"csd.teacher = {self._csd.teacher!r}",
                expected="0, but for rounding",
                mend="set csd.teacher = 'rows'; dropout must be off",
            )

    def _log_csd(self, term: Tensor, evidence: Evidence, scores: TeacherScores) -> None:
        """Log means over the noted tokens of all processes; what has no token has no mean."""
        sums = _sums(evidence, scores, self._csd.beta)
        total = dict(zip(sums, self.accelerator.gather(_row(sums)).sum(0).tolist(), strict=True))
        log = self._metrics["train"]
        log["csd/loss"].append(self.accelerator.gather(term.detach()).mean().item())
        noted, compared = total["noted_tokens"], total["compared"]
        log["csd/noted_tokens"].append(noted)
        if not noted:
            return
        means = ["gap_mean", "gap_positive", "gap_abs", "real_abs"]
        means += ["gate_mean"] if self._estimator.name == "sdar" else []
        for key in means:
            log[f"csd/{key}"].append(total[key] / noted)
        log["csd/debiased"].append(compared / noted)
        if compared:
            for key in ("placebo_abs", "difference"):
                log[f"csd/{key}"].append(total[key] / compared)


def _ratio(now: Tensor, then: Tensor | None) -> Tensor | None:
    """Return the importance ratio; None = these are the weights that sampled."""
    return None if then is None else (now - then).exp()


def _sums(evidence: Evidence, scores: TeacherScores, beta: float) -> dict[str, Tensor]:
    """Return what is summed over the noted tokens of one micro-batch."""
    keep = evidence.mask.bool()
    compared = keep & scores.has_placebo
    student, gap = evidence.student.detach(), evidence.gap
    real, placebo = (scores.noted - student).abs(), (scores.placebo - student).abs()

    def over(where: Tensor, values: Tensor) -> Tensor:
        return torch.where(where, values, torch.zeros_like(values)).sum()

    return {
        "noted_tokens": keep.sum().float(),
        "compared": compared.sum().float(),
        "gap_mean": over(keep, gap),
        "gap_positive": over(keep, (gap > 0).float()),
        "gap_abs": over(keep, gap.abs()),
        "gate_mean": over(keep, csd_gate(gap, beta)),
        "real_abs": over(keep, real),
        "placebo_abs": over(compared, placebo),
        "difference": over(compared, real - placebo),
    }


def _row(sums: Mapping[str, Tensor]) -> Tensor:
    return torch.stack([value.float() for value in sums.values()])[None]


def _emptied(turns: Sequence[Sequence[NotedTurn]]) -> list[list[NotedTurn]]:
    return [[replace(t, note_ids=(), placebo_ids=None) for t in row] for row in turns]


# -- scoring a micro-batch -------------------------------------------------------------------


def teacher_scores(
    trainer: CsdTrainer,
    model: Any,
    inputs: Mapping[str, Any],
    turns: Sequence[Sequence[NotedTurn]],
) -> TeacherScores:
    """Score the noted turns of one micro-batch with the current weights.

    Args:
        trainer: whose forward, temperature and batch size are used.
        model: the current weights, wrapped as the trainer has it.
        inputs: the trainer's micro-batch (`prompt_ids`, `prompt_mask`, ...).
        turns: noted turns per row.
    """
    shape, device = inputs["completion_ids"].shape, inputs["completion_ids"].device
    found = _branches(inputs, turns)
    if trainer._csd.teacher == "packed":
        pairs = _read(trainer, model, found)
        return scatter([b for b, _ in pairs], [s for _, s in pairs], shape, device)

    def score(ids: Tensor, mask: Tensor, keep: int) -> Tensor:
        logps, _, _ = GRPOTrainer._get_per_token_logps_and_entropies(
            trainer, model, ids.to(device), mask.to(device), keep
        )
        return logps

    batch = trainer._micro_rows
    own = torch.tensor(-(-len(found) // batch), device=device)
    rounds = int(trainer.accelerator.gather(own).max())
    pad_id = trainer._tokenizer.pad_token_id
    scores = score_rows(found, score, batch=batch, rounds=rounds, pad_id=pad_id)
    return scatter(found, scores, shape, device)


def _compare(trainer: CsdTrainer, model: Any, inputs: Mapping[str, Any]) -> Lesson:
    """Read whole distributions: the student's with gradient, then the teacher's without."""
    ids, turns = inputs["completion_ids"], inputs["csd_rows"]
    read = Chosen(trainer._csd.top_k)
    own = _read(trainer, model, _branches(inputs, _emptied(turns)), read)
    with torch.no_grad():
        taught = _read(trainer, model, _branches(inputs, turns), read)
    members = [b for b, _ in taught]
    scores = scatter(members, [values[:, 0] for _, values in taught], ids.shape, ids.device)
    if not own:
        return Lesson(scores, _no_buckets(ids.device))
    by_place = {(b.row, b.start, b.placebo): values[:, 1:] for b, values in taught}
    rows, columns, student, noted, placebo, compared = [], [], [], [], [], []
    for branch, values in own:
        size = len(branch.reply)
        real = by_place[branch.row, branch.start, False]
        other = by_place.get((branch.row, branch.start, True))
        rows.append(torch.full((size,), branch.row))
        columns.append(torch.arange(branch.start, branch.start + size))
        student.append(values[:, 1:])
        noted.append(real)
        placebo.append(real if other is None else other)
        compared.append(torch.full((size,), other is not None))
    joined = torch.cat(student)
    target = debiased(
        joined.detach(),
        torch.cat(noted),
        torch.cat(placebo),
        torch.cat(compared).to(ids.device),
    )
    where = torch.cat(rows).to(ids.device), torch.cat(columns).to(ids.device)
    return Lesson(scores, Buckets(joined, target, *where))


def _no_buckets(device: torch.device) -> Buckets:
    nothing = torch.zeros(0, 2, device=device)
    nowhere = torch.zeros(0, dtype=torch.long, device=device)
    return Buckets(nothing, nothing, nowhere, nowhere)


def _read(
    trainer: CsdTrainer, model: Any, found: Sequence[Branch], read: Reader | None = None
) -> list[tuple[Branch, Tensor]]:
    """Read branches from the model itself, in the teacher's form."""
    plain = trainer.accelerator.unwrap_model(model)
    if isinstance(plain, PeftModel):
        plain = plain.get_base_model()  # its adapters stay in place
    how: dict[str, Any] = {
        "temperature": trainer.temperature,
        "batch": trainer._micro_rows,
        "pad_id": trainer._tokenizer.pad_token_id,
        **({} if read is None else {"read": read}),
    }
    with trainer.accelerator.autocast():
        if trainer._csd.teacher == "packed":
            return score_packed(plain, pack(found), **how)
        return score_apart(plain, found, **how)


def _branches(inputs: Mapping[str, Any], turns: Sequence[Sequence[NotedTurn]]) -> list[Branch]:
    return branches(
        _unpadded(inputs["prompt_ids"], inputs["prompt_mask"]),
        _unpadded(inputs["completion_ids"], inputs["completion_mask"]),
        turns,
    )


def _unpadded(ids: Tensor, mask: Tensor) -> list[list[int]]:
    return [row[keep.bool()].tolist() for row, keep in zip(ids, mask, strict=True)]
