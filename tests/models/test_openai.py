"""The network door against a real server: requests, answers, retries, storms, budgets, secrets."""

from __future__ import annotations

import asyncio
import math
import re
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import pytest

from mimesim.dialogue.types import Role, ToolCall, Usage
from mimesim.errors import ContextExceeded, EnvironmentFault, InfraError, MimesimError
from mimesim.models.base import ChatMessage, ChatModel, Completion, Sampling
from mimesim.models.endpoint import EndpointOptions
from mimesim.models.load import make_chat_model, preflight
from mimesim.models.openai import VLLMTokens
from tests.support.stub_server import (
    Fault,
    Reply,
    StubRequest,
    StubServer,
    bad_json,
    context_full,
    error,
    hang,
    rate_limited,
    reset,
)

R = TypeVar("R")
ASK = [ChatMessage("user", "Where is my order?")]
QUICK = {"backoff_s": 0.01, "backoff_max_s": 0.02, "budget_s": 5.0}


def with_model(
    url: str, use: Callable[[ChatModel], Awaitable[R]], *, model: str = "stub", **options: Any
) -> R:
    """Run `use` on a fresh model and close it."""

    async def run() -> R:
        made = make_chat_model(f"openai:{model}@{url}", options={**QUICK, **options})
        try:
            return await use(made)
        finally:
            await made.aclose()

    return asyncio.run(run())


def say(url: str, sampling: Sampling | None = None, **options: Any) -> Completion:
    """Ask once."""
    return with_model(url, lambda model: model.chat(ASK, sampling or Sampling()), **options)


# ------------------------------------------------------------------------------------- requests


def test_a_request_carries_what_was_asked_and_no_more() -> None:
    with StubServer() as server:
        say(server.url)
        body = server.requests[0].body
    assert body == {
        "model": "stub",
        "messages": [{"role": "user", "content": "Where is my order?"}],
        "max_tokens": 512,
    }


def test_every_sampling_argument_arrives() -> None:
    sampling = Sampling(
        temperature=0.7, top_p=0.9, top_k=5, max_tokens=33, seed=2**62, stop=("###",),
        thinking=True, extra={"min_p": 0.1},
    )  # fmt: skip
    with StubServer() as server:
        extra = {"repetition_penalty": 1.1, "chat_template_kwargs": {"style": "x"}}
        say(server.url, sampling, extra_body=extra, max_tokens_field="max_completion_tokens")
        body = server.requests[0].body
    expected = {
        "temperature": 0.7, "top_p": 0.9, "top_k": 5, "seed": 2**62, "stop": ["###"],
        "max_completion_tokens": 33, "min_p": 0.1, "repetition_penalty": 1.1,
        "chat_template_kwargs": {"enable_thinking": True, "style": "x"},
    }  # fmt: skip
    assert {key: value for key, value in body.items() if key in expected} == expected
    assert "max_tokens" not in body


def test_the_seed_can_be_kept_back() -> None:
    with StubServer() as server:
        say(server.url, Sampling(seed=1), send_seed=False)
        assert "seed" not in server.requests[0].body


@pytest.mark.parametrize(
    ("form", "sent"),
    [
        (
            "json_schema",
            {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"a": 1}}},
        ),
        ("json_object", {"type": "json_object"}),
        ("none", None),
    ],
)
def test_a_schema_is_sent_in_the_form_the_server_takes(form: str, sent: Any) -> None:
    with StubServer() as server:
        with_model(
            server.url,
            lambda model: model.chat(ASK, Sampling(), response_schema={"a": 1}),
            response_format=form,
        )
        assert server.requests[0].body.get("response_format") == sent


def test_tool_traffic_goes_both_ways() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    broken = {"id": "c2", "function": {"name": "g", "arguments": "{a: "}}
    history = [
        ChatMessage("assistant", "", (ToolCall("c0", "f", "{}", Role.AGENT),)),
        ChatMessage("tool", "42", tool_call_id="c0"),
    ]
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    with StubServer([{"content": None, "tool_calls": [call, broken]}]) as server:
        answer = with_model(
            server.url, lambda model: model.chat([*ASK, *history], Sampling(), tools=[tool])
        )
        body = server.requests[0].body
    assert body["tools"] == [tool]
    assert body["messages"][1]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert body["messages"][2] == {"role": "tool", "content": "42", "tool_call_id": "c0"}
    assert (answer.text, answer.finish_reason) == ("", "tool_calls")
    assert answer.tool_calls[0] == ToolCall("c1", "f", '{"a": 1}', Role.AGENT)
    assert answer.tool_calls[1].parse_error


