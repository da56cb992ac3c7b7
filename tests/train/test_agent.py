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
from mimesim.train.agent import BatchLog, train_agent
from mimesim.train.csd import CsdConfig
from mimesim.train.warmstart import vocabulary
from tests.support.agent_runs import config
from tests.support.rl_runs import curve, moved, parameters, save_start
from tests.support.stub_server import StubRequest, StubServer

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=512)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random policy that leans towards ending its replies."""
    folder = tmp_path_factory.mktemp("start")
    words = build_tokenizer(vocabulary())
    save_start(folder, words, SMALL)
    return folder


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
    with pytest.raises(EnvironmentFault, match="no such model folder"):
        train_agent(config(tmp_path / "nowhere", tmp_path / "out"))
    with pytest.raises(UnknownNameError, match="realistc"):
        train_agent(config(start, tmp_path / "out", user="scripted:realistc"))


# -- arms and coaches of a whole run --------------------------------------------------------


def test_the_record_says_all_about_its_csd(trained: tuple[Path, dict[str, Any]]) -> None:
    _, result = trained
    block, curve = result["csd"], result["curve"]
    assert (block["alpha"], block["beta"], block["estimator"]) == (0.1, 5.0, "sdar")
    assert (block["experimental"], block["teacher"], block["debias"]) == (False, "packed", True)
    assert (block["coach"], block["style"], block["thought"]) == ("rule", "prospective", "after")
    assert (block["privileged"], block["channels"], block["arm"]) == (True, "both", None)
    assert block["null_gap"] == curve[0]["csd/null_gap"]
    for key in ("gap_mean", "gap_positive", "gap_abs", "real_abs", "placebo_abs", "difference"):
        assert block[key] == pytest.approx(
            sum(row[f"csd/{key}"] for row in curve if f"csd/{key}" in row)
            / sum(f"csd/{key}" in row for row in curve)
        )
    assert block["difference"] != 0
    notes = block["notes"]
    assert notes["asked"] == sum(row["notes/asked"] for row in curve) == notes["written"] > 0
    assert notes["none"] == notes["failed"] == notes["leaked"] == notes["skipped"] == 0
    assert notes["with_thought"] == 1.0
    assert 0 < notes["with_reaction"] <= 1
    assert block["leaks"] == {
        "checked": True,
        "rejected": 0,
        "rate": 0.0,
        "specifics": 0,
        "copies": 0,
    }


def test_without_privilege_the_rule_coach_is_silent_and_training_is_grpo(
    start: Path, tmp_path: Path
) -> None:
    """A note is the private state in other words: none is written, and the weights are GRPO's."""
    how: dict[str, Any] = {"batches": 2, "csd": CsdConfig()}
    silent = train_agent(config(start, tmp_path / "a", arm="csd-noprivilege", **how))
    plain = train_agent(config(start, tmp_path / "b", arm="grpo", **how))
    notes = silent["csd"]["notes"]
    assert notes["none"] == notes["asked"] > 0
    assert (notes["written"], notes["with_thought"], notes["with_reaction"]) == (0, 0, 0)
    assert (silent["csd"]["privileged"], silent["csd"]["channels"]) == (False, "none")
    assert "gap_mean" not in silent["csd"]
    assert plain["csd"] == {}
    for name, value in parameters(tmp_path / "a").items():
        assert torch.equal(value, parameters(tmp_path / "b")[name]), name


@pytest.mark.parametrize(
    ("arm", "written"),
    [
        ("csd", True),
        ("csd-thought-only", True),
        ("csd-reaction-only", False),
        ("csd-placebo", True),
    ],
)
def test_arms_of_a_run(start: Path, tmp_path: Path, arm: str, written: bool) -> None:
    result = train_agent(config(start, tmp_path, arm=arm, batches=2))
    assert result["csd"]["arm"] == arm
    assert (result["csd"]["notes"]["written"] > 0) is written
    assert result["csd"]["placebo_arm"] is (arm == "csd-placebo")
    assert (moved(start, tmp_path) > 1e-4) is written, "this policy earns no reward of its own"


def desk(request: StubRequest) -> str:
    """Play the customer, who thinks, and write notes when asked as a coach."""
    if "You advise a support agent" in str(request.body["messages"][0]["content"]):
        assert len(request.body["messages"]) == 1
        return f"<think>plan {request.number}</think>They feel ignored ({request.number}) so far."
    return f"<think>not told {request.number}</think>i said so {request.number}"


def test_the_user_model_as_coach_of_a_whole_run(start: Path, tmp_path: Path) -> None:
    with StubServer(desk) as server:
        user = f"roleplay:openai:stub@{server.url}"
        how: dict[str, Any] = {"batches": 1, "prompts": 1, "minibatches": 1, "csd": CsdConfig()}
        result = train_agent(config(start, tmp_path, user=user, arm="csd", coach="user", **how))
    block = result["csd"]
    assert block["coach"].startswith("user:openai:stub")
    assert (block["alpha"], block["style"], block["channels"]) == (0.01, "prospective", "both")
    assert block["notes"]["written"] == block["notes"]["asked"] > 0
    assert block["null_gap"] <= 2e-6
    asked = [r for r in server.generations if "You advise" in str(r.body["messages"])]
    assert len(asked) == block["notes"]["asked"]
    assert any("not told" in str(r.body["messages"]) for r in asked), "it may read the thoughts"


def test_the_other_coach_may_not_be_the_users_model(start: Path, tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/v1"
    same = {"user": f"roleplay:openai:one@{url}", "coach": f"model:openai:one@{url}"}
    with pytest.raises(ConfigError, match=r"the coach is the model of the user"):
        train_agent(config(start, tmp_path, arm="csd-othercoach", **same))


def test_a_coach_that_is_not_there_is_told_before_the_first_batch(
    start: Path, tmp_path: Path
) -> None:
    with StubServer(desk) as server:
        gone = f"model:openai:stub@{server.url}"
    with pytest.raises(EnvironmentFault):
        train_agent(config(start, tmp_path, coach=gone))
