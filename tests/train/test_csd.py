"""CSD on the real TRL trainer: every estimator against its loss by hand, LoRA, logs, bad surroundings.

What holds for the default estimator alone stands in `test_grpo`; tolerances are those of design
ruling 5, in fp32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig

from mimesim.errors import ConfigError, EnvironmentFault, UnknownNameError
from mimesim.train.credit import CreditConfig
from mimesim.train.csd import CsdConfig, check_csd
from mimesim.train.grpo import Sample
from mimesim.train.losses import ESTIMATORS
from tests.support.credits import credit_of
from tests.support.trainers import (
    TOKENS,
    ByHand,
    Fixed,
    Setting,
    Turn,
    largest,
    make_samples,
    policy,
    rows_of,
    spread,
    train,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # TRL and accelerate warn of their own affairs
K, CAP, ALPHA = 5, 2e-4, 3.0
"""Few tokens, a cap that bites on a random model, and a weight that makes every form visible."""
LORA = LoraConfig(
    r=4,
    lora_alpha=8,
    lora_dropout=0.0,
    target_modules=["q_proj", "v_proj", "down_proj"],
    task_type="CAUSAL_LM",
)


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """Multi-turn rows with unequal numbers of noted turns, sampled a little off the policy."""
    return make_samples(policy(), 5, noise=0.4)


def config(name: str, **changed: Any) -> CsdConfig:
    return replace(CsdConfig(ALPHA, estimator=name, top_k=K, entry_cap=CAP), **changed)


# -- the losses by hand ---------------------------------------------------------------------


def buckets(turn: Turn) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities (n, K + 1) of the student, with gradient, and of the target."""
    best = turn.student.detach().topk(K, dim=1).indices

    def cut(rows: torch.Tensor) -> torch.Tensor:
        chosen = rows.exp().gather(1, best)
        return torch.cat((chosen, 1 - chosen.sum(1, keepdim=True)), 1)

    own, taught = cut(turn.student), cut(turn.noted).detach()
    if turn.placebo is not None:
        moved = own.detach() * taught / cut(turn.placebo).detach()
        taught = moved / moved.sum(1, keepdim=True)
    return own, taught


def jensen_shannon(turn: Turn) -> torch.Tensor:
    own, taught = buckets(turn)
    mean = (own + taught) / 2
    return (taught * (taught / mean).log() + own * (own / mean).log()) / 2


def distill(turn: Turn) -> torch.Tensor:
    own, taught = buckets(turn)
    return (own * (own / taught).log()).sum()


def k3(turn: Turn) -> torch.Tensor:
    own = turn.sampled(turn.student)
    apart = own.detach() + turn.gap - own
    return (apart.exp() - 1 - apart).sum()


FORMS: dict[str, Callable[[Turn], torch.Tensor]] = {
    "sdar": lambda t: -(torch.sigmoid(5 * t.gap) * t.sampled(t.student)).sum(),
    "ref": lambda t: -(t.gap * t.sampled(t.student)).sum(),
    "k3": k3,
    "distill": distill,
    "sdpo": lambda t: jensen_shannon(t).sum(),
    "opsd": lambda t: jensen_shannon(t).clamp(max=CAP).sum(),
}


def by_hand(samples: list[Sample], name: str, **how: Any) -> ByHand:
    advantages = credit_of(samples)
    return ByHand(lambda s: advantages[s.tokens], alpha=ALPHA, form=FORMS[name], **how)


def test_every_estimator_is_tested_here() -> None:
    assert FORMS.keys() == ESTIMATORS.keys()


