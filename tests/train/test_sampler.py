"""Training on replies that a token server samples: a stub of vLLM's `/v1/completions`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from mimesim.envs.load import load_tasks
from mimesim.errors import EnvironmentFault
from mimesim.models.base import ServedTokens
from mimesim.models.load import make_token_model
from mimesim.rollout.policy import PolicyConfig
from mimesim.train.collect import GymCollector, World
from mimesim.train.csd import CsdConfig
from mimesim.users.load import make_user
from tests import tiny
from tests.support.stub_server import Fault, StubRequest, StubServer
from tests.support.trainers import Setting, train

pytestmark = pytest.mark.filterwarnings("ignore")
QUICK = {"backoff_s": 0.01, "backoff_max_s": 0.02, "budget_s": 0.2, "api_key_env": ""}
ROWS = [{"task_index": index} for index in (0, 0, 1, 1)]
CAP, END, OPENING = 6, 2, 1
Open = Callable[[Any], tuple[StubServer, GymCollector]]


def speech(request: StubRequest) -> dict[str, Any]:
    """Say something of its own to every seed: whole, cut by the cap, or on as the next speaker."""
    seed = int(request.body["seed"])
    ids = [40 + seed % 200, 41 + seed % 7, 42]
    kind = request.number % 3
    ids = [[*ids, END], [*ids, 43, 44, 45], [*ids, OPENING, 46]][kind]
    scores = {"token_logprobs": [-1.5 - n / 8 for n in range(len(ids))]}
    return {
        "token_ids": ids, "logprobs": scores, "finish_reason": "length" if kind == 1 else "stop",
    }  # fmt: skip


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    made: list[Any] = []

    def start(replies: Any) -> tuple[StubServer, GymCollector]:
        server = StubServer(replies)
        made.append(server)
        server.__enter__()
        tiny.tokenizer().save_pretrained(tmp_path / "words")
        options = {"tokenizer": str(tmp_path / "words"), **QUICK}
        sampler = cast(ServedTokens, make_token_model(f"openai:stub@{server.url}", options=options))
        world = World("support-desk", "compact", make_user("scripted:neutral"))
        tasks = load_tasks("support-desk", profile="compact", split="train", seed=6, count=16)
        policy = PolicyConfig(1.0, CAP)
        collector = GymCollector(world, tasks, tiny.tokenizer(), policy, 1, sampler=sampler)
        made.append(collector)
        return server, collector

    yield start
    for one in reversed(made):
        one.close() if isinstance(one, GymCollector) else one.__exit__(None, None, None)


def test_records_hold_what_the_server_sampled(opened: Open) -> None:
    server, collector = opened(speech)
    samples = collector.collect(ROWS, tiny.talker(), 0)
    bodies = [request.body for request in server.generations]
    assert len({body["seed"] for body in bodies}) == len(bodies), "a seed for every request"
    assert {(b["temperature"], b["top_p"], b["top_k"], b["max_tokens"]) for b in bodies} == {
        (1.0, 1.0, 0, CAP)
    }
    closed = 0
    for sample in samples:
        record = sample.tokens
        assert record is not None
        assert sample.valid
        for one, after in zip(record.spans, [*record.spans[1:], None], strict=True):
            ids = record.completion_ids[one.start : one.end]
            expected = tuple(-1.5 - n / 8 for n in range(len(ids)))
            assert record.logprobs[one.start : one.end] == expected
            assert OPENING not in ids[:-1]
            if after is not None and ids[-1] != END:
                # no stop token was sampled: one stands masked behind the reply
                assert (record.completion_ids[one.end], record.env_mask[one.end]) == (END, 0)
                closed += 1
    assert closed > 2


def test_the_real_trainer_takes_the_log_probs_of_the_server(opened: Open, tmp_path: Path) -> None:
    _, collector = opened(speech)
    run = train(
        tmp_path,
        collector,
        Setting(CsdConfig(0.0), make=lambda: (tiny.talker(), tiny.tokenizer())),
        max_steps=2,
        per_device_train_batch_size=2,
        steps_per_generation=2,
        num_generations=2,
    )
    assert len(run.seen) == 2
    for step in run.seen:
        mask = (step.inputs["tool_mask"] * step.inputs["completion_mask"]).bool()
        told = step.inputs["old_per_token_logps"][mask]
        assert (told * 8 % 1 == 0).all(), "the numbers of the stub, not of a forward pass"
        assert told.max() <= -1.5
        assert step.loss == step.loss


@pytest.mark.parametrize(
    "trouble",
    [Fault(500), Fault(reset=True), {"token_ids": [7, 8], "logprobs": {"token_logprobs": [-1]}}],
    ids=["500", "reset", "lengths"],
)
def test_a_failing_server_makes_invalid_samples(opened: Open, trouble: Any) -> None:
    _, collector = opened([trouble])
    samples = collector.collect(ROWS, tiny.talker(), 0)
    assert [sample.valid for sample in samples] == [False] * len(ROWS)
    assert all(sample.metrics == {} for sample in samples)


def test_a_server_of_text_ends_the_run_before_its_first_batch(opened: Open) -> None:
    _, collector = opened([{"token_ids": None}])
    with pytest.raises(EnvironmentFault, match="return_token_ids"):
        collector.check()
