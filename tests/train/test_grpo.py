"""The real TRL trainer on a tiny model: exactness of GRPO, of CSD, and of what must not happen.

Tolerances are those of design ruling 5, in fp32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from mimesim.errors import CallerError
from mimesim.rollout.tokens import TokenRecord, TokenRollout
from mimesim.seeds import generator
from mimesim.train.credit import CreditConfig
from mimesim.train.csd import CsdConfig
from mimesim.train.grpo import Sample
from mimesim.train.teacher import NotedTurn
from tests.support.credits import credit_of
from tests.support.trainers import (
    ByHand,
    Fixed,
    Run,
    Setting,
    largest,
    make_samples,
    policy,
    record,
    rows_of,
    train,
    with_logprobs,
    words,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # TRL and accelerate warn of their own affairs
CSD = CsdConfig(alpha=0.3)


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """Multi-turn rows of unequal lengths, sampled a little off the present policy."""
    return make_samples(policy(), 5, noise=0.4)


def by_hand(samples: Sequence[Sample], **how: Any) -> ByHand:
    advantages = credit_of(samples)
    return ByHand(lambda sample: advantages[sample.tokens], **how)


# -- the null probe and the teacher ---------------------------------------------------------


def equal_shapes(seed: int = 1) -> list[Sample]:
    """Single-turn rows of one shape, every one noted."""
    model, rng = policy(), generator(seed, "equal")
    found = []
    for index in range(8):
        tokens = with_logprobs(model, record(rng, 1, size=4, prompt=6), lambda: 0.0)
        noted = (NotedTurn(0, 4, 2, tuple(words(rng, 3, 5))),)
        found.append(Sample(f"g{index // 4}", tokens, (float(index % 3),), True, noted))
    return found


def test_the_null_probe_is_exactly_zero_for_rows_of_equal_shape(tmp_path: Path) -> None:
    run = train(tmp_path, Fixed([equal_shapes()]), Setting(replace(CSD, teacher="rows")))
    assert run.logged("csd/null_gap") == [0.0]
    assert run.logged("csd/real_abs")[0] > 0.01, "a note that is not empty does change the scores"


@pytest.mark.parametrize("teacher", ["packed", "rows"])
def test_the_null_probe_of_any_rows(tmp_path: Path, samples: list[Sample], teacher: str) -> None:
    run = train(tmp_path, Fixed([samples]), Setting(replace(CSD, teacher=teacher)), max_steps=2)
    assert len(run.logged("csd/null_gap")) == 1, "the probe runs once"
    assert run.logged("csd/null_gap")[0] <= 2e-6


@pytest.mark.parametrize("teacher", ["packed", "rows"])
def test_empty_notes_make_the_teacher_the_student(
    tmp_path: Path, samples: list[Sample], teacher: str
) -> None:
    empty = [
        replace(s, noted=tuple(NotedTurn(t.start, t.end, t.header, ()) for t in s.noted))
        for s in samples
    ]
    run = train(tmp_path, Fixed([empty]), Setting(replace(CSD, teacher=teacher)))
    assert run.logged("csd/real_abs")[0] <= 2e-6
    assert run.logged("csd/gate_mean")[0] == pytest.approx(0.5, abs=1e-5)


def test_packed_and_rows_teach_the_same(tmp_path: Path, samples: list[Sample]) -> None:
    runs = [
        train(tmp_path / form, Fixed([samples]), Setting(replace(CSD, teacher=form)))
        for form in ("packed", "rows")
    ]
    packed, rows = runs
    assert packed.seen[0].loss == pytest.approx(rows.seen[0].loss, abs=2e-6)
    assert largest(packed.watcher.gradients[0], rows.watcher.gradients[0]) <= 2e-6
    for key in ("csd/gap_mean", "csd/gate_mean", "csd/real_abs", "csd/placebo_abs"):
        assert packed.logged(key) == pytest.approx(rows.logged(key), abs=1e-5)


# -- alpha = 0 ------------------------------------------------------------------------------


def test_alpha_zero_is_plain_grpo_bit_for_bit(tmp_path: Path) -> None:
    """Notes are there, CSD code is there; after four optimizer steps every bit is the same."""
    batches = [make_samples(policy(), seed, noise=0.1) for seed in (1, 2)]
    assert all(any(s.noted for s in batch) for batch in batches)
    how = {
        "max_steps": 4,
        "per_device_train_batch_size": 4,
        "steps_per_generation": 2,
        "optim": "adamw_torch",
        "learning_rate": 1e-3,
    }
    plain = train(tmp_path / "a", Fixed(batches), Setting(), **how)
    zero = train(tmp_path / "b", Fixed(batches), Setting(CsdConfig(alpha=0.0)), **how)
    some = train(tmp_path / "c", Fixed(batches), Setting(CsdConfig(alpha=1e-3)), **how)
    start = dict(policy().named_parameters())
    assert largest(plain.parameters, start) > 1e-4
    for name, value in plain.parameters.items():
        assert torch.equal(value, zero.parameters[name]), name
    assert largest(plain.parameters, some.parameters) > 0
    assert [s.loss for s in plain.seen] == [s.loss for s in zero.seen]
    assert not [k for entry in zero.trainer.state.log_history for k in entry if "csd" in k]
    assert "csd_rows" not in zero.seen[0].inputs


# -- the loss -------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("teacher", ["packed", "rows"])
def test_the_loss_is_grpo_plus_alpha_times_csd(
    tmp_path: Path, samples: list[Sample], alpha: float, teacher: str
) -> None:
    """Two optimizer steps of one generation batch: clip, live teacher, placebo and normalizer."""
    hand = by_hand(samples, alpha=alpha, beta=40.0, windows=2.0)
    run = train(
        tmp_path,
        Fixed([samples]),
        Setting(CsdConfig(alpha, 40.0, teacher), hand=hand),
        max_steps=2,
        per_device_train_batch_size=4,
        steps_per_generation=2,
    )
    assert len(run.seen) == 2
    for step in run.seen:
        assert step.by_hand is not None
        assert step.loss == pytest.approx(step.by_hand, abs=2e-6)


def test_the_gradient_is_that_of_the_hand_made_loss(tmp_path: Path, samples: list[Sample]) -> None:
    hand = by_hand(samples, alpha=CSD.alpha, windows=1.0, off_policy=False)
    run = train(tmp_path, Fixed([samples]), Setting(CSD))
    model = policy()
    loss = hand(model, run.seen[0].inputs, samples)
    assert run.seen[0].loss == pytest.approx(loss.item(), abs=2e-6)
    names = [n for n, _ in model.named_parameters()]
    gradients = torch.autograd.grad(loss, [p for _, p in model.named_parameters()])
    assert largest(run.watcher.gradients[0], dict(zip(names, gradients, strict=True))) <= 2e-6


def test_some_tokens_are_clipped_in_these_tests(tmp_path: Path, samples: list[Sample]) -> None:
    run = train(
        tmp_path,
        Fixed([samples]),
        Setting(),
        max_steps=2,
        per_device_train_batch_size=4,
        steps_per_generation=2,
    )
    assert run.logged("clip_ratio/region_mean")[0] > 0.05


def test_a_constant_gate_is_half_the_likelihood(tmp_path: Path, samples: list[Sample]) -> None:
    hand = by_hand(samples, alpha=0.3, beta=0.0, off_policy=False)
    run = train(tmp_path, Fixed([samples]), Setting(CsdConfig(0.3, beta=0.0), hand=hand))
    assert run.seen[0].loss == pytest.approx(run.seen[0].by_hand, abs=2e-6)
    assert run.logged("csd/gate_mean")[0] == pytest.approx(0.5)


def test_the_placebo_takes_the_students_place(tmp_path: Path, samples: list[Sample]) -> None:
    bare = [replace(s, noted=tuple(replace(t, placebo_ids=None) for t in s.noted)) for s in samples]
    with_it = train(tmp_path / "a", Fixed([samples]), Setting(CSD))
    without = train(tmp_path / "b", Fixed([bare]), Setting(CSD))
    assert with_it.logged("csd/real_abs") == pytest.approx(without.logged("csd/real_abs"), abs=1e-6)
    assert abs(with_it.logged("csd/gap_mean")[0] - without.logged("csd/gap_mean")[0]) > 1e-3
    turns = [t for s in samples for t in s.noted]
    noted = sum(t.end - t.start for t in turns)
    debiased = sum(t.end - t.start for t in turns if t.placebo_ids is not None)
    assert 0 < debiased < noted
    assert with_it.logged("csd/debiased")[0] == pytest.approx(debiased / noted)
    assert with_it.logged("csd/noted_tokens") == [noted]
    assert without.logged("csd/debiased") == [0.0]


def test_no_noted_turn_is_a_connected_zero(tmp_path: Path, samples: list[Sample]) -> None:
    bare = [replace(s, noted=()) for s in samples]
    csd = train(tmp_path / "a", Fixed([bare]), Setting(CSD))
    plain = train(tmp_path / "b", Fixed([bare]), Setting())
    assert csd.logged("csd/loss") == [0.0]
    assert csd.seen[0].loss == plain.seen[0].loss
    assert largest(csd.watcher.gradients[0], plain.watcher.gradients[0]) == 0


# -- where the gradient goes ----------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_only_sampled_tokens_get_a_gradient(
    tmp_path: Path, samples: list[Sample], alpha: float
) -> None:
    """Gradient of the loss with respect to log-probs: user and padding tokens exactly zero."""
    run = train(tmp_path, Fixed([samples]), Setting(CsdConfig(alpha)))
    (step,) = run.seen
    assert step.logps is not None
    assert step.logps.grad is not None
    advantages = credit_of(samples)
    found = rows_of(step.inputs, samples)
    assert len(found) == 8
    for row, sample in found:
        assert sample.tokens is not None
        gradient = step.logps.grad[row]
        size = len(sample.tokens.completion_ids)
        assert gradient[size:].eq(0).all(), "padding"
        noted = {k for t in sample.noted for k in range(t.start, t.end)}
        for k, sampled in enumerate(sample.tokens.env_mask):
            if not sampled:
                assert gradient[k] == 0, "a user's token"
            elif advantages[sample.tokens][k] or (alpha and k in noted):
                assert gradient[k] != 0, "a sampled token"
    assert any(0 in s.tokens.env_mask for s in samples if s.tokens)


# -- invariances ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, samples: list[Sample]) -> Run:
    return train(tmp_path_factory.mktemp("whole"), Fixed([samples]), Setting(CSD))


@pytest.mark.parametrize(("rows", "accumulated"), [(4, 2), (2, 4)])
def test_accumulation_does_not_matter(
    tmp_path: Path, samples: list[Sample], whole: Run, rows: int, accumulated: int
) -> None:
    """(8, 1), (4, 2) and (2, 4) rows x micro-steps, with unequal lengths."""
    run = train(
        tmp_path,
        Fixed([samples]),
        Setting(CSD),
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=accumulated,
    )
    assert len(run.seen) == accumulated
    assert len(run.watcher.gradients) == 1
    assert largest(run.watcher.gradients[0], whole.watcher.gradients[0]) <= 1e-6
    assert sum(s.loss for s in run.seen) == pytest.approx(whole.seen[0].loss, abs=1e-6)


@pytest.mark.parametrize("micro_rows", [1, 3])
def test_micro_rows_do_not_matter(
    tmp_path: Path, samples: list[Sample], whole: Run, micro_rows: int
) -> None:
    for form in ("packed", "rows"):
        csd = replace(CSD, teacher=form)
        run = train(tmp_path / form, Fixed([samples]), Setting(csd, micro_rows=micro_rows))
        assert run.seen[0].loss == pytest.approx(whole.seen[0].loss, abs=1e-6)
        assert largest(run.watcher.gradients[0], whole.watcher.gradients[0]) <= 1e-6


# -- credit ---------------------------------------------------------------------------------


def shaped(rng: Any, sizes: Sequence[int]) -> TokenRollout:
    made = TokenRecord((7, 8, 2, 6), header=2)
    for turn, size in enumerate(sizes):
        if turn:
            made.add_context([3, 9, 2, 6], header=2)
        made.add_reply(words(rng, size, size), [-2.0] * size)
    return made.finish()


GOLDEN = {
    "r2g": {
        "A": [0.351574] * 2 + [0.439467] + [0.549334] * 2,
        "B": [0.809754] * 2 + [1.012192] * 2,
        "C": [-1.402609] * 3,
        "D": [0.043380] * 2 + [0.0],
    },
    "equalized": {
        "A": [0.783349] * 5,
        "B": [0.783349] * 4,
        "C": [-1.305582] * 3,
        "D": [-0.261116] * 3,
    },
}
"""Cases G21 and G25 of the credit vectors, token by token."""


@pytest.mark.parametrize("method", GOLDEN)
def test_advantages_are_those_of_the_credit_module(tmp_path: Path, method: str) -> None:
    rng = generator(3, "golden")
    shapes = {"A": [2, 1, 2], "B": [2, 2], "C": [1, 1, 1], "D": [2, 1]}
    rewards = {"A": (0, 0, 1), "B": (0, 1), "C": (0, 0, 0), "D": (0.5, 0)}
    made = {
        name: Sample("g", shaped(rng, shapes[name]), tuple(map(float, rewards[name])), True)
        for name in shapes
    }
    score: Any = "r2g" if method == "r2g" else "sum"
    turn: Any = method
    run = train(
        tmp_path,
        Fixed([list(made.values())]),
        Setting(CSD, CreditConfig(turn=turn, score=score)),
        per_device_train_batch_size=4,
    )
    inputs = run.seen[0].inputs
    assert inputs["advantages"].shape == inputs["completion_ids"].shape
    for row, sample in rows_of(inputs, list(made.values())):
        name = next(n for n, s in made.items() if s is sample)
        assert sample.tokens is not None
        mask = torch.tensor(sample.tokens.env_mask).bool()
        given = inputs["advantages"][row, : len(mask)]
        assert given[mask].tolist() == pytest.approx(GOLDEN[method][name], abs=1e-6)
        assert given[~mask].eq(0).all()
        assert inputs["advantages"][row, len(mask) :].eq(0).all()


def failed(group: str) -> Sample:
    return Sample(group, None, (), False)


def graded(rewards: Sequence[float | None], seed: int = 8) -> list[Sample]:
    """Groups of four; None = the episode failed (every other one before the policy spoke)."""
    model, rng = policy(), generator(seed, "graded")
    found = []
    for index, reward in enumerate(rewards):
        tokens = with_logprobs(model, record(rng, 2), lambda: 0.0)
        group = f"g{index // 4}"
        noted = tuple(NotedTurn(s.start, s.end, 2, (9, 9)) for s in tokens.spans)
        if reward is not None:
            found.append(Sample(group, tokens, (0.0, reward), True, noted))
        elif index % 2:
            found.append(failed(group))
        else:
            found.append(Sample(group, tokens, (0.0, 0.0), False, noted))
    return found


def test_a_missing_reward_is_neither_zero_nor_trained_on(tmp_path: Path) -> None:
    """C-RL-03: one valid member: no loss; three valid: statistics of the three."""
    given = graded([0.5, None, None, None, 1.0, 0.0, None, 1.0])
    run = train(tmp_path, Fixed([given]), Setting(CsdConfig(0.0)))
    (step,) = run.seen
    assert math.isfinite(step.loss)
    wanted = {0: 0.0, 4: 0.577350, 5: -1.154701, 7: 0.577350}
    for row, sample in rows_of(step.inputs, given):
        index = next(i for i, s in enumerate(given) if s is sample)
        assert sample.tokens is not None
        mask = torch.tensor(sample.tokens.env_mask).bool()
        advantages = step.inputs["advantages"][row, : len(mask)][mask]
        assert advantages.tolist() == pytest.approx([wanted[index]] * int(mask.sum()), abs=1e-5)
    assert step.logps is not None
    assert step.logps.grad is not None
    valid = [row for row, _ in rows_of(step.inputs, given)]
    assert len(valid) == 4
    others = [row for row in range(8) if row not in valid]
    assert step.logps.grad[others].eq(0).all()
    assert run.logged("credit/invalid") == [4.0]
    assert run.logged("credit/small_groups") == [1.0]
    assert run.logged("reward") == pytest.approx([(0.5 + 1 + 0 + 1) / 4])


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_a_step_with_failed_episodes_equals_the_step_without_them(
    tmp_path: Path, alpha: float
) -> None:
    """C-RL-04, first part: no token of a failed episode counts anywhere, not even below the line."""
    kept = graded([1.0, 0.0, 0.4, 0.0])
    none = graded([None] * 4, seed=9)
    both = [*kept, *[replace(s, group="g1") for s in none]]
    setting = Setting(CsdConfig(alpha))
    alone = train(tmp_path / "a", Fixed([kept]), setting, per_device_train_batch_size=4)
    joined = train(tmp_path / "b", Fixed([both]), setting)
    assert joined.seen[0].loss == pytest.approx(alone.seen[0].loss, abs=1e-6)
    assert largest(joined.watcher.gradients[0], alone.watcher.gradients[0]) <= 1e-6


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_a_wholly_failed_micro_batch_changes_nothing(tmp_path: Path, alpha: float) -> None:
    """C-RL-04: its loss is a connected, finite zero; so is that of a wholly failed batch."""
    run = train(
        tmp_path,
        Fixed([graded([None] * 8)]),
        Setting(CsdConfig(alpha)),
        max_steps=2,
        per_device_train_batch_size=4,
        steps_per_generation=2,
    )
    assert [s.loss for s in run.seen] == [0.0, 0.0]
    assert all(g.eq(0).all() for step in run.watcher.gradients for g in step.values())
    assert largest(run.parameters, dict(policy().named_parameters())) == 0
    assert run.logged("credit/invalid") == [8.0]


def test_equal_rewards_teach_nothing(tmp_path: Path) -> None:
    run = train(tmp_path, Fixed([graded([0.35] * 8)]), Setting(CsdConfig(0.0)))
    assert run.seen[0].loss == 0.0
    assert all(g.eq(0).all() for g in run.watcher.gradients[0].values())
    assert run.logged("credit/flat_groups") == [2.0]


def test_a_sampler_without_log_probs_is_made_up_for(tmp_path: Path, samples: list[Sample]) -> None:
    """Unknown log-probs: the trainer's own forward before the first update takes their place."""
    nothing = [
        replace(
            s,
            tokens=replace(
                s.tokens, logprobs=tuple(math.nan if m else 0.0 for m in s.tokens.env_mask)
            ),
        )
        for s in samples
        if s.tokens is not None
    ]
    how = {"max_steps": 2, "per_device_train_batch_size": 4, "steps_per_generation": 2}
    model = policy()
    exact = [
        replace(s, tokens=with_logprobs(model, s.tokens, lambda: 0.0)) for s in samples if s.tokens
    ]
    unknown = train(tmp_path / "a", Fixed([nothing]), Setting(CSD), **how)
    known = train(tmp_path / "b", Fixed([exact]), Setting(CSD), **how)
    for one, two in zip(unknown.seen, known.seen, strict=True):
        assert one.loss == pytest.approx(two.loss, abs=2e-6)


