"""Pure torch: the losses of coached self-distillation (CSD), one small interface for all of them.

An `Estimator` makes a loss per token from the `Evidence` of a micro-batch. `sdar` is the method;
the others are baselines and experimental. Token forms look at the sampled tokens only, bucket
forms compare whole distributions. Shapes: B rows, C completion tokens; M noted tokens, each with
K chosen tokens and one bucket for all the rest. Nothing here knows a trainer, and nothing here
reads or writes randomness.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mimesim.errors import CallerError, UnknownNameError
from mimesim.registry import closest


@dataclass(frozen=True, slots=True)
class Buckets:
    """What student and teacher expect at the noted tokens, as log-probs (M, K + 1).

    Attributes:
        student: without note, with gradient.
        teacher: the distribution to be learnt, without gradient.
        rows, columns: (M,) where the tokens stand in (B, C).
    """

    student: Tensor
    teacher: Tensor
    rows: Tensor
    columns: Tensor


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one micro-batch knows about its noted tokens.

    Attributes:
        student: (B, C) log-probs of the sampled tokens without note, with gradient.
        gap: (B, C) log-prob under the note minus the reference log-prob, nats per token.
        mask: (B, C), 1 on sampled tokens of noted turns; what lies outside has no effect, NaN
            included.
        ratio: (B, C) probability of the sampled token now over that at sampling time.
        buckets: what bucket forms need; None = not computed.
    """

    student: Tensor
    gap: Tensor
    mask: Tensor
    ratio: Tensor | None = None
    buckets: Buckets | None = None


@dataclass(frozen=True, slots=True)
class Tuning:
    """Numbers of the estimators; each says which of them it reads.

    Attributes:
        beta: sharpness of the gate (sdar); 0 = constant gate 0.5.
        mixture: weight of the teacher in the mean of both distributions (sdpo, opsd), inside (0, 1).
        entry_cap: most that one token of the vocabulary adds to the loss (opsd).
        ratio_cap: largest importance ratio (sdpo).
    """

    beta: float = 5.0
    mixture: float = 0.5
    entry_cap: float = 0.05
    ratio_cap: float = 2.0


@dataclass(frozen=True, slots=True)
class Estimator:
    """One way to make a loss of what the teacher knows.

    Attributes:
        name: as in `csd.estimator`.
        tokens: loss of every token (B, C); only those inside the mask are looked at.
        buckets: whether it compares distributions, which costs a forward of its own.
        experimental: a baseline: not the published method, not tuned here.
    """

    name: str
    tokens: Callable[[Evidence, Tuning], Tensor]
    buckets: bool = False
    experimental: bool = True

    @property
    def label(self) -> str:
        """Return the name as lists and logs show it."""
        return f"{self.name} (experimental)" if self.experimental else self.name

    def loss(self, evidence: Evidence, tuning: Tuning, norm: Tensor) -> Tensor:
        """Return the sum over noted tokens divided by `norm`, a connected 0 where there are none.

        Args:
            evidence: see there.
            tuning: see there.
            norm: scalar > 0, the token count to divide by (the trainer's window convention).
        """
        keep = evidence.mask.bool()
        known = torch.where(keep, evidence.gap.detach(), torch.zeros_like(evidence.gap))
        tokens = self.tokens(replace(evidence, gap=known), tuning)
        return torch.where(keep, tokens, torch.zeros_like(tokens)).sum() / norm


def csd_gate(gap: Tensor, beta: float) -> Tensor:
    """Return `sigmoid(beta * gap)` without gradient, in (0, 1).

    Args:
        gap: (B, C), log-prob under the note minus the reference log-prob, nats per token.
        beta: sharpness; 0 gives the constant gate 0.5.
    """
    return torch.sigmoid(beta * gap.detach())


def csd_loss(student: Tensor, gap: Tensor, mask: Tensor, *, beta: float, norm: Tensor) -> Tensor:
    """Return `-sum(mask * gate * student) / norm`: the estimator `sdar` by itself."""
    return ESTIMATORS["sdar"].loss(Evidence(student, gap, mask), Tuning(beta), norm)


# -- token forms -----------------------------------------------------------------------------


def _sdar(evidence: Evidence, tuning: Tuning) -> Tensor:
    """Attenuate: likelihood, weighted by how much the teacher likes the token."""
    return -(csd_gate(evidence.gap, tuning.beta) * evidence.student)