def test_lone_surrogates_and_odd_separators_do_not_break_a_request() -> None:
    with StubServer(["a\u2028b \U0001f600"]) as server:
        answer = with_model(
            server.url,
            lambda model: model.chat([ChatMessage("user", "x\ud83d \U0001f600\x85")], Sampling()),
        )
        assert server.requests[0].last == "x\ufffd \U0001f600\x85"
    assert answer.text == "a\u2028b \U0001f600"


# -------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_a_thought_of_its_own(field: str) -> None:
    with StubServer([{"content": "Hello.", field: "I must not say 4711."}]) as server:
        answer = say(server.url)
    assert answer.text == "Hello."
    assert answer.reasoning is not None
    assert answer.reasoning.reveal() == "I must not say 4711."
    assert "4711" not in repr(answer)


@pytest.mark.parametrize(
    ("message", "text", "finish"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", "stop"),
        ({"content": None}, "", "stop"),
        ({"content": "cut", "finish_reason": "length"}, "cut", "length"),
        ({"content": None, "refusal": "I won't."}, "I won't.", "content_filter"),
        ({"content": "x", "finish_reason": None}, "x", "stop"),
        ({"content": "x", "finish_reason": "eos"}, "x", "stop"),
    ],
)
def test_answers_in_odd_shapes(message: dict[str, Any], text: str, finish: str) -> None:
    with StubServer([message]) as server:
        answer = say(server.url)
    assert (answer.text, answer.finish_reason) == (text, finish)


def test_cost_adds_up_and_an_unknown_price_is_counted() -> None:
    """C-RUN-05: three calls at 0.01, 0.02 and unknown, and a redraw at 0.005."""
    prices = {"stub": {"prompt": 10, "completion": 100, "cached": 1}}
    known = [
        {"prompt_tokens": 1000, "completion_tokens": 0},
        {"prompt_tokens": 1000, "completion_tokens": 100},
        {"prompt_tokens": 500, "completion_tokens": 0},
    ]
    replies: list[Reply] = [{"content": "x", "usage": usage} for usage in (*known, None)]
    with StubServer(replies) as server:

        async def four(model: ChatModel) -> list[Usage]:
            return [(await model.chat(ASK, Sampling())).usage for _ in range(4)]

        spent = with_model(server.url, four, prices=prices)
    assert [usage.cost for usage in spent] == [0.01, 0.02, 0.005, None]
    total = sum(spent[1:], spent[0])
    assert total.cost == pytest.approx(0.035)
    assert (total.unknown_cost_calls, total.calls) == (1, 4)


def test_without_a_price_the_cost_is_unknown_and_never_zero() -> None:
    with StubServer() as server:
        usage = say(server.url, prices={"other": {"prompt": 1, "completion": 1}}).usage
    assert (usage.cost, usage.unknown_cost_calls) == (None, 1)


def test_cached_and_reasoning_tokens_are_read() -> None:
    usage = {
        "prompt_tokens": 1_000_000,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 400_000},
        "completion_tokens_details": {"reasoning_tokens": 7},
    }
    prices = {"stub": {"prompt": 2, "completion": 0, "cached": 1}}
    with StubServer([{"content": "x", "usage": usage}]) as server:
        spent = say(server.url, prices=prices).usage
    assert (spent.cached_tokens, spent.reasoning_tokens) == (400_000, 7)
    assert spent.cost == pytest.approx(0.6 * 2 + 0.4)


def test_the_identity_shows_what_changes_a_request_and_no_path() -> None:
    with StubServer() as server:
        make = lambda **options: make_chat_model(f"openai:stub@{server.url}", options=options)  # noqa: E731
        plain, other = make().identity, make(extra_body={"a": 1}, response_format="none").identity
    assert plain.name == f"openai:stub@{server.url}"
    assert (plain.kind, plain.model) == ("llm", "stub")
    assert re.fullmatch(r"127\.0\.0\.1:\d+", plain.endpoint_host)
    assert other.sampling == {"response_format": "none", "extra_body": {"a": 1}}


# -------------------------------------------------------------------------------------- retries