def test_too_few_samples_are_a_bug_of_the_collector(tmp_path: Path, samples: list[Sample]) -> None:
    with pytest.raises(CallerError, match="7 samples for 8 prompts"):
        train(tmp_path, Fixed([samples[:7]]), Setting())


# -- batches and resumption -----------------------------------------------------------------

LONG = {
    "max_steps": 6,
    "per_device_train_batch_size": 4,
    "steps_per_generation": 2,
    "optim": "adamw_torch",
    "learning_rate": 1e-3,
    "save_strategy": "steps",
    "save_steps": 2,
    "save_total_limit": None,
}


def test_resuming_equals_never_having_stopped(tmp_path: Path) -> None:
    batches = [make_samples(policy(), seed, noise=0.1) for seed in range(3)]
    straight = train(tmp_path / "a", Fixed(batches), Setting(CSD), **LONG)
    assert [batch for batch, _ in straight.collector.rows] == [0, 1, 2]
    assert straight.collector.rows[0][1] == [0] * 4 + [1] * 4
    assert straight.collector.rows[2][1] == [4] * 4 + [5] * 4
    checkpoint = tmp_path / "a" / "checkpoint-2"
    again = train(tmp_path / "b", Fixed(batches), Setting(CSD, resume=str(checkpoint)), **LONG)
    assert again.collector.rows == straight.collector.rows[1:]
    assert [s.loss for s in again.seen] == pytest.approx(
        [s.loss for s in straight.seen[2:]], abs=1e-6
    )
    assert largest(again.parameters, straight.parameters) <= 1e-6
