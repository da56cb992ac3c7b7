"""Agent training at full strength: adapters, accumulation, kill -9, several processes, any start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from mimesim import jsonio
from mimesim.errors import ConfigError, EnvironmentFault
from mimesim.models.load import make_token_model
from mimesim.models.tiny import TinyConfig, build_tokenizer, load_policy
from mimesim.train.agent import BatchLog, train_agent
from mimesim.train.alarms import AlarmConfig
from mimesim.train.launch import Launch
from mimesim.train.warmstart import vocabulary
from mimesim.users.mixture import UserShare
from tests import tiny
from tests.support.agent_runs import config
from tests.support.rl_runs import curve, moved, parameters, save_start
from tests.support.stub_server import Fault, StubRequest, StubServer

pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).resolve().parents[2]
SMALL = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=512)
WHOLE = {"batches": 2, "minibatches": 1, "warmup": 0}
LORA = {"lora_rank": 2, "accumulation": 2}


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random policy that leans towards ending its replies."""
    folder = tmp_path_factory.mktemp("start")
    save_start(folder, build_tokenizer(vocabulary()), SMALL)
    return folder


def furthest(one: Path, two: Path) -> float:
    """Return how far the weights of two runs are apart at most."""
    other = parameters(two)
    return max(float((value - other[name]).abs().max()) for name, value in parameters(one).items())


# -- adapters and accumulation --------------------------------------------------------------


