"""Pure torch: the CSD term in the shapes of verl's distillation losses.

B rows, T response tokens. verl averages over all response tokens, CSD over the noted ones only, so
what is returned is scaled up by their ratio: the mean that verl takes is then the mean over noted
tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from mimesim.errors import CallerError
from mimesim.train.losses import ESTIMATORS, Evidence, Tuning, masked_mean

TEACHER = "cached"
"""How results are labelled: the teacher has the weights of sampling time, not the current ones."""


class Noted(NamedTuple):
    """What a teacher said of the response tokens, each (B, T)."""

    noted: Tensor
    placebo: Tensor
    kind: Tensor
    """0 = not scored, 1 = under a note, 2 = under a note and under a placebo."""


def unpacked(columns: Tensor) -> Noted:
    """Split the (B, T, 3) columns that `rows.teacher_columns` wrote.

    Raises:
        CallerError: they have another width; verl's own teacher writes one column.
    """
    if columns.shape[-1] != 3:
        raise CallerError(
            f"teacher_logprobs have {columns.shape[-1]} columns and not 3: they do not come from "
            "the noted teacher"
        )
    return Noted(*columns.unbind(-1))


def csd_losses(
    student: Tensor, teacher: Noted, mask: Tensor, *, beta: float
) -> tuple[Tensor, dict[str, float]]:
    """Return the losses (B, T), 0 outside noted turns, and what is logged of them.

    Response tokens and noted ones are counted in the rows given: parts of a batch add up to the
    whole only where they have the same share of noted tokens.

    Args:
        student: (B, T) log-probs of the sampled tokens without note, with gradient.
        teacher: see there; where no placebo was scored the gap is taken to the student.
        mask: (B, T), 1 on sampled tokens of the response.
        beta: sharpness of the gate.
    """
    keep = mask.bool() & (teacher.kind > 0)
    reference = torch.where(teacher.kind > 1, teacher.placebo, student.detach())
    gap = torch.where(keep, teacher.noted.detach() - reference, torch.zeros_like(student))
    tokens = ESTIMATORS["sdar"].tokens(Evidence(student, gap, keep), Tuning(beta))
    response, noted = float(mask.bool().sum()), float(keep.sum())
    scale = response / noted if noted else 0.0
    losses = torch.where(keep, tokens * scale, torch.zeros_like(tokens))
    logged = {
        "csd/gap": float(masked_mean(gap, keep)),
        "csd/noted_share": noted / response if response else 0.0,
        "csd/scale": scale,
    }
    return losses, logged
