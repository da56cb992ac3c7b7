"""The gate and the CSD loss, against values worked out by hand."""

from __future__ import annotations

import pytest
import torch

from mimesim.train.losses import csd_gate, csd_loss, masked_mean


@pytest.mark.parametrize(
    ("gap", "gate"),
    [(-0.35, 0.1480), (-0.21, 0.2592), (0.0, 0.5), (0.142, 0.6704), (0.329, 0.8382), (1.0, 0.9933)],
)
def test_gate_vectors(gap: float, gate: float) -> None:
    """Vectors of the method's section 16, beta 5."""
    assert csd_gate(torch.tensor([gap]), 5.0).item() == pytest.approx(gate, abs=5e-5)


def test_gate_is_constant_at_beta_zero() -> None:
    assert csd_gate(torch.tensor([-3.0, 0.0, 9.0]), 0.0).tolist() == [0.5, 0.5, 0.5]


def test_loss_by_hand() -> None:
    student = torch.tensor([[-1.0, -2.0, -4.0]], requires_grad=True)
    gap = torch.tensor([[0.0, 1.0, 7.0]])
    mask = torch.tensor([[1.0, 1.0, 0.0]])
    loss = csd_loss(student, gap, mask, beta=5.0, norm=torch.tensor(2.0))
    gate = torch.sigmoid(torch.tensor(5.0)).item()
    assert loss.item() == pytest.approx((0.5 * 1 + gate * 2) / 2)
    loss.backward()
    assert student.grad is not None
    assert student.grad.tolist()[0] == pytest.approx([-0.25, -gate / 2, 0.0])


def test_gate_carries_no_gradient() -> None:
    student = torch.tensor([[-1.0]], requires_grad=True)
    loss = csd_loss(student, student * 3, torch.ones(1, 1), beta=5.0, norm=torch.tensor(1.0))
    loss.backward()
    assert student.grad is not None
    assert student.grad.item() == pytest.approx(-torch.sigmoid(torch.tensor(-15.0)).item())


def test_empty_mask_is_a_connected_zero() -> None:
    student = torch.tensor([[-1.0, -2.0]], requires_grad=True)
    nothing = torch.full((1, 2), float("nan"))
    loss = csd_loss(student, nothing, torch.zeros(1, 2), beta=5.0, norm=torch.tensor(1.0))
    loss.backward()
    assert loss.item() == 0.0
    assert student.grad is not None
    assert student.grad.tolist() == [[0.0, 0.0]]


def test_masked_mean_ignores_what_is_masked() -> None:
    values = torch.tensor([[2.0, float("nan")], [4.0, -9.0]])
    mask = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert masked_mean(values, mask).item() == 3.0
    assert masked_mean(values, torch.zeros(2, 2)).item() == 0.0
