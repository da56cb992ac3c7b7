"""A real server on loopback: the usual clients, the door, limits, and everything that goes wrong."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from mimesim.dialogue.types import Identity
from mimesim.errors import EnvironmentFault, InfraError, UsageError
from mimesim.models.base import ChatMessage, Completion, Sampling
from mimesim.models.scripted import Scripted
from mimesim.server.local import serving
from tests.support.served import Served, played_by, served, speaking
from tests.support.stub_server import StubServer, rate_limited, reset

PROMPT = {"role": "system", "content": "You want a tea pot."}
HELLO = {"role": "user", "content": "Hi! How can I help you today?"}
TEXT = "hello,  i want\na tea pot 🫖 – please "


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with speaking(
        lambda messages, sampling: f"<think>cheap</think>{TEXT}", private_token="p"
    ) as one:
        yield one


def events(raw: str) -> list[dict[str, Any]]:
    """Return the events of a stream, and make sure that it was ended."""
    lines = [line.removeprefix("data: ") for line in raw.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


# -- clients -----------------------------------------------------------------------------------


def test_the_official_client(server: Served) -> None:
    client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
    body = {"mimesim": {"episode": "official"}}
    with client:
        whole = client.chat.completions.create(
            model="user",
            messages=[PROMPT, HELLO],
            extra_body=body,  # type: ignore[list-item]
        )
        parts = client.chat.completions.create(
            model="user",
            messages=[PROMPT, HELLO],  # type: ignore[list-item]
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(parts)
        names = [model.id for model in client.models.list()]
        with pytest.raises(openai.NotFoundError, match="trained:stub"):
            client.chat.completions.create(model="x", messages=[HELLO])  # type: ignore[list-item]
    assert whole.choices[0].message.content == TEXT.strip()
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage is not None
    assert whole.usage.total_tokens > 0
    assert (whole.model_extra or {})["mimesim"]["action"] == "say"
    words = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(words) == TEXT.strip()
    assert len(words) > 5
    assert chunks[-1].usage is not None
    assert names == ["trained:stub", "user"]


def test_curl(server: Served) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed")
    body = json.dumps({"model": "user", "stream": True, "messages": [PROMPT, HELLO]})
    command = [curl, "-sS", "-N", f"{server.url}/chat/completions", "-d", body]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    read = events(done.stdout)
    assert all({"id", "object", "created", "model", "choices"} <= set(event) for event in read)
    assert len({event["id"] for event in read}) == 1
    assert read[0]["choices"][0]["delta"]["role"] == "assistant"
    said = "".join(event["choices"][0]["delta"].get("content", "") for event in read)
    assert said == TEXT.strip()
    assert read[-1]["choices"][0]["finish_reason"] == "stop"
    assert read[-1]["mimesim"]["action"] == "say"


LITELLM = """
import sys
import litellm
told = {"model": "openai/user", "api_base": sys.argv[1], "api_key": "none"}
told["messages"] = [{"role": "user", "content": "Hi! How can I help you today?"}]
whole = litellm.completion(**told, mimesim={"instructions": "You want a tea pot."})
parts = litellm.completion(**told, stream=True)
print(ascii([
    whole.choices[0].message.content,
    "".join(part.choices[0].delta.content or "" for part in parts),
]))
"""


def test_litellm(server: Served) -> None:
    if importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LITELLM, server.url],
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ascii([TEXT.strip()] * 2)


# -- the private side --------------------------------------------------------------------------


def test_thoughts_are_read_with_a_token_of_their_own(server: Served) -> None:
    for words in (["Hi?"], ["Hi?", TEXT, "Which one?"]):
        body = server.said(*words, mimesim={"episode": "a-1"})
        assert "cheap" not in json.dumps(body)
    for path in ("/v1/episodes/a-1/private", "/ep/a-1/private"):
        assert server.get(path).status_code == 401
        assert server.get(path, "wrong").status_code == 401
        told = server.get(path, "p").json()
        assert told["calls"] == 2
        assert told["thoughts"] == [{"turn": 0, "text": "cheap"}, {"turn": 1, "text": "cheap"}]
    for odd in ("nobody", "..%2f..%2fetc%2fpasswd", "a%00", "%2e%2e"):
        assert server.get(f"/v1/episodes/{odd}/private", "p").status_code == 404


def test_an_episode_can_stand_in_the_address(server: Served) -> None:
    url = server.url.replace("/v1", "/ep/b-2/v1")
    answer = server.client.post(
        f"{url}/chat/completions", json={"model": "user", "messages": [PROMPT, HELLO]}
    )
    assert answer.json()["mimesim"]["episode"] == "b-2"
    assert server.get("/ep/b-2/private", "p").json()["calls"] == 1
    bad = server.client.post(
        server.url.replace("/v1", "/ep/%2e%2e/v1") + "/chat/completions",
        json={"model": "user", "messages": [HELLO]},
    )
    assert bad.status_code in (400, 404)


def test_own_thoughts_are_put_back_into_the_users_history() -> None:
    def think(messages: Sequence[ChatMessage], sampling: Sampling) -> str:
        turn = sum(m.role == "assistant" for m in messages)
        return f"<think>plan {turn}</think>line {turn}"

    with speaking(think, user={"thinking": True}) as one:
        one.said("a")
        one.said("a", "line 0", "b")
        one.said("a", " line  0", "b", "line 1", "c")
        one.said("x", "line 0", "b")
        assert one.model is not None
        known, unknown = (one.model.requests[i][0] for i in (2, 3))
    assert [
        ("plan 0" in m.content, "plan 1" in m.content) for m in known if m.role == "assistant"
    ] == [
        (True, False),
        (False, True),
    ]
    assert "plan" not in next(m.content for m in unknown if m.role == "assistant")


def test_nothing_private_is_served_without_a_private_token() -> None:
    with speaking(["a <b>"]) as one:
        one.said("Hi?", mimesim={"episode": "e"})
        for path in ("/v1/episodes/e/private", "/ep/e/private"):
            assert one.get(path).status_code == 404
            assert one.get(path, "").status_code == 404


# -- the door ----------------------------------------------------------------------------------


def test_a_token_is_asked_for_on_every_page_that_tells_something() -> None:
    with speaking(lambda m, s: "ok then", token="sécret-1", private_token="other") as one:
        body = {"model": "user", "messages": [PROMPT, HELLO]}
        assert one.post(body).status_code == 401
        for wrong in ("Bearer nope", "Basic sécret-1", "sécret-1", "Bearer", "Bearer sécret-12"):
            raw = wrong.encode()
            answer = one.client.post(
                f"{one.url}/chat/completions", json=body, headers=[(b"authorization", raw)]
            )
            assert answer.status_code == 401, wrong
            assert "cret" not in answer.text
        right = [(b"authorization", "Bearer sécret-1".encode())]
        assert one.client.post(f"{one.url}/chat/completions", json=body, headers=right).is_success
        assert one.get("/v1/models").status_code == 401
        assert one.get("/metrics").status_code == 401
        assert one.get("/v1/episodes/e/private", "sécret-1").status_code == 401
        assert one.get("/health").status_code == one.get("/ready").status_code == 200
        assert "cret" not in json.dumps(one.lines)


def test_an_open_address_needs_a_token() -> None:
    from mimesim.server.local import check_address
    from mimesim.server.settings import ServeSettings

    for host in ("0.0.0.0", "::", "192.0.2.1", "example.com"):
        with pytest.raises(UsageError, match="MIMESIM_API_KEY"):
            check_address(host, ServeSettings(), insecure=False)
        check_address(host, ServeSettings(token="t"), insecure=False)
        check_address(host, ServeSettings(), insecure=True)
    for host in ("127.0.0.1", "::1", "localhost"):
        check_address(host, ServeSettings(), insecure=False)


def test_pages_that_are_not_there(server: Served) -> None:
    for path in ("/", "/v1", "/etc/passwd", "/v1/../../etc/passwd", "/docs"):
        answer = server.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert server.get("/v1/chat/completions").status_code == 405
    assert server.get("/version").json()["version"]
    assert "access-control-allow-origin" not in server.get("/health").headers


def test_the_log_holds_no_words_unless_asked_for() -> None:
    with speaking(["<think>cheap</think>a tea pot please"], log_text=False) as one:
        one.said("Hello stranger?", mimesim={"episode": "e"})
        one.post({"model": "tea pot please", "messages": []})
        one.get("/tea/pot")
    logged = json.dumps(one.lines)
    assert len(one.lines) == 3
    assert one.lines[0]["action"] == "say"
    assert not any(word in logged for word in ("tea", "stranger", "cheap"))
    with speaking(["<think>cheap</think>a tea pot please"], log_text=True) as one:
        one.said("Hello stranger?")
    logged = json.dumps(one.lines)
    assert "tea pot" in logged
    assert "stranger" in logged
    assert "cheap" not in logged


# -- limits ------------------------------------------------------------------------------------


class Slow:
    """A model that answers when it is let; counts who waits, and who was given up."""

    def __init__(self, together: int = 0) -> None:
        self.identity = Identity("scripted", "scripted:slow")
        self.together = together
        self.waiting = 0
        self._all_here = asyncio.Event()
        self.given_up = threading.Event()
        self.asked = threading.Event()

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        sampling: Sampling,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        response_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        self.waiting += 1
        self.asked.set()
        if self.waiting == self.together:
            self._all_here.set()
        try:
            await self._all_here.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        return Completion("all of us")

    async def aclose(self) -> None:
        """Do nothing."""


def test_concurrent_requests_reach_the_model_together() -> None:
    with served(played_by(Slow(together=16))) as one, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda i: one.said("hi"), range(16)))
    assert {answer["content"] for answer in answers} == {"all of us"}


def test_too_long_too_many_too_slow() -> None:
    model = Slow()
    limits: dict[str, Any] = {"max_active": 1, "max_waiting": 0, "timeout_s": 0.4}
    with served(played_by(model), max_body=2000, **limits) as one, ThreadPoolExecutor(1) as pool:
        first = pool.submit(one.ask, [PROMPT, HELLO])
        assert model.asked.wait(5)
        second = one.ask([PROMPT, HELLO])
        assert (second.status_code, second.json()["error"]["code"]) == (429, "queue_full")
        assert int(second.headers["retry-after"]) >= 1
        assert first.result().status_code == 504
        big = one.ask([PROMPT, {"role": "user", "content": "x" * 3000}])
        assert (big.status_code, big.json()["error"]["code"]) == (413, "body_too_large")
        pieces = (b"x" * 500 for _ in range(20))
        assert one.client.post(f"{one.url}/chat/completions", content=pieces).status_code == 413
        assert "mimesim_active 0" in one.get("/metrics").text


def test_each_client_has_so_many_requests_a_minute() -> None:
    with speaking(lambda m, s: "ok then", per_minute=3) as one:
        statuses = [one.ask([PROMPT, HELLO]).status_code for _ in range(5)]
        wait = one.ask([PROMPT, HELLO]).headers["retry-after"]
    assert statuses == [200, 200, 200, 429, 429]
    assert 1 <= int(wait) <= 20


def test_a_client_that_goes_away_frees_its_place() -> None:
    model = Slow()
    with served(played_by(model), max_active=1) as one:
        body = json.dumps({"model": "user", "stream": True, "messages": [PROMPT, HELLO]})
        port = int(one.url.rpartition(":")[2].removesuffix("/v1"))
        with socket.create_connection(("127.0.0.1", port)) as client:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall((head + body).encode())
            assert model.asked.wait(5)
        assert model.given_up.wait(5)
        model.together = 2
        assert one.said("hi")["content"] == "all of us"
        assert "mimesim_active 0" in one.get("/metrics").text


def test_metrics_count(server: Served) -> None:
    server.said("hi")
    text = server.get("/metrics").text
    assert 'mimesim_requests_total{route="chat",status="200"}' in text
    assert 'mimesim_replies_total{action="say"}' in text
    assert "mimesim_reply_seconds_count" in text
    for line in text.splitlines():
        assert line.startswith("#") or len(line.rsplit(" ", 1)) == 2


# -- back-ends ---------------------------------------------------------------------------------

FAST = {"model_options": {"backoff_s": 0.02, "backoff_max_s": 0.05, "api_key_env": ""}}


def test_trouble_of_the_backend_is_waited_out_and_its_thoughts_stay_behind() -> None:
    replies = [reset(), rate_limited(0.02), "<think>cheap</think>a pot", "b pot"]
    with StubServer(replies) as stub:
        with served(f"roleplay:openai:stub@{stub.url}", user_options=FAST) as one:
            assert one.said("Hi?")["content"] == "a pot"
            assert "cheap" not in json.dumps(one.lines)
            chained = f"http:{one.url}"
            with served(chained, user_options=FAST) as front:
                assert front.said("Hi?")["content"] == "b pot"
                assert front.get("/v1/models").json()["data"][0]["id"] == "http"
        assert stub.generations[-1].body["messages"][0]["content"] == "You want a tea pot."


def test_another_mimesim_reads_the_end_of_a_served_user() -> None:
    with (
        speaking(["A pot. ###STOP###"], dialect="tau2") as back,
        served(f"http:{back.url}", user_options=FAST) as front,
    ):
        first = front.said("Hi?")
        last = front.said("Hi?", first["content"], "Here it is.")
    assert (first["content"], first["action"]) == ("A pot.", "say")
    assert (last["content"], last["action"]) == ("", "end")


def test_a_body_that_never_ends_is_given_up() -> None:
    with speaking(["never"], timeout_s=0.3) as one:
        port = int(one.url.split(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"
            client.sendall(head.encode())
            assert b" 408 " in client.recv(4096)
    assert one.lines[-1]["status"] == 408


def test_a_backend_killed_and_restarted_loses_no_episode() -> None:
    def counted(messages: Sequence[ChatMessage], sampling: Sampling) -> str:
        return f"line {sum(m.role == 'assistant' for m in messages)}"

    words = ["Hi?"]
    with ThreadPoolExecutor(1) as pool:
        with serving(played_by(Scripted(counted))) as backend:
            port = int(backend.rpartition(":")[2].removesuffix("/v1"))
            front = served(f"trained:openai:user@{backend}", user_options=FAST)
            one = front.__enter__()
            try:
                words += [one.said(*words)["content"], "And?"]
            except BaseException:
                front.__exit__(None, None, None)
                raise
        try:
            waits = pool.submit(one.said, *words, mimesim={"episode": "e"})
            time.sleep(0.2)  # the request meets a dead back-end
            assert not waits.done()
            with serving(played_by(Scripted(counted)), port=port):
                assert waits.result(timeout=10)["content"] == "line 1"
        finally:
            front.__exit__(None, None, None)


def test_failures_of_the_model_are_no_words() -> None:
    troubles: list[Exception] = [
        InfraError("http://secret-host/v1: no connection", retryable=True),
        InfraError("http://secret-host/v1 refused the request (HTTP 400)"),
        EnvironmentFault("the endpoint refused the key sk-secret"),
        KeyError("secret"),
    ]

    def fail(messages: Sequence[ChatMessage], sampling: Sampling) -> str:
        raise troubles.pop(0)

    with speaking(fail) as one:
        answers = [one.ask([PROMPT, HELLO]) for _ in range(4)]
        one.model = None
        assert one.get("/health").status_code == 200
    assert [a.status_code for a in answers] == [503, 500, 500, 500]
    assert ["retry-after" in a.headers for a in answers] == [True, False, False, False]
    codes = [a.json()["error"]["code"] for a in answers]
    assert codes == ["backend_unavailable", "backend_refused", "backend_refused", "internal_error"]
    assert not any("secret" in a.text for a in answers)


def test_asking_again_after_a_failure_draws_again() -> None:
    with speaking(["Of course! Let me look that up for you."] * 4 + ["a pot"]) as one:
        assert one.ask([PROMPT, HELLO], seed=1).status_code == 500
        assert one.said("Hi! How can I help you today?", seed=1)["content"] == "a pot"
        assert one.model is not None
        seeds = [request[1].seed for request in one.model.requests]
    assert len(set(seeds)) == 5


def test_a_user_that_cannot_be_loaded_is_told() -> None:
    with pytest.raises(UsageError, match="realistic"), serving("scripted:realistc"):
        pass


def test_several_users_share_a_server() -> None:
    with served(["scripted:neutral", "scripted:hostile"]) as one:
        names = [row["id"] for row in one.get("/v1/models").json()["data"]]
        assert names == ["scripted:neutral", "scripted:hostile", "user"]
        for name in names:
            assert one.ask([HELLO], model=name).status_code == 200
        behaving = one.ask([HELLO], model="scripted:neutral+B9:flipped")
        assert behaving.status_code == 200, behaving.text


def test_scripted_conversations_are_the_same_after_a_restart() -> None:
    def talk(restart_after: int) -> list[str]:
        told = {"episode": "e7"}
        words = ["Hi! How can I help you today?"]
        asked = ["May I have your name?", "And your account number?", "It is done, anything else?"]
        for turn, question in enumerate(asked):
            if turn >= restart_after:
                with served("scripted:realistic", seed=3) as later:
                    words.append(later.said(*words, mimesim=told)["content"])
            else:
                words.append(first.said(*words, mimesim=told)["content"])
            words.append(question)
        return words

    with served("scripted:realistic", seed=3) as first:
        assert talk(9) == talk(1)


def test_a_request_while_the_user_is_loaded_is_told_to_wait() -> None:
    loading = threading.Event()

    class Late(Slow):
        async def preflight(self) -> None:
            await asyncio.to_thread(loading.wait, 5)

    answers: list[httpx.Response] = []

    def look(url: str) -> None:
        for path, call in (("/ready", httpx.get), ("/v1/chat/completions", httpx.post)):
            answers.append(call(url + path, verify=False))
        loading.set()

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    starter = threading.Timer(0.3, look, [f"http://127.0.0.1:{port}"])
    starter.start()
    with serving(played_by(Late()), port=port):
        starter.join()
    assert [a.status_code for a in answers] == [503, 503]
    assert all(a.json()["error"]["code"] == "loading" for a in answers)
    assert "retry-after" in answers[0].headers
