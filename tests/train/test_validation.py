"""Validation in training: the split, the best weights, early stop, and going on after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from mimesim.envs.base import Task
from mimesim.envs.load import load_tasks
from mimesim.errors import ConfigError
from mimesim.models.tiny import TinyConfig, build_tokenizer, load_policy
from mimesim.train.agent import train_agent
from mimesim.train.grpo import Sample
from mimesim.train.validation import ValidationConfig, Validator, split
from mimesim.train.warmstart import vocabulary
from tests.support.agent_runs import config
from tests.support.rl_runs import curve, parameters, save_start

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=512)


def tasks(count: int) -> list[Task]:
    return load_tasks("support-desk", profile="compact", split="train", seed=4, count=count)


def names(some: list[Task]) -> list[str]:
    return [task.id for task in some]


def test_nothing_is_held_out_unless_it_is_asked_for() -> None:
    given = tasks(12)
    assert split(given, 12, ValidationConfig(), 3) == (given, [])


def test_no_task_is_on_both_sides() -> None:
    given = tasks(25)
    trained, held = split(given, 20, ValidationConfig(share=0.2), 3)
    assert (len(trained), len(held)) == (20, 5)
    assert not set(names(trained)) & set(names(held))
    assert names(trained) == [name for name in names(given) if name not in names(held)]
    assert split(given, 20, ValidationConfig(share=0.2), 3) == (trained, held)
    assert names(split(given, 20, ValidationConfig(share=0.2), 4)[1]) != names(held)
    assert len(split(given, 20, ValidationConfig(share=0.5, at_most=3), 3)[1]) == 3


def test_a_small_pool_is_repeated_without_those_held_out() -> None:
    given = [*tasks(6), *tasks(6)]
    trained, held = split(given, 12, ValidationConfig(share=0.3), 3)
    assert len(trained) == 12
    assert len(held) == 2
    assert not set(names(trained)) & set(names(held))
    with pytest.raises(ConfigError, match="1 training tasks are too few to hold 1 out"):
        split(tasks(1), 4, ValidationConfig(share=0.3), 3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"share": 1.5}, "'share' cannot be 1.5"),
        ({"share": 1.0}, "'share' cannot be 1"),
        ({"every": 0}, "'every' cannot be 0"),
        ({"keep": "best"}, "'keep' needs validation"),
        ({"patience": 2}, "'patience' needs validation"),
    ],
)
def test_settings_that_validate_nothing(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ValidationConfig(**wrong)


def played(rewards: list[float | None]) -> list[Sample]:
    """One episode a number; None = it failed."""
    return [
        Sample(
            f"t{i}", None, (r or 0.0,), r is not None, metrics={"success": float((r or 0) > 0.5)}
        )
        for i, r in enumerate(rewards)
    ]


def test_the_best_is_the_earliest_of_equals_and_failed_episodes_are_no_zeros() -> None:
    rounds = iter([[0.2, 0.4], [0.9, None], [0.9, 0.9], [None, None], [0.1, 0.1]])
    kept: list[Any] = []
    validator = Validator(
        ValidationConfig(share=0.5, every=1, patience=3),
        tasks(2),
        lambda *_: played(next(rounds)),
        kept.append,
    )
    assert validator.see(0, "w0") == {
        "validation/episodes": 2, "validation/failed": 0,
        "validation/reward": pytest.approx(0.3), "validation/success": 0.0,
    }  # fmt: skip
    assert validator.see(1, "w1")["validation/reward"] == 0.9
    validator.see(2, "w2")
    assert "validation/reward" not in validator.see(3, "w3")
    assert not validator.exhausted()
    validator.see(4, "w4")
    assert validator.exhausted()
    assert kept == ["w0", "w1"]
    assert validator.best is not None
    assert validator.best["batch"] == 1


# -- whole runs -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    save_start(folder, build_tokenizer(vocabulary()), SMALL)
    return folder


STOPPING = {
    "validation": ValidationConfig(share=0.3, every=1, keep="best", patience=2),
    "batches": 6,
    "csd": {"alpha": 0.0},
}


def same(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, two[name]) for name, value in one.items())


def test_a_run_that_does_not_get_better_stops_and_keeps_the_best(
    start: Path, tmp_path: Path
) -> None:
    """Greedy replies of this policy earn nothing, before and after: the start is the best."""
    out = tmp_path / "out"
    result = train_agent(config(start, out, **STOPPING))
    assert result["stopped_early"]
    assert result["steps"] == 2
    assert [row["batch"] for row in result["validation"]["scores"]] == [0, 1, 2]
    assert result["validation"]["best"]["batch"] == 0
    assert result["curve"][1]["validation/reward"] == result["validation"]["scores"][2]["reward"]
    model, _ = load_policy(start)
    assert same(parameters(out), dict(model.named_parameters()))
    best, _ = load_policy(out / "best")
    assert same(parameters(out), dict(best.named_parameters()))
    # Killed between the stop and its record: it comes to the same stop again.
    (out / "agent.json").unlink()
    again = train_agent(config(start, out, **STOPPING))
    assert curve(again) == curve(result)
    assert again["validation"] == result["validation"]


def test_validation_does_not_touch_the_training(start: Path, tmp_path: Path) -> None:
    """With the same tasks the same weights come out, validated or not; adapters stay apart."""
    how: dict[str, Any] = {"batches": 2, "csd": {"alpha": 0.0}, "lora_rank": 2}
    held = ValidationConfig(share=0.3, every=1)
    one = train_agent(config(start, tmp_path / "a", validation=held, **how))
    two = train_agent(config(start, tmp_path / "b", validation=replace(held, every=9), **how))
    assert len(one["validation"]["scores"]) == 3
    assert [row["batch"] for row in two["validation"]["scores"]] == [0, 2]
    assert same(parameters(tmp_path / "a"), parameters(tmp_path / "b"))
    best, _ = load_policy(tmp_path / "a" / "best")
    assert next(best.parameters()).shape == next(iter(parameters(tmp_path / "a").values())).shape