@pytest.fixture(scope="module")
def adapted(start: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("adapted") / "run"
    return out, train_agent(config(start, out, **LORA))


def test_a_lora_leaves_a_whole_policy(start: Path, adapted: tuple[Path, dict[str, Any]]) -> None:
    out, result = adapted
    before, _ = load_policy(start)
    after = parameters(out)
    changed = {n for n, p in before.named_parameters() if not torch.equal(p, after[n])}
    assert changed
    assert all(name.endswith("proj.weight") for name in changed)
    assert len(changed) == 7 * SMALL.layers, "every linear layer but the head"
    assert make_token_model(f"policy:{out / 'policy'}").identity.kind == "policy"
    assert not (out / "policy" / "adapter_config.json").exists()
    assert result["csd"]["null_gap"] <= 2e-6


def test_adapters_stand_where_they_were_asked_for(start: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {**WHOLE, "lora_rank": 2, "lora_alpha": 8.0, "lora_targets": ("q_proj",)}
    train_agent(config(start, tmp_path / "q", **how))
    before, _ = load_policy(start)
    after = parameters(tmp_path / "q")
    changed = {n for n, p in before.named_parameters() if not torch.equal(p, after[n])}
    assert {name.split(".")[-2] for name in changed} == {"q_proj"}
    with pytest.raises(ConfigError, match=r"lora_targets: no adapters can be put on qq"):
        train_agent(config(start, tmp_path / "no", lora_rank=2, lora_targets=("qq",)))


def test_accumulation_and_checkpointing_change_memory_only(start: Path, tmp_path: Path) -> None:
    for passes in (1, 4):
        train_agent(config(start, tmp_path / str(passes), accumulation=passes, **WHOLE))
    twice = Launch(gradient_checkpointing=True)
    train_agent(config(start, tmp_path / "twice", launch=twice, **WHOLE))
    assert moved(start, tmp_path / "1") > 1e-4
    assert furthest(tmp_path / "1", tmp_path / "4") <= 2e-6
    assert furthest(tmp_path / "1", tmp_path / "twice") <= 2e-6


# -- starts ---------------------------------------------------------------------------------


def test_any_chat_checkpoint_is_a_start(tmp_path: Path) -> None:
    """A foreign model: byte-level, another architecture, a template that forgets."""
    tiny.talker().save_pretrained(tmp_path / "hf")
    words = tiny.tokenizer()
    words.chat_template = "{{ messages[-1]['content'] }}"
    words.save_pretrained(tmp_path / "hf")
    result = train_agent(config(tmp_path / "hf", tmp_path / "out", **WHOLE))
    model, tokenizer = load_policy(tmp_path / "out" / "policy")
    assert model.config.model_type == "qwen3"
    assert "<|im_start|>" in tokenizer.chat_template
    assert len(result["curve"]) == 2


def test_bf16_weights_are_trained_as_they_are(start: Path, tmp_path: Path) -> None:
    train_agent(config(start, tmp_path / "out", dtype="bf16", **WHOLE))
    stored = jsonio.read_object(tmp_path / "out" / "policy" / "config.json")
    assert stored["dtype"] == "bfloat16"


def test_a_hub_id_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="nobody/nothing: the model cannot be loaded"):
        train_agent(config(Path("hub:nobody/nothing"), tmp_path / "out"))
    with pytest.raises(EnvironmentFault, match="no such model folder"):
        train_agent(config(tmp_path / "nowhere", tmp_path / "out"))


# -- geometry -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"group": 1}, "'group' must be at least 2"),
        ({"minibatches": 3}, "'minibatches' 3 does not divide 8"),
        ({"accumulation": 3}, "'accumulation' 3 x 'minibatches' 2 does not divide 8"),
        ({"accumulation": 0}, "'accumulation' cannot be 0"),
        ({"launch": Launch(processes=4)}, "'prompts' 2 cannot be shared out to 4 processes"),
        ({"launch": Launch(packing=True)}, "'launch.packing' is for supervised training"),
        ({"lora_rank": -1}, "'lora_rank' cannot be -1"),
    ],
)
def test_geometry_that_cannot_be(
    start: Path, tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        config(start, tmp_path / "out", **changed)


def test_a_quiet_launcher_is_refused(start: Path, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="1 process started, 2 wanted"):
        train_agent(config(start, tmp_path / "out", launch=Launch(processes=2)))
    assert not (tmp_path / "out").exists()


# -- processes that die, and several of them ------------------------------------------------


def spawn(arguments: list[str], *, processes: int = 1) -> subprocess.CompletedProcess[str]:
    """Run the module of small runs in processes of its own."""
    module = ["-m", "tests.support.agent_runs"]
    if processes > 1:
        per_node = f"--nproc_per_node={processes}"
        module = ["-m", "torch.distributed.run", "--standalone", per_node, *module]
    return subprocess.run(
        [sys.executable, *module, *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.slow
def test_a_killed_run_ends_as_if_nothing_had_happened(
    start: Path, tmp_path: Path, adapted: tuple[Path, dict[str, Any]]
) -> None:
    """kill -9 with LoRA, accumulation and two updates a batch: the same weights and curve."""
    out = tmp_path / "run"
    ran = spawn([str(start), str(out), jsonio.dumps(LORA), "3"])
    assert ran.returncode == -signal.SIGKILL, ran.stderr[-2000:]
    assert not (out / "agent.json").exists()
    heard: list[int] = []
    result = train_agent(config(start, out, **LORA), on_batch=lambda log: heard.append(log.batch))
    assert heard == [3, 4]
    whole, straight = adapted
    assert furthest(out, whole) <= 1e-6
    for one, two in zip(
        curve(result, "csd/null_gap"), curve(straight, "csd/null_gap"), strict=True
    ):
        assert one == pytest.approx(two, abs=1e-5)


@pytest.mark.slow
def test_two_processes_train_what_one_does(start: Path, tmp_path: Path) -> None:
    """The same global batch, notes, placebos and validation; only the first process writes."""
    how = {**WHOLE, "batches": 3, "prompts": 4, "validation": {"share": 0.3, "every": 1}}
    one = train_agent(config(start, tmp_path / "one", **how))
    ran = spawn([str(start), str(tmp_path / "two"), jsonio.dumps(how)], processes=2)
    assert ran.returncode == 0, ran.stderr[-3000:]
    two = jsonio.read_object(tmp_path / "two" / "agent.json")
    assert (one["processes"], two["processes"]) == (1, 2)
    assert furthest(tmp_path / "one", tmp_path / "two") <= 1e-5
    assert moved(start, tmp_path / "two") > 1e-4
    for mine, theirs in zip(one["curve"], two["curve"], strict=True):
        for key, value in mine.items():
            if key.startswith(("episode/", "credit/", "notes/", "validation/", "csd/", "reward")):
                assert theirs[key] == pytest.approx(value, abs=2e-5), key
    assert two["csd"]["notes"] == one["csd"]["notes"]
    assert two["csd"]["debias"] is True
    assert jsonio.read_object(tmp_path / "two-first.json")["heard"] == [0, 1, 2, 3]
    assert jsonio.read_object(tmp_path / "two-other.json")["heard"] == []


@pytest.mark.slow
def test_two_killed_processes_go_on(start: Path, tmp_path: Path) -> None:
    how = {"prompts": 2, "batches": 3}
    arguments = [str(start), str(tmp_path / "run"), jsonio.dumps(how)]
    assert spawn([*arguments, "3"], processes=2).returncode != 0
    assert spawn(arguments, processes=2).returncode == 0
    straight = [str(start), str(tmp_path / "straight"), jsonio.dumps(how)]
    assert spawn(straight, processes=2).returncode == 0
    assert jsonio.read_object(tmp_path / "run-first.json")["heard"] == [3]
    assert furthest(tmp_path / "run", tmp_path / "straight") <= 1e-6


# -- a user that dies -----------------------------------------------------------------------

QUICK = {"backoff_s": 0.01, "backoff_max_s": 0.02, "budget_s": 0.1}


def test_a_user_that_dies_costs_batches_and_no_more(start: Path, tmp_path: Path) -> None:
    """Down for one batch: it is told and nothing is learnt. Down for two: the run ends and goes on."""
    down: set[str] = set()

    def customer(request: StubRequest) -> str | Fault:
        return Fault(500) if down else f"i said so {request.number}"

    told: list[tuple[int, tuple[str, ...]]] = []

    def hear(log: BatchLog) -> None:
        told.append((log.batch, log.told))
        down.clear()
        if log.batch in (1, 3, 4):
            down.add("it is")

    with StubServer(customer) as server:
        share = UserShare(f"roleplay:openai:stub@{server.url}", options={"model_options": QUICK})
        run = config(
            start,
            tmp_path / "out",
            users=(share,),
            batches=6,
            save_every=50,
            csd={"alpha": 0.0},
            alarms=AlarmConfig(failed_batches=2),
        )
        with pytest.raises(EnvironmentFault, match=r"no episode of the last 2 batches") as caught:
            train_agent(run, on_batch=hear)
        assert "stopped after batch 5" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert [batch for batch, lines in told if lines] == [2, 4, 5]
        assert "no episode of this batch could be counted (" in told[1][1][0]
        down.clear()
        heard: list[int] = []
        result = train_agent(run, on_batch=lambda log: heard.append(log.batch))
    assert heard == [6], "it goes on where it stopped"
    rows = result["curve"]
    assert [row["credit/valid"] for row in rows] == [8, 0, 8, 0, 0, 8]
    assert all("reward" not in row for row in (rows[1], rows[3], rows[4]))
    assert result["usage"]["user_calls"] > 0
    assert [one["batch"] for one in result["alarms"]] == [2, 4, 5]
