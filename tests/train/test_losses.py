"""The gate and the CSD loss, against values worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from mimesim.errors import CallerError, UnknownNameError
from mimesim.train.losses import (
    ESTIMATORS,
    Buckets,
    Evidence,
    Tuning,
    csd_gate,
    csd_loss,
    debiased,
    estimator_of,
    masked_mean,
)


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


@pytest.mark.parametrize("hidden", [40.0, math.nan, math.inf])
def test_masked_mean_ignores_what_is_masked(hidden: float) -> None:
    """C-RL-02: what is masked reaches neither the mean nor its gradient."""
    values = torch.tensor([[2.0, hidden], [4.0, -9.0]], requires_grad=True)
    mask = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    mean = masked_mean(values, mask)
    mean.backward()
    assert mean.item() == 3.0
    assert values.grad is not None
    assert values.grad.tolist() == [[0.5, 0.0], [0.5, 0.0]]
    assert masked_mean(values, torch.zeros(2, 2)).item() == 0.0


# -- the estimators --------------------------------------------------------------------------

TOKEN_FORMS = ["sdar", "ref", "k3"]
BUCKET_FORMS = ["distill", "sdpo", "opsd"]
STUDENT = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]]
TEACHER = [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]
ONE = torch.tensor(1.0)


def evidence(
    student: torch.Tensor, gap: torch.Tensor, mask: torch.Tensor, *, buckets: bool
) -> Evidence:
    """Evidence whose noted tokens are those of row 0, columns 1 and 3."""
    given = None
    if buckets:
        own = torch.tensor(STUDENT, dtype=student.dtype).log().requires_grad_()
        taught = torch.tensor(TEACHER, dtype=student.dtype).log()
        given = Buckets(own, taught, torch.tensor([0, 0]), torch.tensor([1, 3]))
    return Evidence(student, gap, mask, buckets=given)


def usual(name: str, *, dtype: torch.dtype = torch.float64) -> Evidence:
    student = torch.tensor([[-1.0, -2.0, -0.5, -4.0]], dtype=dtype, requires_grad=True)
    gap = torch.tensor([[9.0, 0.329, float("nan"), -0.21]], dtype=dtype)
    mask = torch.tensor([[0.0, 1.0, 0.0, 1.0]], dtype=dtype)
    return evidence(student, gap, mask, buckets=ESTIMATORS[name].buckets)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sdar", 0.838214 * 2 + 0.259225 * 4),
        ("ref", 0.329 * 2 - 0.21 * 4),
        ("k3", (math.exp(0.329) - 1 - 0.329) + (math.exp(-0.21) - 1 + 0.21)),
        (
            "distill",
            (0.5 * math.log(5 / 7) + 0.3 * math.log(3 / 2) + 0.2 * math.log(2))
            + (0.6 * math.log(3) + 0.3 * math.log(3 / 7)),
        ),
        ("sdpo", 0.021901 + 0.093466),
        ("opsd", 0.021901 + 0.05 + 0.041141),
    ],
)
def test_golden_values(name: str, value: float) -> None:
    """Worked out by hand; a gap or a token outside the mask has no part in it."""
    loss = ESTIMATORS[name].loss(usual(name), Tuning(), ONE)
    assert loss.item() == pytest.approx(value, abs=2e-6)
    halved = ESTIMATORS[name].loss(usual(name), Tuning(), 2 * ONE)
    assert halved.item() == pytest.approx(value / 2, abs=2e-6)


def js(p: list[float], q: list[float], b: float) -> list[float]:
    """The parts of `b KL(p | m) + (1 - b) KL(q | m)`."""
    mean = [b * x + (1 - b) * y for x, y in zip(p, q, strict=True)]
    return [
        b * x * math.log(x / m) + (1 - b) * y * math.log(y / m)
        for x, y, m in zip(p, q, mean, strict=True)
    ]


@pytest.mark.parametrize("mixture", [0.2, 0.5, 0.9])
def test_the_mixture_weighs_the_teacher(mixture: float) -> None:
    parts = [js(p, q, mixture) for p, q in zip(TEACHER, STUDENT, strict=True)]
    tuning = Tuning(mixture=mixture, entry_cap=0.01)
    whole = ESTIMATORS["sdpo"].loss(usual("sdpo"), tuning, ONE)
    assert whole.item() == pytest.approx(sum(map(sum, parts)))
    capped = ESTIMATORS["opsd"].loss(usual("opsd"), tuning, ONE)
    assert capped.item() == pytest.approx(sum(min(x, 0.01) for row in parts for x in row))
    assert capped < whole


@pytest.mark.parametrize(
    ("name", "gradient"),
    [
        ("sdar", [-0.838214, -0.259225]),
        ("ref", [-0.329, 0.21]),
        ("k3", [1 - math.exp(0.329), 1 - math.exp(-0.21)]),
    ],
)
def test_golden_gradients_of_token_forms(name: str, gradient: list[float]) -> None:
    """Only `sdar` never pushes a token down; outside the mask the gradient is 0."""
    given = usual(name)
    ESTIMATORS[name].loss(given, Tuning(), ONE).backward()
    assert given.student.grad is not None
    assert given.student.grad.tolist()[0] == pytest.approx(
        [0, gradient[0], 0, gradient[1]], abs=2e-6
    )


def test_the_k3_form_is_zero_with_its_gradient_where_teacher_and_student_agree() -> None:
    given = replace(usual("k3"), gap=torch.zeros(1, 4, dtype=torch.float64))
    loss = ESTIMATORS["k3"].loss(given, Tuning(), ONE)
    loss.backward()
    assert loss.item() == 0
    assert given.student.grad is not None
    assert given.student.grad.abs().max() == 0


@pytest.mark.parametrize("name", BUCKET_FORMS)
def test_gradients_of_bucket_forms_are_those_of_finite_differences(name: str) -> None:
    base = usual(name)
    assert base.buckets is not None
    buckets = base.buckets

    def loss(logits: torch.Tensor) -> torch.Tensor:
        own = replace(buckets, student=logits.log_softmax(-1))
        return ESTIMATORS[name].loss(replace(base, buckets=own), Tuning(entry_cap=0.04), ONE)

    logits = torch.tensor(STUDENT, dtype=torch.float64).log().requires_grad_()
    assert torch.autograd.gradcheck(loss, (logits,))
    (gradient,) = torch.autograd.grad(loss(logits), logits)
    assert gradient.abs().max() > 1e-3
    same = replace(buckets, teacher=logits.detach().log_softmax(-1))
    equal = ESTIMATORS[name].loss(
        replace(base, buckets=replace(same, student=logits.log_softmax(-1))), Tuning(), ONE
    )
    (none,) = torch.autograd.grad(equal, logits)
    assert equal.item() == pytest.approx(0, abs=1e-12)
    assert none.abs().max() < 1e-12


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_teacher_gets_no_gradient(name: str) -> None:
    given = usual(name)
    gap = given.gap.nan_to_num().requires_grad_()
    ESTIMATORS[name].loss(replace(given, gap=gap), Tuning(), ONE).backward()
    assert gap.grad is None


@pytest.mark.parametrize("name", ESTIMATORS)
def test_nothing_noted_is_a_connected_zero(name: str) -> None:
    student = torch.tensor([[-1.0, -2.0]], requires_grad=True)
    nothing = torch.full((1, 2), float("nan"))
    empty = Buckets(torch.zeros(0, 3), torch.zeros(0, 3), *(2 * [torch.zeros(0, dtype=torch.long)]))
    given = Evidence(student, nothing, torch.zeros(1, 2), nothing, empty)
    loss = ESTIMATORS[name].loss(given, Tuning(), ONE)
    loss.backward()
    assert loss.item() == 0.0
    assert student.grad is not None
    assert student.grad.tolist() == [[0.0, 0.0]]


def test_the_importance_ratio_is_capped() -> None:
    given = usual("sdpo")
    ratio = torch.tensor([[1.0, 0.5, 1.0, 7.0]], dtype=torch.float64)
    loss = ESTIMATORS["sdpo"].loss(replace(given, ratio=ratio), Tuning(), ONE)
    assert loss.item() == pytest.approx(0.021901 * 0.5 + 0.093466 * 2, abs=2e-6)
    plain = ESTIMATORS["distill"].loss(replace(usual("distill"), ratio=ratio), Tuning(), ONE)
    assert plain.item() == pytest.approx(
        ESTIMATORS["distill"].loss(usual("distill"), Tuning(), ONE).item()
    )


def test_a_note_that_does_what_any_note_does_teaches_nothing() -> None:
    """The target is the student's own distribution, moved by noted minus placebo."""
    student, noted, placebo = (
        torch.tensor([row, row], dtype=torch.float64).log()
        for row in ([0.5, 0.3, 0.2], [0.7, 0.2, 0.1], [0.6, 0.2, 0.2])
    )
    same = debiased(student, noted, noted, torch.tensor([True, True]))
    assert torch.allclose(same, student)
    target = debiased(student, noted, placebo, torch.tensor([True, False])).exp()
    moved = [0.5 * 0.7 / 0.6, 0.3, 0.2 * 0.5]
    assert target[0].tolist() == pytest.approx([x / sum(moved) for x in moved])
    assert target[1].tolist() == pytest.approx([0.7, 0.2, 0.1])


def test_sdar_is_csd_loss_bit_for_bit() -> None:
    given = usual("sdar", dtype=torch.float32)
    norm = torch.tensor(3.0)
    loss = csd_loss(given.student, given.gap, given.mask, beta=5.0, norm=norm)
    assert torch.equal(loss, ESTIMATORS["sdar"].loss(given, Tuning(beta=5.0), norm))


def test_a_bucket_form_without_buckets_is_a_bug() -> None:
    with pytest.raises(CallerError, match="compares distributions"):
        ESTIMATORS["distill"].loss(usual("sdar"), Tuning(), ONE)


def test_all_but_the_method_are_marked_experimental() -> None:
    assert estimator_of("sdar").label == "sdar"
    assert [e.name for e in ESTIMATORS.values() if not e.experimental] == ["sdar"]
    assert [n for n, e in ESTIMATORS.items() if e.buckets] == BUCKET_FORMS
    with pytest.raises(UnknownNameError) as caught:
        estimator_of("sdarr")
    assert "did you mean 'sdar'" in str(caught.value)
    assert "one of sdar, ref (experimental), k3 (experimental)" in str(caught.value)