@pytest.mark.parametrize("teacher", ["packed", "rows"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_loss_is_grpo_plus_alpha_times_the_estimator(
    tmp_path: Path, samples: list[Sample], name: str, teacher: str
) -> None:
    """Loss and gradient, on-policy, in both forms of the teacher."""
    hand = by_hand(samples, name, off_policy=False)
    run = train(tmp_path, Fixed([samples]), Setting(config(name, teacher=teacher)))
    model = policy()
    loss = hand(model, run.seen[0].inputs, samples)
    assert run.seen[0].loss == pytest.approx(loss.item(), abs=1e-5)
    names = [n for n, _ in model.named_parameters()]
    gradients = torch.autograd.grad(loss, [p for _, p in model.named_parameters()])
    by_name = dict(zip(names, gradients, strict=True))
    assert largest(run.watcher.gradients[0], by_name) <= 1e-5
    assert run.logged("csd/null_gap")[0] <= 2e-6
    plain = train(tmp_path / "plain", Fixed([samples]), Setting())
    assert largest(run.watcher.gradients[0], plain.watcher.gradients[0]) > 1e-4


def test_the_importance_ratio_of_sdpo_is_that_of_the_sampler(
    tmp_path: Path, samples: list[Sample]
) -> None:
    """Two updates of a batch: the log-probs at sampling time are known, and differ."""
    how = {"max_steps": 2, "per_device_train_batch_size": 4, "steps_per_generation": 2}
    run = train(tmp_path, Fixed([samples]), Setting(config("sdpo")), **how)
    (first, _) = run.seen
    assert "old_per_token_logps" in first.inputs
    model, total = policy(), 0.0
    for _, sample in rows_of(first.inputs, samples):
        assert sample.tokens is not None
        for turn in sample.noted:
            before = [*sample.tokens.prompt_ids, *sample.tokens.completion_ids[: turn.start]]
            cut, reply = (
                len(before) - turn.header,
                sample.tokens.completion_ids[turn.start : turn.end],
            )
            rows = [
                None
                if n is None
                else spread(model, [*before[:cut], *n, *before[cut:]], reply).detach()
                for n in ((), turn.note_ids, turn.placebo_ids)
            ]
            one = Turn(rows[0], rows[1], rows[2], reply, before)
            then = torch.tensor(sample.tokens.logprobs[turn.start : turn.end])
            ratio = (one.sampled(one.student) - then).exp().clamp(max=2.0)
            total += float((jensen_shannon(one).sum(1) * ratio).sum())
    noted = sum(t.end - t.start for s in samples for t in s.noted)
    assert first.inputs["csd_num_items"] == noted
    assert run.logged("csd/loss")[0] == pytest.approx(total * 2 / noted, abs=5e-6)


# -- what must not change -------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_alpha_zero_is_plain_grpo_bit_for_bit(
    tmp_path: Path, samples: list[Sample], name: str
) -> None:
    how = {"max_steps": 2, "optim": "adamw_torch", "learning_rate": 1e-3}
    plain = train(tmp_path / "a", Fixed([samples]), Setting(), **how)
    zero = train(tmp_path / "b", Fixed([samples]), Setting(config(name, alpha=0.0)), **how)
    for key, value in plain.parameters.items():
        assert torch.equal(value, zero.parameters[key]), key
    assert not [k for entry in zero.trainer.state.log_history for k in entry if "csd" in k]


@pytest.mark.parametrize("name", ["k3", "distill"])
@pytest.mark.parametrize(("rows", "accumulated"), [(4, 2), (2, 4)])
def test_accumulation_does_not_matter(
    tmp_path: Path, samples: list[Sample], name: str, rows: int, accumulated: int
) -> None:
    """Micro-batches with unequal numbers of noted tokens, some of them perhaps with none."""
    whole = train(tmp_path / "a", Fixed([samples]), Setting(config(name)))
    parts = train(
        tmp_path / "b",
        Fixed([samples]),
        Setting(config(name), micro_rows=3),
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=accumulated,
    )
    assert len(parts.seen) == accumulated
    assert largest(parts.watcher.gradients[0], whole.watcher.gradients[0]) <= 2e-6


@pytest.mark.parametrize("name", ESTIMATORS)
def test_nothing_noted_leaves_grpo(tmp_path: Path, samples: list[Sample], name: str) -> None:
    """One row alone is noted, so that most micro-batches have nothing to teach; then none at all."""
    bare = [replace(s, noted=()) for s in samples]
    csd = train(tmp_path / "a", Fixed([bare]), Setting(config(name)))
    plain = train(tmp_path / "b", Fixed([bare]), Setting())
    assert csd.seen[0].loss == plain.seen[0].loss
    assert largest(csd.watcher.gradients[0], plain.watcher.gradients[0]) == 0
    assert csd.logged("csd/loss") == csd.logged("csd/noted_tokens") == [0.0]
    assert csd.logged("csd/gap_mean") == [], "what has no token has no mean"
    noted = next(i for i, s in enumerate(samples) if s.noted)
    one = [*bare[:noted], samples[noted], *bare[noted + 1 :]]
    how = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 4}
    parts = train(tmp_path / "c", Fixed([one]), Setting(config(name)), **how)
    whole = train(tmp_path / "d", Fixed([one]), Setting(config(name)))
    assert largest(parts.watcher.gradients[0], whole.watcher.gradients[0]) <= 2e-6
    assert parts.logged("csd/gap_mean") == pytest.approx(whole.logged("csd/gap_mean"), abs=1e-6)