@pytest.mark.parametrize(
    "fault",
    [
        *(error(status, "later") for status in (408, 409, 425, 429, 500, 502, 503)),
        reset(), bad_json(), Fault(200, "<html>"), Fault(200, {"choices": []}), Fault(200, {}),
        Fault(200, {"error": {"message": "upstream", "code": 502}}),
        Fault(200, "null"), Fault(200, {"choices": [{"finish_reason": "stop"}]}),
    ],
    ids=repr,
)  # fmt: skip
def test_transport_trouble_is_retried(fault: Fault) -> None:
    with StubServer([fault, fault, "here"]) as server:
        assert say(server.url).text == "here"
        assert len(server.requests) == 3
        assert server.requests[0].body == server.requests[2].body


def test_a_call_that_hangs_is_cut_and_retried() -> None:
    with StubServer([hang(5), "here"]) as server:
        started = time.monotonic()
        assert say(server.url, timeout_s=0.2).text == "here"
        assert time.monotonic() - started < 3


def test_the_retries_of_the_sdk_are_off() -> None:
    """One attempt of the loop is one request on the wire."""
    with StubServer([Fault(500, {"error": {}}, {"x-should-retry": "true"})]) as server:
        with pytest.raises(InfraError) as caught:
            say(server.url, budget_s=0.3)
        assert len(server.requests) > 1
        assert caught.value.attempts - len(server.requests) in (0, 1)  # the last may be cut


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (context_full(), ContextExceeded),
        (error(400, "Unsupported parameter: seed"), InfraError),
        (error(422, "no"), InfraError),
        (error(401, "no"), EnvironmentFault),
        (error(403, "no"), EnvironmentFault),
        (error(404, "no such model"), EnvironmentFault),
        (error(429, "pay", "insufficient_quota"), InfraError),
    ],
    ids=repr,
)
def test_deterministic_errors_are_not_retried(fault: Fault, kind: type[MimesimError]) -> None:
    with StubServer([fault]) as server:
        with pytest.raises(kind) as caught:
            say(server.url)
        assert len(server.requests) == 1
    if isinstance(caught.value, InfraError):
        assert not caught.value.retryable
    if isinstance(caught.value, EnvironmentFault):
        assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "fault", [error(500, "x"), rate_limited(), rate_limited(0.05), reset()], ids=repr
)
def test_the_budget_is_wall_clock(fault: Fault) -> None:
    with StubServer([fault]) as server:
        started = time.monotonic()
        with pytest.raises(InfraError, match="given up") as caught:
            say(server.url, budget_s=0.4)
        assert 0.2 < time.monotonic() - started < 3
        assert caught.value.retryable
        assert caught.value.attempts - len(server.requests) in (0, 1)  # the last may be cut
        assert str(fault.status) in str(caught.value) or "no connection" in str(caught.value)


def test_a_pause_beyond_the_budget_is_not_waited_for() -> None:
    with StubServer([rate_limited(3600)]) as server:
        started = time.monotonic()
        with pytest.raises(InfraError, match="429"):
            say(server.url, budget_s=2)
        assert time.monotonic() - started < 1.5
        assert len(server.requests) == 1


def test_a_hint_beyond_reason_shuts_the_door_for_no_longer_than_a_call_lasts() -> None:
    async def run(url: str) -> str:
        options = {**QUICK, "budget_s": 0.3}
        model = make_chat_model(f"openai:stub@{url}", options=options)
        try:
            with pytest.raises(InfraError, match="429"):
                await model.chat(ASK, Sampling())
            await asyncio.sleep(0.35)
            return (await model.chat(ASK, Sampling())).text
        finally:
            await model.aclose()

    with StubServer([rate_limited(100_000), "here"]) as server:
        assert asyncio.run(run(server.url)) == "here"


def test_a_hint_beyond_reason_does_not_end_a_call_that_may_last() -> None:
    async def ask(model: ChatModel) -> Completion:
        async with asyncio.timeout(0.3):
            return await model.chat(ASK, Sampling())

    with StubServer([rate_limited(100_000)]) as server, pytest.raises(TimeoutError):
        with_model(server.url, ask, budget_s=600)


def test_retry_after_is_honored() -> None:
    with StubServer([rate_limited(0.3), "here"]) as server:
        assert say(server.url).text == "here"
        first, second = server.requests
    assert second.at - first.at >= 0.29


