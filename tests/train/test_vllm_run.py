"""A whole run whose replies a vLLM server samples: all but the transfer of the weights.

That needs two GPUs and vLLM, so `VLLMGeneration`, TRL's class for it, is played by a stand-in that
takes the same arguments. The server is a stub over loopback, everything else is real.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from trl.generation.vllm_generation import VLLMGeneration
from trl.trainer import grpo_trainer

from mimesim.errors import ConfigError, EnvironmentFault, MissingExtraError
from mimesim.models.tiny import TinyConfig, build_tokenizer
from mimesim.train import sampling
from mimesim.train.agent import train_agent
from mimesim.train.alarms import AlarmConfig
from mimesim.train.launch import Launch
from mimesim.train.rl import grpo_arguments
from mimesim.train.sampling import SamplerConfig
from mimesim.train.validation import ValidationConfig
from mimesim.train.warmstart import vocabulary
from tests.support.agent_runs import config
from tests.support.rl_runs import save_start
from tests.support.stub_server import Fault, StubRequest, StubServer

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = TinyConfig(hidden=32, layers=2, heads=4, inner=64, context=512)
PATIENT = {"backoff_s": 0.01, "backoff_max_s": 0.02, "budget_s": 30.0, "preflight_s": 30.0}
WORDS = build_tokenizer(vocabulary())


class StandIn:
    """Takes what TRL gives its own class, and counts how often weights were asked for."""

    made: ClassVar[list[StandIn]] = []
    breaks_at: ClassVar[int] = 0

    def __init__(self, **given: Any) -> None:
        inspect.signature(VLLMGeneration.__init__).bind(None, **given)
        self.given = given
        self.syncs = 0
        self.vllm_client = self
        StandIn.made.append(self)

    def get_server_info(self) -> dict[str, Any]:
        return {"model_config": {"logprobs_mode": "processed_logprobs"}}

    def sync_weights(self) -> None:
        self.syncs += 1
        if self.syncs == StandIn.breaks_at:
            raise ConnectionError("no route to the server\nwith a long tail")


def gpu(monkeypatch: pytest.MonkeyPatch, *, there: bool) -> None:
    """Say that there is a GPU to whoever refuses a run without one, and to nobody else."""
    cuda = SimpleNamespace(is_available=lambda: there)
    monkeypatch.setattr(sampling, "torch", SimpleNamespace(cuda=cuda))


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    StandIn.made, StandIn.breaks_at = [], 0
    monkeypatch.setattr(grpo_trainer, "VLLMGeneration", StandIn)
    monkeypatch.setattr(sampling, "find_spec", lambda name: name)
    gpu(monkeypatch, there=True)
    save_start(tmp_path / "start", WORDS, SMALL)
    return tmp_path / "start"


def speech(request: StubRequest) -> dict[str, Any]:
    ids = [40 + int(request.body["seed"]) % 50, WORDS.eos_token_id][: request.body["max_tokens"]]
    return {"token_ids": ids, "logprobs": {"token_logprobs": [-1.5, -0.25][: len(ids)]}}


def run(start: Path, url: str, options: Any = None, **changed: Any) -> Any:
    patience = {**PATIENT, **(options or {})}
    sampler = SamplerConfig(kind="vllm", base_url=url, model="stub", options=patience)
    given: dict[str, Any] = {"batches": 2, "csd": {"alpha": 0.0}, "launch": Launch(device="auto")}
    return config(start, start.parent / "out", **{**given, "sampler": sampler, **changed})


def test_weights_are_brought_before_replies_are_sampled(start: Path) -> None:
    with StubServer(speech) as server:
        held = ValidationConfig(share=0.3, every=1)
        result = train_agent(run(start, server.url, validation=held))
    (standin,) = StandIn.made
    # before validation 0 (whose weights batch 1 has too), after batch 1, after batch 2
    assert standin.syncs == 3
    assert standin.given["server_base_url"] == server.url.removesuffix("/v1")
    assert standin.given["mode"] == "server"
    assert len(result["curve"]) == 2
    assert all(row["credit/valid"] == 8 for row in result["curve"])
    # one step in two is off policy anyway, and none of them has the stub's log-probs
    assert all(row["ratio/mean"] != pytest.approx(1.0, abs=1e-3) for row in result["curve"])
    assert {body["max_tokens"] for body in (r.body for r in server.generations)} == {1, 6}


def test_a_server_that_dies_costs_batches_and_comes_back(start: Path) -> None:
    down: set[str] = set()

    def dies(request: StubRequest) -> Any:
        return Fault(500) if down else speech(request)

    def hear(log: Any) -> None:
        down.clear()
        if log.batch == 1:
            down.add("it is")

    with StubServer(dies) as server:
        how: dict[str, Any] = {"batches": 3, "alarms": AlarmConfig(failed_batches=2)}
        one = run(start, server.url, {"budget_s": 1.5}, **how)
        result = train_agent(one, on_batch=hear)
    valid = [row["credit/valid"] for row in result["curve"]]
    lost = [row.get("failed/infra_failure", 0) for row in result["curve"]]
    assert [bool(count) for count in valid] == [True, False, True]
    assert [sum(counts) for counts in zip(valid, lost, strict=True)] == [8, 8, 8]


def test_weights_that_cannot_be_brought_end_the_run_with_a_checkpoint(start: Path) -> None:
    StandIn.breaks_at = 3
    with StubServer(speech) as server:
        one = run(start, server.url, batches=4, save_every=50)
        with pytest.raises(EnvironmentFault, match="no route to the server") as caught:
            train_agent(one)
        assert "\n" not in str(caught.value)
        assert "the same command goes on" in str(caught.value)
        StandIn.breaks_at = 0
        heard: list[int] = []
        result = train_agent(one, on_batch=lambda log: heard.append(log.batch))
    assert heard == [3, 4], "both batches before were kept"
    assert [row["batch"] for row in result["curve"]] == [1, 2, 3, 4]


def test_a_server_that_is_not_there_is_told_before_trl_waits_for_it(start: Path) -> None:
    with StubServer(speech) as server:
        url = server.url
    with pytest.raises(EnvironmentFault, match=r"127\.0\.0\.1") as caught:
        train_agent(run(start, url, {"preflight_s": 0.3}))
    assert "\n" not in str(caught.value)
    assert StandIn.made == []


def test_surroundings_without_vllm_or_gpu_are_told(
    start: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = run(start, "http://127.0.0.1:9/v1")
    gpu(monkeypatch, there=False)
    with pytest.raises(EnvironmentFault, match="from a GPU, and there is none here"):
        train_agent(one)
    monkeypatch.setattr(sampling, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"mimesim\[vllm\]"):
        train_agent(one)
    assert not one.out.exists()


def test_trl_is_told_of_the_server(start: Path) -> None:
    one = run(start, "http://host:8000/v1/")
    told = grpo_arguments(one, place=one.launch, **one.sampler.arguments())
    assert (told.use_vllm, told.vllm_mode, told.use_cpu) == (True, "server", False)
    assert told.vllm_server_base_url == "http://host:8000"
    assert told.vllm_importance_sampling_mode == "token_truncate"
    assert (told.temperature, told.top_p, told.top_k, told.min_p) == (1.0, 1.0, 0, None)
    assert not grpo_arguments(one, place=one.launch, **SamplerConfig().arguments()).use_vllm


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "vllm", "model": "m"}, "'base_url' is missing"),
        ({"kind": "vllm", "base_url": "http://h/v1"}, "'model' is missing"),
        ({"model": "m"}, "'model' names a server that nobody asks"),
        ({"group_port": 0}, "'group_port' cannot be 0"),
    ],
)
def test_samplers_that_cannot_be(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SamplerConfig(**given)


def test_a_server_needs_a_gpu_in_the_recipe(start: Path) -> None:
    with pytest.raises(ConfigError, match=r"launch\.device = 'auto'"):
        run(start, "http://h/v1", launch=Launch())
