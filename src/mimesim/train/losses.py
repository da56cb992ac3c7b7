"""Pure torch: the gate and the loss of coached self-distillation (CSD).

Paper: section on CSD. Shapes: B rows, C completion tokens. Nothing here knows a
trainer, and nothing here reads or writes randomness.
"""

from __future__ import annotations

import torch
from torch import Tensor


def csd_gate(gap: Tensor, beta: float) -> Tensor:
    """Return `sigmoid(beta * gap)` without gradient, in (0, 1).

    Args:
        gap: (B, C), log-prob under the note minus the reference log-prob, nats per token.
        beta: sharpness; 0 gives the constant gate 0.5.
    """
    return torch.sigmoid(beta * gap.detach())


def csd_loss(student: Tensor, gap: Tensor, mask: Tensor, *, beta: float, norm: Tensor) -> Tensor:
    """Return `-sum(mask * gate * student) / norm`, a graph-connected 0 for an empty mask.

    Args:
        student: (B, C) log-probs of the sampled tokens without note, with gradient.
        gap: (B, C) as in `csd_gate`; values outside the mask have no effect, NaN included.
        mask: (B, C), 1 on sampled tokens of noted turns.
        beta: gate sharpness.
        norm: scalar > 0, the token count to divide by (the trainer's window convention).
    """
    keep = mask.bool()
    gate = torch.where(keep, csd_gate(gap, beta), torch.zeros_like(gap))
    weighted = torch.where(keep, gate * student, torch.zeros_like(student))
    return -weighted.sum() / norm


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of `values` where `mask` is set, 0 if nowhere; masked NaN has no effect."""
    keep = mask.bool()
    total = torch.where(keep, values, torch.zeros_like(values)).sum()
    return total / keep.sum().clamp(min=1)