def test_token_advantages_and_csd_do_not_meet(tmp_path: Path, samples: list[Sample]) -> None:
    """(B, C) advantages of turn credit are the same with and without CSD, and the loss adds up."""
    credit = CreditConfig(turn="r2g", score="r2g")
    advantages = credit_of(samples, credit)
    hand = ByHand(lambda s: advantages[s.tokens], alpha=ALPHA, off_policy=False)
    run = train(tmp_path / "a", Fixed([samples]), Setting(config("sdar"), credit, hand=hand))
    plain = train(tmp_path / "b", Fixed([samples]), Setting(None, credit))
    one, two = run.seen[0].inputs, plain.seen[0].inputs
    assert one["advantages"].shape == one["completion_ids"].shape
    assert torch.equal(one["advantages"], two["advantages"])
    assert len({float(a) for a in one["advantages"][0] if a}) >= 1
    assert any(len({round(float(a), 6) for a in row if a}) > 1 for row in one["advantages"])
    assert run.seen[0].loss == pytest.approx(run.seen[0].by_hand, abs=1e-5)


def test_a_note_inside_the_last_message_is_scored_there(
    tmp_path: Path, samples: list[Sample]
) -> None:
    """An inline note stands before the end of the message, further from the reply."""
    inner = [
        replace(s, noted=tuple(replace(t, header=t.header + 1) for t in s.noted)) for s in samples
    ]
    hand = by_hand(inner, "sdar", off_policy=False)
    run = train(tmp_path, Fixed([inner]), Setting(config("sdar"), hand=hand))
    assert run.seen[0].loss == pytest.approx(run.seen[0].by_hand, abs=1e-5)
    assert run.logged("csd/null_gap")[0] <= 2e-6
    usual = train(tmp_path / "b", Fixed([samples]), Setting(config("sdar")))
    assert abs(run.logged("csd/gap_mean")[0] - usual.logged("csd/gap_mean")[0]) > 1e-5


@pytest.mark.parametrize("name", ["sdar", "distill"])
def test_csd_alone_moves_the_student_towards_the_noted_teacher(tmp_path: Path, name: str) -> None:
    """All rewards are equal, so GRPO is silent; what a loss wants to shrink does shrink."""
    flat = [replace(s, rewards=(0.0,) * len(s.rewards)) for s in make_samples(policy(), 5)]
    run = train(tmp_path, Fixed([flat]), Setting(config(name)), max_steps=8, learning_rate=0.3)
    assert run.logged("csd/loss")[-1] < 0.98 * run.logged("csd/loss")[0]
    still = train(tmp_path / "b", Fixed([flat]), Setting(), max_steps=8, learning_rate=0.3)
    assert largest(still.parameters, dict(policy().named_parameters())) == 0


# -- LoRA -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sdar", "distill"])
@pytest.mark.parametrize("teacher", ["packed", "rows"])
def test_the_teacher_has_the_adapters_of_the_student(
    tmp_path: Path, samples: list[Sample], name: str, teacher: str
) -> None:
    """Null gap 0, gap and gradient by hand through the adapted model; only adapters learn."""
    hand = by_hand(samples, name, off_policy=False)
    run = train(
        tmp_path, Fixed([samples]), Setting(config(name, teacher=teacher), hand=hand, peft=LORA)
    )
    assert run.logged("csd/null_gap")[0] <= 2e-6
    assert run.seen[0].loss == pytest.approx(run.seen[0].by_hand, abs=1e-5)
    assert {n for n, _ in run.model.named_parameters() if "lora" in n} == set(
        run.watcher.gradients[0]
    )
    assert any(g.abs().max() > 1e-4 for g in run.watcher.gradients[0].values())


