"""Alarms of an RL run, on numbers and in whole runs; what no update may be made from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mimesim.errors import ConfigError, EnvironmentFault
from mimesim.models.tiny import TinyConfig, build_tokenizer
from mimesim.train.agent import train_agent
from mimesim.train.alarms import AlarmConfig, Alarms
from mimesim.train.csd import CsdConfig
from mimesim.train.grpo import Sample
from mimesim.train.warmstart import vocabulary
from tests.support.agent_runs import config
from tests.support.rl_runs import save_start
from tests.support.trainers import Fixed, Setting, largest, make_samples, policy, train

pytestmark = pytest.mark.filterwarnings("ignore")
FINE: Mapping[str, float] = {
    "credit/valid": 8, "credit/groups": 2, "credit/flat_groups": 1, "entropy": 1.0,
    "ratio/mean": 1.0, "csd/gate_mean": 0.5, "episode/cut": 0.1,
}  # fmt: skip


def seen(*rows: Mapping[str, float], **how: Any) -> list[list[str]]:
    alarms = Alarms(AlarmConfig(**how))
    return [alarms.see(batch, {**FINE, **row})[0] for batch, row in enumerate(rows, start=1)]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"entropy": 0.01}, "the entropy collapsed: 0.01 nats, 1 at the start"),
        ({"entropy": 7.0}, "the entropy exploded: 7 nats, 1 at the start"),
        ({"csd/gate_mean": 0.995}, "the mean gate of CSD is 0.995, outside 0.02 to 0.98"),
        ({"csd/gate_mean": 0.0}, "the mean gate of CSD is 0, outside"),
        ({"ratio/mean": 3.0}, "the mean importance ratio is 3, outside 0.5 to 2"),
        ({"credit/not_finite": 2}, "2 rollouts have a reward that is no number; not counted"),
        ({"update/not_finite": 0.5}, "50% of the updates had a gradient that is not finite"),
        (
            {"episode/cut": 1.0},
            "100% of the replies have no end: cut at policy.max_tokens, or a forged turn",
        ),
    ],
)
def test_each_alarm_is_told_once_while_it_lasts(row: dict[str, float], words: str) -> None:
    first, bad, still, fine, again = seen({}, row, row, {}, row)
    assert first == still == fine == []
    assert len(bad) == len(again) == 1
    assert words in bad[0]
    assert seen({}, row, action="off") == [[], []]


def test_equal_rewards_are_told_after_a_while() -> None:
    flat = {"credit/flat_groups": 2}
    told = seen(flat, flat, {}, flat, flat, flat, flat_batches=3)
    assert [len(lines) for lines in told] == [0, 0, 0, 0, 0, 1]
    assert "all rewards of a group are equal, in every group of 3 batches" in told[-1][0]


def test_an_alarm_may_stop_and_failed_batches_always_do() -> None:
    alarms = Alarms(AlarmConfig(action="stop"))
    assert alarms.see(1, FINE) == ([], "")
    _, why = alarms.see(2, {**FINE, "ratio/mean": 9.0})
    assert "importance ratio" in why
    for action in ("off", "warn", "stop"):
        alarms = Alarms(AlarmConfig(action=action, failed_batches=2))  # type: ignore[arg-type]
        failed = {"credit/valid": 0, "failed/user_failure": 6, "failed/judge_failure": 2}
        lines, why = alarms.see(1, failed)
        assert why == ""
        assert "(2 judge failure, 6 user failure)" in lines[0]
        assert "last 2 batches" in alarms.see(2, failed)[1]


def test_a_run_that_goes_on_remembers() -> None:
    rows = [FINE, {**FINE, "credit/flat_groups": 2}, {**FINE, "entropy": 0.01}]
    whole = Alarms(AlarmConfig(flat_batches=1))
    told = [whole.see(batch, row) for batch, row in enumerate(rows, start=1)]
    for cut in (1, 2):
        first, second = Alarms(AlarmConfig(flat_batches=1)), Alarms(AlarmConfig(flat_batches=1))
        before = [first.see(batch, row) for batch, row in enumerate(rows[:cut], start=1)]
        second.restore(first.state())
        after = [second.see(batch, row) for batch, row in enumerate(rows[cut:], start=cut + 1)]
        assert before + after == told
        assert second.told == whole.told


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"gate": (0.9, 0.1)}, r"'gate' cannot be \[0.9, 0.1\]"),
        ({"entropy": (-1.0, 2.0)}, "'entropy' cannot be"),
        ({"failed_batches": 0}, "'failed_batches' cannot be 0"),
        ({"cut": 0.0}, "'cut' cannot be 0"),
    ],
)
def test_settings_that_alarm_nobody(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        AlarmConfig(**wrong)


# -- what no update may be made from --------------------------------------------------------


def spoilt(sample: Sample, reward: float) -> Sample:
    return replace(sample, rewards=(*sample.rewards[:-1], reward))


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_is_a_failed_rollout(tmp_path: Path, reward: float) -> None:
    given = make_samples(policy(), 5)
    bad = [spoilt(s, reward) if i == 2 else s for i, s in enumerate(given)]
    failed = [replace(s, valid=False) if i == 2 else s for i, s in enumerate(given)]
    one = train(tmp_path / "a", Fixed([bad]), Setting(CsdConfig(0.3)))
    two = train(tmp_path / "b", Fixed([failed]), Setting(CsdConfig(0.3)))
    assert one.seen[0].loss == two.seen[0].loss
    assert largest(one.parameters, two.parameters) == 0
    assert math.isfinite(one.logged("reward")[0])
    assert one.logged("credit/not_finite") == [1.0]
    assert one.logged("credit/invalid") == two.logged("credit/invalid") == [1.0]
    assert two.logged("credit/not_finite") == [0.0]


MOMENTUM = {"max_steps": 2, "optim": "adamw_torch", "learning_rate": 1e-2, "max_grad_norm": 1.0}


def test_a_failed_batch_moves_nothing_not_even_by_momentum(tmp_path: Path) -> None:
    good = make_samples(policy(), 5)
    failed = [Sample(s.group, None, (), False) for s in good]
    both = train(tmp_path / "a", Fixed([good, failed]), Setting(), **MOMENTUM)
    one = train(tmp_path / "b", Fixed([good]), Setting(), **{**MOMENTUM, "max_steps": 1})
    assert largest(one.parameters, dict(policy().named_parameters())) > 1e-3
    assert largest(both.parameters, one.parameters) == 0
    assert both.logged("credit/valid") == [8.0, 0.0]


def test_a_gradient_that_is_not_finite_is_left_out(tmp_path: Path) -> None:
    """A sampler that claims an impossible reply: the ratio is infinite, and the weights live."""
    good = make_samples(policy(), 5)
    wild = []
    for sample in good:
        tokens = sample.tokens
        assert tokens is not None
        never = tuple(-1e4 if mask else 0.0 for mask in tokens.env_mask)
        wild.append(replace(sample, tokens=replace(tokens, logprobs=never)))
    how = {**MOMENTUM, "per_device_train_batch_size": 4, "steps_per_generation": 2}
    run = train(tmp_path / "a", Fixed([wild]), Setting(), **how)
    assert run.logged("update/not_finite") == [1.0, 1.0]
    assert all(value.isfinite().all() for value in run.parameters.values())
    assert largest(run.parameters, dict(policy().named_parameters())) == 0


def test_the_ratio_is_one_where_the_sampler_is_the_policy(tmp_path: Path) -> None:
    how = {"max_steps": 2, "per_device_train_batch_size": 4, "steps_per_generation": 2}
    exact = train(tmp_path / "a", Fixed([make_samples(policy(), 5)]), Setting(), **how)
    first, second = exact.logged("ratio/mean")
    assert first == pytest.approx(1.0, abs=1e-5)
    assert second != first, "the second update is off policy"


# -- whole runs -----------------------------------------------------------------------------

SMALL = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=512)


def test_a_policy_that_never_ends_its_replies(tmp_path: Path) -> None:
    """All turns truncated: told, or the end of the run; its checkpoint is kept and gone on with."""
    save_start(tmp_path / "start", build_tokenizer(vocabulary()), SMALL)
    run = config(
        tmp_path / "start",
        tmp_path / "out",
        alarms=AlarmConfig(action="stop", cut=0.5),
        policy={"temperature": 1.0, "max_tokens": 1},
        save_every=50,
        csd={"alpha": 0.1},
    )
    with pytest.raises(
        EnvironmentFault, match=r"stopped after batch 1: \d+% of the replies have no end"
    ):
        train_agent(run)
    assert [p.name for p in (tmp_path / "out" / "trainer").glob("checkpoint-*")] == ["checkpoint-2"]
    heard: list[tuple[int, tuple[str, ...]]] = []
    calm = replace(run, alarms=AlarmConfig(cut=0.5))
    result = train_agent(calm, on_batch=lambda log: heard.append((log.batch, log.told)))
    assert [batch for batch, _ in heard] == [2, 3, 4]
    assert [one["alarm"] for one in result["alarms"]].count("cut") == 1
    assert result["curve"][0]["notes/cut"] > 0, "cut replies are not noted"
