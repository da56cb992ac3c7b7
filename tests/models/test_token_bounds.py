"""Token servers that lie: what a reply of the policy may hold, over real HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mimesim.errors import EnvironmentFault, InfraError
from mimesim.models.base import Continuation, Sampling
from mimesim.models.load import make_token_model, preflight
from tests import tiny
from tests.support.stub_server import Fault, Reply, StubServer, hang

QUICK = {"budget_s": 0.2, "backoff_s": 0.01, "backoff_max_s": 0.02, "preflight_s": 0.3}
OPENING, END = 1, 2  # of the tiny tokenizer


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("words")
    tiny.tokenizer().save_pretrained(folder)
    return str(folder)


def ask(words: str, reply: Reply, *, cap: int = 9, first: bool = False) -> tuple[Any, list[Any]]:
    """Return what one request gives, and the requests as they arrived."""

    async def run(url: str) -> Any:
        model: Any = make_token_model(
            f"openai:stub@{url}", options={"tokenizer": words, "api_key_env": "", **QUICK}
        )
        try:
            if first:
                return await preflight(model)
            sampling = Sampling(max_tokens=cap, seed=1, ends=(OPENING,))
            return await model.session("a").extend([5, 6], sampling)
        finally:
            await model.aclose()

    with StubServer([reply]) as server:
        return asyncio.run(run(server.url)), [request.body for request in server.generations]


def answer(ids: list[int], scores: list[float | None] | None = None, **more: Any) -> dict[str, Any]:
    scores = [-0.5] * len(ids) if scores is None else scores
    return {"token_ids": ids, "logprobs": {"token_logprobs": scores}, **more}


LIES = {
    "2 token ids without a log-prob each": answer([7, 8], [-1.0]),
    "another model": answer([7, len(tiny.tokenizer())]),
    "no token was sampled": answer([]),
    "10 tokens for max_tokens 9": answer([7] * 10),
    "token ids that are none": answer([7, -1]),
    "a log-prob above 0": answer([7], [0.5]),
    "finish_reason 'abort'": answer([7], finish_reason="abort"),
}


@pytest.mark.parametrize("told", LIES)
def test_a_lie_is_an_infrastructure_failure_that_says_what_is_wrong(words: str, told: str) -> None:
    with pytest.raises(InfraError, match=told) as caught:
        ask(words, LIES[told])
    assert "\n" not in str(caught.value)


def test_nan_is_not_json(words: str) -> None:
    raw = '{"choices": [{"token_ids": [7], "logprobs": {"token_logprobs": [NaN]}}]}'
    with pytest.raises(InfraError, match="damaged answer"):
        ask(words, Fault(200, raw))


def test_a_server_that_hangs_is_an_infrastructure_failure(words: str) -> None:
    with pytest.raises(InfraError, match="given up"):
        ask(words, hang(1.0))


@pytest.mark.parametrize("first", [False, True])
def test_a_server_without_token_ids_names_the_flag(words: str, first: bool) -> None:
    with pytest.raises(EnvironmentFault, match="return_token_ids"):
        ask(words, {"token_ids": None}, first=first)


def test_the_check_before_a_run_finds_another_model(words: str) -> None:
    with pytest.raises(EnvironmentFault, match="another model"):
        ask(words, answer([4000]), first=True)
    _, (body,) = ask(words, answer([7]), first=True)
    assert (body["max_tokens"], body["return_token_ids"]) == (1, True)


@pytest.mark.parametrize(
    ("sent", "kept", "finish"),
    [
        (answer([7, 8, END]), (7, 8, END), "stop"),
        (answer([7, 8], finish_reason="length"), (7, 8), "length"),
        (answer([7, OPENING, 8, END]), (7, OPENING), "stop"),
        (answer([7, 8, OPENING]), (7, 8, OPENING), "stop"),
        (answer([OPENING, 8]), (OPENING,), "stop"),
        (answer([7, END, 8, OPENING]), (7, END), "stop"),
    ],
)
def test_a_reply_ends_where_the_policy_stops_being_itself(
    words: str, sent: dict[str, Any], kept: tuple[int, ...], finish: str
) -> None:
    reply, (body,) = ask(words, sent)
    assert reply == Continuation(kept, (-0.5,) * len(kept), finish)
    assert body["stop_token_ids"] == [OPENING]