def test_the_gap_under_lora_is_not_that_of_the_base_model(
    tmp_path: Path, samples: list[Sample]
) -> None:
    adapted = train(tmp_path / "a", Fixed([samples]), Setting(config("sdar"), peft=LORA))
    base = train(tmp_path / "b", Fixed([samples]), Setting(config("sdar")))
    assert abs(adapted.logged("csd/gap_mean")[0] - base.logged("csd/gap_mean")[0]) > 1e-3


# -- logs and refusals ----------------------------------------------------------------------


def test_the_logged_means_are_those_by_hand(tmp_path: Path, samples: list[Sample]) -> None:
    collected: list[Turn] = []

    def keep(turn: Turn) -> torch.Tensor:
        collected.append(turn)
        return FORMS["sdar"](turn)

    hand = replace(by_hand(samples, "sdar", off_policy=False), form=keep)
    run = train(tmp_path, Fixed([samples]), Setting(config("sdar"), hand=hand))
    gaps = torch.cat([t.gap for t in collected])
    real = torch.cat([t.sampled(t.noted) - t.sampled(t.student) for t in collected]).abs()
    both = [t for t in collected if t.placebo is not None]
    placebo, compared = (
        torch.cat([(t.sampled(of(t)) - t.sampled(t.student)).abs() for t in both])
        for of in (lambda t: t.placebo, lambda t: t.noted)
    )
    wanted = {
        "gap_mean": gaps.mean(),
        "gap_abs": gaps.abs().mean(),
        "gap_positive": (gaps > 0).float().mean(),
        "gate_mean": torch.sigmoid(5 * gaps).mean(),
        "real_abs": real.mean(),
        "placebo_abs": placebo.mean(),
        "difference": (compared - placebo).mean(),
        "debiased": len(placebo) / len(gaps),
        "noted_tokens": float(len(gaps)),
    }
    for key, value in wanted.items():
        assert run.logged(f"csd/{key}")[0] == pytest.approx(float(value), abs=1e-5), key


def test_only_the_gated_estimator_logs_a_gate(tmp_path: Path, samples: list[Sample]) -> None:
    run = train(tmp_path, Fixed([samples]), Setting(config("k3")))
    assert run.logged("csd/gate_mean") == []
    assert run.logged("csd/gap_abs")[0] > 0


def test_a_teacher_that_is_not_the_student_is_refused(
    tmp_path: Path, samples: list[Sample]
) -> None:
    """A model that pays no attention to the block mask would teach nonsense for weeks."""

    def deaf() -> tuple[Any, Any]:
        model = policy()
        inner = model.base_model.forward

        def forward(*args: Any, attention_mask: Any = None, **kwargs: Any) -> Any:
            kept = attention_mask if attention_mask is None or attention_mask.dim() == 2 else None
            return inner(*args, attention_mask=kept, **kwargs)

        model.base_model.forward = forward
        return model, TOKENS

    with pytest.raises(EnvironmentFault, match="the teacher differs from the student"):
        train(tmp_path / "a", Fixed([samples]), Setting(config("sdar"), make=deaf))
    rows = Setting(config("sdar", teacher="rows"), make=deaf)
    run = train(tmp_path / "b", Fixed([samples]), rows)
    assert math.isfinite(run.seen[0].loss)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"estimator": "sdra"}, "unknown estimator 'sdra'"),
        ({"top_k": 0}, "'csd.top_k' cannot be 0"),
        ({"mixture": 1.0}, "'csd.mixture' cannot be 1"),
        ({"entry_cap": 0.0}, "'csd.entry_cap' cannot be 0"),
        ({"beta": -1.0}, "'csd.beta' cannot be -1"),
        ({"teacher": "slow"}, "'csd.teacher' cannot be 'slow'"),
    ],
)
def test_settings_that_cannot_be(changed: dict[str, Any], words: str) -> None:
    class Run:
        csd = CsdConfig(**changed)

    with pytest.raises((ConfigError, UnknownNameError), match=words):
        check_csd(Run())