def _ref(evidence: Evidence, tuning: Tuning) -> Tensor:
    """Weigh by the raw gap: signed and without bound, so disliked tokens are pushed down."""
    return -(evidence.gap * evidence.student)


def _k3(evidence: Evidence, tuning: Tuning) -> Tensor:
    """Take `e^x - 1 - x` of the log-ratio x of target and student, a sample of their divergence."""
    apart = evidence.student.detach() + evidence.gap - evidence.student
    return torch.expm1(apart) - apart


# -- bucket forms ----------------------------------------------------------------------------


def _distill(evidence: Evidence, tuning: Tuning) -> Tensor:
    """Take the reverse divergence KL(student | teacher) over the buckets."""
    given = _given(evidence)
    return _placed((given.student.exp() * (given.student - given.teacher)).sum(-1), evidence)


def _sdpo(evidence: Evidence, tuning: Tuning) -> Tensor:
    """Take the Jensen-Shannon divergence, weighted by the capped importance ratio."""
    tokens = _placed(_jensen_shannon(_given(evidence), tuning.mixture).sum(-1), evidence)
    if evidence.ratio is None:
        return tokens
    return tokens * evidence.ratio.detach().clamp(max=tuning.ratio_cap)


def _opsd(evidence: Evidence, tuning: Tuning) -> Tensor:
    """Take the Jensen-Shannon divergence with each token of the vocabulary capped."""
    entries = _jensen_shannon(_given(evidence), tuning.mixture).clamp(max=tuning.entry_cap)
    return _placed(entries.sum(-1), evidence)


def _jensen_shannon(given: Buckets, mixture: float) -> Tensor:
    """Return the (M, K + 1) parts of `b KL(p | m) + (1 - b) KL(q | m)`, m = b p + (1 - b) q.

    p is the teacher, q the student.
    """
    teacher, student = given.teacher, given.student
    mean = torch.logaddexp(teacher + math.log(mixture), student + math.log1p(-mixture))
    taught = mixture * teacher.exp() * (teacher - mean)
    own = (1 - mixture) * student.exp() * (student - mean)
    return taught + own


def _given(evidence: Evidence) -> Buckets:
    if evidence.buckets is None:
        raise CallerError("this estimator compares distributions, and none were computed")
    return evidence.buckets


def _placed(values: Tensor, evidence: Evidence) -> Tensor:
    """Return (B, C) with the values of the noted tokens in their places, connected to the graph."""
    given = _given(evidence)
    nowhere = torch.zeros_like(evidence.mask, dtype=torch.bool)
    empty = torch.where(nowhere, evidence.student, torch.zeros_like(evidence.student))
    return empty.index_put((given.rows, given.columns), values)


def debiased(student: Tensor, noted: Tensor, placebo: Tensor, has_placebo: Tensor) -> Tensor:
    """Return the teacher's log-probs over buckets, the effect of any note at all taken off.

    Args:
        student: (M, K + 1) log-probs without note, without gradient.
        noted: (M, K + 1) log-probs under the note.
        placebo: (M, K + 1) log-probs under an unrelated note.
        has_placebo: (M,); where it is False the teacher is taken as it is.
    """
    target = (student + noted - placebo).log_softmax(-1)
    return torch.where(has_placebo[:, None], target, noted)


ESTIMATORS = {
    estimator.name: estimator
    for estimator in (
        Estimator("sdar", _sdar, experimental=False),
        Estimator("ref", _ref),
        Estimator("k3", _k3),
        Estimator("distill", _distill, buckets=True),
        Estimator("sdpo", _sdpo, buckets=True),
        Estimator("opsd", _opsd, buckets=True),
    )
}
"""All estimators by name."""


def estimator_of(name: str) -> Estimator:
    """Return the estimator `name`.

    Raises:
        UnknownNameError: there is none; the list says which are experimental.
    """
    if name not in ESTIMATORS:
        raise UnknownNameError(
            f"unknown estimator {name!r}{closest(name, list(ESTIMATORS))}",
            where="csd.estimator",
            expected="one of " + ", ".join(known.label for known in ESTIMATORS.values()),
        )
    return ESTIMATORS[name]


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of `values` where `mask` is set, 0 if nowhere; masked NaN has no effect."""
    keep = mask.bool()
    total = torch.where(keep, values, torch.zeros_like(values)).sum()
    return total / keep.sum().clamp(min=1)
