"""Training an agent end to end on a tiny policy: the record, resumption, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from mimesim import jsonio
from mimesim.errors import ConfigError, EnvironmentFault, UnknownNameError, UsageError
from mimesim.models.tiny import TinyConfig, build_tokenizer
from mimesim.rollout.policy import PolicyConfig
from mimesim.train.agent import AgentConfig, BatchLog, train_agent
from mimesim.train.csd import CsdConfig
from mimesim.train.warmstart import vocabulary
from tests.support.rl_runs import curve, moved, parameters, save_start

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=512)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random policy that leans towards ending its replies."""
    folder = tmp_path_factory.mktemp("start")
    words = build_tokenizer(vocabulary())
    save_start(folder, words, SMALL)
    return folder


def config(start: Path, out: Path, **changed: Any) -> AgentConfig:
    given: dict[str, Any] = {
        "init": start,
        "out": out,
        "user": "scripted:realistic",
        "batches": 4,
        "prompts": 2,
        "group": 4,
        "minibatches": 2,
        "lr": 1e-3,
        "warmup": 1,
        "csd": CsdConfig(alpha=0.1),
        "policy": PolicyConfig(1.0, 6),
        "save_every": 1,
    }
    return AgentConfig(**{**given, **changed})


@pytest.fixture(scope="module")
def trained(start: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("trained")
    return out, train_agent(config(start, out))


def test_the_record_of_a_run(start: Path, trained: tuple[Path, dict[str, Any]]) -> None:
    out, result = trained
    assert result["steps"] == 4
    assert Path(result["checkpoint"]) == out / "policy"
    assert [row["batch"] for row in result["curve"]] == [1, 2, 3, 4]
    for row in result["curve"]:
        assert 0 <= row["episode/success"] <= 1
        assert row["credit/invalid"] == 0
        assert row["notes/asked"] >= row["notes/written"] > 0
        assert row["notes/leaked"] == row["notes/failed"] == 0
    assert result["curve"][0]["csd/null_gap"] <= 2e-6
    assert "csd/null_gap" not in result["curve"][1]
    assert 0 < result["csd"]["gate_mean"] < 1
    assert result == jsonio.read_json(out / "agent.json")
    assert moved(start, out) > 1e-4


def test_a_finished_run_is_not_run_again(start: Path, trained: tuple[Path, dict[str, Any]]) -> None:
    out, result = trained
    heard: list[BatchLog] = []
    assert train_agent(config(start, out), on_batch=heard.append) == result
    assert heard == []


def test_an_interrupted_run_ends_as_if_nothing_had_happened(
    start: Path, tmp_path: Path, trained: tuple[Path, dict[str, Any]]
) -> None:
    """Weights, optimizer, tasks, users, coach, placebos and curve all go on where they were."""

    def interrupt(log: BatchLog) -> None:
        if log.batch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_agent(config(start, tmp_path), on_batch=interrupt)
    assert not (tmp_path / "agent.json").exists()
    heard: list[int] = []
    result = train_agent(config(start, tmp_path), on_batch=lambda log: heard.append(log.batch))
    assert heard == [3, 4]
    whole, straight = trained
    for name, value in parameters(whole).items():
        assert torch.allclose(value, parameters(tmp_path)[name], atol=1e-6, rtol=0), name
    for one, two in zip(
        curve(result, "csd/null_gap"), curve(straight, "csd/null_gap"), strict=True
    ):
        assert one == pytest.approx(two, abs=1e-5)


def test_a_checkpoint_without_its_ring_is_not_gone_on_from(start: Path, tmp_path: Path) -> None:
    def interrupt(log: BatchLog) -> None:
        if log.batch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_agent(config(start, tmp_path), on_batch=interrupt)
    kept = sorted((tmp_path / "trainer").glob("checkpoint-*/mimesim.json"))
    kept[-1].unlink()  # killed between the weights and the rest
    heard: list[int] = []
    train_agent(config(start, tmp_path), on_batch=lambda log: heard.append(log.batch))
    assert heard == [2, 3, 4]


def test_without_csd_no_coach_is_asked(start: Path, tmp_path: Path) -> None:
    result = train_agent(config(start, tmp_path, csd=CsdConfig(), batches=1))
    assert result["csd"] == {}
    assert not [key for row in result["curve"] for key in row if key.startswith(("csd", "notes"))]


def test_training_leaves_the_callers_warnings_and_model_folder_alone(
    start: Path, trained: tuple[Path, dict[str, Any]]
) -> None:
    assert sorted(p.name for p in start.iterdir()) == sorted(
        p.name for p in (trained[0] / "policy").iterdir()
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"group": 1}, "'group' must be at least 2"),
        ({"minibatches": 3}, "'minibatches' 3 does not divide 8"),
        ({"coach": "nobody"}, "coach 'nobody'"),
        ({"csd": CsdConfig(alpha=-1)}, "'csd.alpha' cannot be -1"),
        ({"csd": CsdConfig(teacher="slow")}, "'csd.teacher' cannot be 'slow'"),
        ({"policy": PolicyConfig(temperature=0.0)}, "'policy.temperature' cannot be 0"),
        ({"minibatches": 0}, "'minibatches' cannot be 0"),
    ],
)
def test_settings_that_cannot_be_trained_with(
    start: Path, tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=words):
        train_agent(config(start, tmp_path, **changed))


def test_a_folder_holds_one_training_only(
    start: Path, trained: tuple[Path, dict[str, Any]]
) -> None:
    for changed in ({"lr": 2e-3}, {"user": "scripted:easy"}, {"csd": CsdConfig(alpha=0.2)}):
        with pytest.raises(UsageError, match="training with other settings"):
            train_agent(config(start, trained[0], **changed))
    assert train_agent(config(start, trained[0], save_every=3, threads=2)) == trained[1]


def test_a_missing_start_and_an_unknown_user_are_named(start: Path, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="no model checkpoint"):
        train_agent(config(tmp_path / "nowhere", tmp_path / "out"))
    with pytest.raises(UnknownNameError, match="realistc"):
        train_agent(config(start, tmp_path / "out", user="scripted:realistc"))