class Storm:
    """Refuses everything for some seconds after the first request."""

    def __init__(self, seconds: float, retry_after: float | None) -> None:
        self.seconds = seconds
        self.retry_after = retry_after
        self.began: float | None = None
        self.refused = 0

    def __call__(self, request: StubRequest) -> Reply:
        """Answer one request."""
        self.began = request.at if self.began is None else self.began
        if request.at - self.began < self.seconds:
            self.refused += 1
            return rate_limited(self.retry_after)
        return f"answer {request.last}"


def converse(url: str, count: int, **options: Any) -> list[Completion | BaseException]:
    """Let `count` callers ask at once, each through a model object of its own."""

    async def run() -> list[Completion | BaseException]:
        models = [
            make_chat_model(f"openai:stub@{url}", options={**QUICK, **options})
            for _ in range(count)
        ]
        calls = [
            model.chat([ChatMessage("user", str(n))], Sampling()) for n, model in enumerate(models)
        ]
        try:
            return await asyncio.gather(*calls, return_exceptions=True)
        finally:
            for model in models:
                await model.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize("retry_after", [0.2, None])
def test_one_limiter_waits_out_a_storm_of_429(retry_after: float | None) -> None:
    """C-RUN-03: all complete, and the storm costs one refused call per pause, not one per caller."""
    storm = Storm(0.6, retry_after)
    options = {"backoff_s": 0.2, "backoff_max_s": 0.2} if retry_after is None else {}
    with StubServer(storm) as server:
        answers = converse(server.url, 8, budget_s=10, **options)
    assert [a.text if isinstance(a, Completion) else a for a in answers] == [
        f"answer {n}" for n in range(8)
    ]
    assert storm.refused <= 8 + 8  # those in flight when it began, then single probes


@pytest.mark.parametrize("hint", [0.0, -5.0, 0.001])
def test_a_useless_hint_is_believed_once_only(hint: float) -> None:
    with StubServer([rate_limited(hint)]) as server:
        with pytest.raises(InfraError, match="429"):
            say(server.url, budget_s=1.0, backoff_s=0.1, backoff_max_s=10.0)
        assert len(server.requests) <= 6


def test_nesting_beyond_reason_is_a_damaged_answer() -> None:
    with StubServer([Fault(200, "[" * 100_000), "here"]) as server:
        assert say(server.url).text == "here"


def test_bytes_that_are_no_text_are_a_damaged_answer() -> None:
    whole = '{"choices": [{"message": {"role": "assistant", "content": "h\u00e9llo \ufffd"}}]}'
    with StubServer([Fault(200, whole, encoding="latin-1"), Fault(200, whole)]) as server:
        assert say(server.url).text == "h\u00e9llo \ufffd"
        assert len(server.requests) == 2


def test_an_answer_that_quotes_the_key_goes_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "abcd-very-secret")
    told: list[str] = []

    def echo(request: StubRequest) -> Reply:
        told.append(request.headers["authorization"])
        return f"you sent me {request.headers['authorization']}"

    with StubServer(echo) as server, pytest.raises(InfraError) as caught:
        say(server.url)
    assert told == ["Bearer abcd-very-secret"]  # asked once: it would be quoted again
    assert "quotes the key" in str(caught.value)
    assert "very-secret" not in str(caught.value)


def test_a_storm_that_outlasts_the_budget_is_an_infrastructure_error_for_all() -> None:
    with StubServer(Storm(60, 0.1)) as server:
        answers = converse(server.url, 4, budget_s=0.5)
    assert all(isinstance(answer, InfraError) and answer.retryable for answer in answers)


def test_concurrency_is_bounded_per_endpoint_and_the_lowest_wish_holds() -> None:
    with StubServer(latency_s=0.02) as server:
        converse(server.url, 9, concurrency=3)
        assert server.peak <= 3
    with StubServer(latency_s=0.05) as server:
        converse(server.url, 9, concurrency=9)
        assert server.peak > 3


def test_waiting_for_a_place_does_not_use_up_the_budget() -> None:
    with StubServer(latency_s=0.15) as server:
        answers = converse(server.url, 6, concurrency=1, budget_s=0.6)
    assert all(isinstance(answer, Completion) for answer in answers)


def test_a_cancelled_caller_gives_its_place_back() -> None:
    with StubServer(lambda request: hang(5) if request.number == 0 else "here") as server:

        async def run(model: ChatModel) -> str:
            first = asyncio.create_task(model.chat(ASK, Sampling()))
            while not server.requests:  # noqa: ASYNC110 - the server runs in a thread
                await asyncio.sleep(0.01)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            return (await model.chat(ASK, Sampling())).text

        assert with_model(server.url, run, concurrency=1) == "here"


def test_one_model_serves_several_event_loops() -> None:
    with StubServer() as server:
        model = make_chat_model(f"openai:stub@{server.url}", options=QUICK)

        async def once() -> str:
            text = (await model.chat(ASK, Sampling())).text
            await model.aclose()
            await model.aclose()
            return text

        assert [asyncio.run(once()) for _ in range(2)] == ["ok", "ok"]


def test_a_lost_connection_never_becomes_words() -> None:
    """C-MSG-06 (a): the call raises; nothing of the error is an answer."""
    with StubServer() as server:
        url = server.url
    with pytest.raises(InfraError, match="no connection") as caught:
        say(url, budget_s=0.2)
    assert caught.value.retryable


def test_error_texts_hold_nothing_of_the_conversation() -> None:
    def quote(request: StubRequest) -> Reply:
        return error(400, f"cannot parse: {request.last}", request.last)

    with StubServer(quote) as server, pytest.raises(InfraError) as caught:
        say(server.url)
    assert "order" not in str(caught.value)


# -------------------------------------------------------------------------------------- secrets


def test_no_key_or_password_in_any_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """C-SEC-04: the server echoes the key; neither it nor the password is told, nor chained."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-SECRET123")
    faults = [
        error(401, "Incorrect API key provided: sk-test-SECRET123 for user:pw"),
        error(404, "https://user:pw@host, key sk-test-SECRET123"),
        error(400, "bad header Authorization: Bearer sk-test-SECRET123"),
        Fault(401, "plain sk-test-SECRET123 user:pw"),
    ]
    for fault in faults:
        with StubServer([fault]) as server:
            url = server.url.replace("://", "://user:pw@")
            with pytest.raises(MimesimError) as caught:
                say(url)
        chain = "".join(traceback.format_exception(caught.value))
        told = str(caught.value) + repr(caught.value.__dict__)
        assert "SECRET123" not in told + chain
        assert not re.search(r"\bpw\b", told)


def test_the_key_is_sent_and_user_information_goes_as_basic_auth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-right")
    with StubServer(api_key="sk-right") as server:
        assert say(server.url, api_key_env="MY_KEY").text == "ok"
        assert server.requests[0].headers["authorization"] == "Bearer sk-right"
    with StubServer() as server:
        model = say(server.url.replace("://", "://user:pw@"))
        assert model.text == "ok"
        assert server.requests[0].headers["authorization"] == "Basic dXNlcjpwdw=="


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with StubServer() as server:
        assert say(server.url, budget_s=1).text == "ok"


# ------------------------------------------------------------------------------------ preflight


def check(url: str, **options: Any) -> None:
    """Run the preflight."""
    with_model(url, preflight, **options)


def test_preflight_reads_the_list_of_models_only() -> None:
    with StubServer() as server:
        check(server.url)
        assert [request.path for request in server.requests] == ["/v1/models"]


@pytest.mark.parametrize("models", [None, ["other"], []])
def test_preflight_falls_back_to_one_token(models: Sequence[str] | None) -> None:
    with StubServer(models=models) as server:
        check(server.url)
        assert [request.method for request in server.requests] == ["GET", "POST"]
        assert server.requests[1].body["max_tokens"] == 1


def test_preflight_names_a_server_that_is_not_there() -> None:
    with StubServer() as server:
        url = server.url
    started = time.monotonic()
    with pytest.raises(EnvironmentFault, match="no connection") as caught:
        check(url, preflight_s=0.3)
    assert time.monotonic() - started < 2
    line = str(caught.value)
    assert url in line
    assert "to mend" in line
    assert "\n" not in line


def test_preflight_names_a_wrong_key_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-SECRET123")
    with StubServer(api_key="sk-right") as server:
        with pytest.raises(EnvironmentFault, match="refused the key") as caught:
            check(server.url)
        assert len(server.requests) == 1
    assert "SECRET123" not in str(caught.value)
    assert "api_key_env" in str(caught.value)


def test_preflight_names_an_unknown_model() -> None:
    with (
        StubServer(
            [error(404, "The model does not exist", "model_not_found")], models=["x"]
        ) as server,
        pytest.raises(EnvironmentFault, match="does not know 'stub'"),
    ):
        check(server.url)


def test_preflight_needs_a_key_for_other_machines() -> None:
    with pytest.raises(EnvironmentFault, match="OPENAI_API_KEY"):
        check("https://models.example.com/v1")


def test_preflight_waits_for_a_server_that_is_busy() -> None:
    with StubServer(models=None) as server:
        server._replies = [rate_limited(0.1), "ok"]
        check(server.url)
        assert len(server.generations) == 2


# --------------------------------------------------------------------------------- token client


class Bytes:
    """A codec whose tokens are bytes."""

    end_id = 0
    header = 1

    def prompt_ids(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Return all contents and the header."""
        return [*"".join(message.content for message in messages).encode(), 1]

    def suffix_ids(self, text: str) -> list[int]:
        """Return a user message and the header."""
        return [*text.encode(), 1]

    def note_ids(self, text: str) -> list[int]:
        """Return a note."""
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text."""
        return bytes(ids).decode()


def tokens(url: str, **options: Any) -> VLLMTokens:
    """Make a token model on the stub."""
    return VLLMTokens("stub", url, EndpointOptions(**{**QUICK, **options}), codec=Bytes())


def test_tokens_in_and_tokens_out() -> None:
    with StubServer(
        [[5, 6], [7], {"token_ids": [8], "logprobs": None, "finish_reason": "length"}]
    ) as server:

        async def run() -> list[Any]:
            model = tokens(server.url)
            session = model.session("row-1")
            replies = [
                await session.extend([1, 2], Sampling(temperature=1.0, max_tokens=9, seed=3))
            ]
            replies.append(await session.extend([3], Sampling(stop=("x",))))
            replies.append(await session.extend([4], Sampling()))
            session.close()
            await model.aclose()
            return replies

        one, two, three = asyncio.run(run())
        bodies = [request.body for request in server.requests]
    assert (one.ids, one.logprobs, one.finish_reason) == ((5, 6), (-0.5, -0.625), "stop")
    assert (two.ids, three.logprobs, three.finish_reason) == ((7,), None, "length")
    assert [body["prompt"] for body in bodies] == [
        [1, 2], [1, 2, 5, 6, 3], [1, 2, 5, 6, 3, 7, 4],
    ]  # fmt: skip
    expected = {
        "model": "stub", "max_tokens": 9, "temperature": 1.0, "top_p": 1.0, "top_k": 0, "n": 1,
        "min_p": 0.0, "repetition_penalty": 1.0, "return_token_ids": True, "logprobs": 0,
    }  # fmt: skip
    assert {key: bodies[0].get(key) for key in expected} == expected
    assert bodies[1]["stop"] == ["x"]


def test_every_token_request_has_a_seed_of_its_own() -> None:
    with StubServer([[5]]) as server:

        async def run() -> None:
            model = tokens(server.url)
            for key in ("a", "b"):
                session = model.session(key)
                for _ in range(2):
                    await session.extend([1], Sampling(seed=3))
            await model.aclose()

        asyncio.run(run())
        asyncio.run(run())
        sent = [request.body["seed"] for request in server.requests]
    assert len(set(sent)) == 4
    assert sent[:4] == sent[4:]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"token_ids": None}, EnvironmentFault),
        ({"token_ids": [1, 2], "logprobs": {"token_logprobs": [-1.0]}}, InfraError),
        (context_full(), ContextExceeded),
    ],
    ids=repr,
)
def test_token_answers_that_are_none(reply: Reply, kind: type[MimesimError]) -> None:
    with StubServer([reply, reply, [9]] if kind is not InfraError else [reply]) as server:

        async def run() -> None:
            model = tokens(server.url, budget_s=0.2)
            session = model.session("a")
            with pytest.raises(kind):
                await session.extend([1], Sampling())
            if kind is not InfraError:
                with pytest.raises(kind):
                    await session.extend([2], Sampling())
                assert (await session.extend([2], Sampling())).ids == (9,)
            await model.aclose()

        asyncio.run(run())
        assert server.requests[-1].body["prompt"] in ([1], [2])  # a failed turn leaves no trace


def test_an_unknown_log_prob_is_nan() -> None:
    with StubServer([{"token_ids": [1, 2], "logprobs": {"token_logprobs": [None, -1]}}]) as server:

        async def run() -> Any:
            model = tokens(server.url)
            reply = await model.session("a").extend([1], Sampling())
            await model.aclose()
            return reply

        first, second = asyncio.run(run()).logprobs
    assert math.isnan(first)
    assert second == -1.0
