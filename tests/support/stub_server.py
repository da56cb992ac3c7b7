"""A real HTTP server on 127.0.0.1 that plays an OpenAI-compatible endpoint, good or bad.

    with StubServer(["Hello.", rate_limited(0.1), "Bye."]) as server:
        model = make_chat_model(f"openai:stub@{server.url}")
        ...
        assert server.requests[0].body["seed"] == 7

A reply is a text, a message as a dict, a list of token ids, or a `Fault`. Replies are a list used up
in order of arrival (the last one repeats), or a function of the request. Anything else about a
request can be read from `requests` afterwards.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class StubRequest:
    """One request as it arrived. `number` counts from 0; `at` is the monotonic time."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    number: int
    at: float

    @property
    def last(self) -> str:
        """The text of the last message."""
        return str(self.body["messages"][-1]["content"])


@dataclass(frozen=True)
class Fault:
    """Misbehaviour instead of an answer.

    Attributes:
        status: HTTP status of an error answer.
        body: its body, JSON or raw text.
        delay_s: wait before answering; with `status` 0 hang and then close.
        reset: close the connection with a TCP reset.
        encoding: of the body; what it does not have is left out.
    """

    status: int = 500
    body: Any = field(default_factory=lambda: {"error": {"message": "stub trouble"}})
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    reset: bool = False
    encoding: str = "utf-8"


Reply = str | dict[str, Any] | list[int] | Fault
Replies = Sequence[Reply] | Callable[[StubRequest], Reply]


def error(status: int, message: str, code: str = "", **headers: str) -> Fault:
    """Return an error answer in the shape OpenAI uses."""
    inner = {"message": message, "type": "stub_error", "code": code or None}
    return Fault(status, {"error": inner}, {k.replace("_", "-"): v for k, v in headers.items()})


def rate_limited(retry_after: float | None = None) -> Fault:
    """Return a 429, with `Retry-After` when given."""
    headers = {} if retry_after is None else {"Retry_After": str(retry_after)}
    return error(429, "slow down", "rate_limit_exceeded", **headers)


def context_full() -> Fault:
    """Return the 400 of a prompt that is too long."""
    message = "This model's maximum context length is 64 tokens, your prompt has 80 tokens."
    return error(400, message, "context_length_exceeded")


def hang(seconds: float) -> Fault:
    """Say nothing for a while, then close."""
    return Fault(0, delay_s=seconds)


def reset() -> Fault:
    """Drop the connection."""
    return Fault(reset=True)


def bad_json() -> Fault:
    """Return a 200 whose body is cut."""
    return Fault(200, '{"choices": [{"message": {"role": "assistant", "content": "Hel')


class StubServer:
    """The server; a context manager. `url` ends in /v1, `peak` is the most requests at once.

    Args:
        replies: what it answers.
        api_key: key that it demands; its 401 echoes the wrong one.
        models: names listed under /models; None = no such list (404).
    """

    def __init__(
        self,
        replies: Replies = ("ok",),
        *,
        api_key: str = "",
        models: Sequence[str] | None = ("stub",),
        latency_s: float = 0.0,
    ) -> None:
        self.requests: list[StubRequest] = []
        self.peak = 0
        self._replies = replies
        self._api_key = api_key
        self._models = models
        self._latency_s = latency_s
        self._lock = threading.Lock()
        self._answered = 0
        self._active = 0
        self._stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.stub = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def generations(self) -> list[StubRequest]:
        """The requests for completions, without those for the list of models."""
        return [request for request in self.requests if request.method == "POST"]

    def __enter__(self) -> StubServer:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, wake whoever hangs, and free the port."""
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def respond(self, request: StubRequest) -> Fault:
        """Return the whole answer to one request."""
        wrong = self._wrong_key(request)
        if wrong is not None:
            return wrong
        if request.path.endswith("/models"):
            if self._models is None:
                return error(404, "no such page")
            listed = [{"id": name, "object": "model"} for name in self._models]
            return Fault(200, {"object": "list", "data": listed})
        reply = self._reply(request)
        if isinstance(reply, Fault):
            return reply
        tokens = request.path.endswith("/completions") and "prompt" in request.body
        return Fault(200, (_token_answer if tokens else _chat_answer)(reply, request))

    def handle(self, request: StubRequest) -> Fault:
        """Log a request and return its answer after the latency."""
        with self._lock:
            self._active += 1
            self.peak = max(self.peak, self._active)
        try:
            answer = self.respond(request)
            self._stopping.wait(self._latency_s + answer.delay_s)
            return answer
        finally:
            with self._lock:
                self._active -= 1

    def log(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> StubRequest:
        """Keep a request."""
        with self._lock:
            number = len(self.requests)
            request = StubRequest(method, path, headers, body, number, time.monotonic())
            self.requests.append(request)
        return request

    def _reply(self, request: StubRequest) -> Reply:
        if callable(self._replies):
            return self._replies(request)
        with self._lock:
            place = min(self._answered, len(self._replies) - 1)
            self._answered += 1
        return self._replies[place]

    def _wrong_key(self, request: StubRequest) -> Fault | None:
        sent = request.headers.get("authorization", "")
        if not self._api_key or sent == f"Bearer {self._api_key}":
            return None
        return error(
            401, f"Incorrect API key provided: {sent.removeprefix('Bearer ')}", "invalid_api_key"
        )


def _chat_answer(reply: str | dict[str, Any] | list[int], request: StubRequest) -> dict[str, Any]:
    given = {"content": reply} if isinstance(reply, str) else dict(reply)  # type: ignore[arg-type]
    finish = given.pop("finish_reason", "tool_calls" if given.get("tool_calls") else "stop")
    usage = given.pop("usage", _usage(request.body.get("messages"), given.get("content")))
    return {
        "id": f"stub-{request.number}",
        "object": "chat.completion",
        "created": 0,
        "model": request.body.get("model"),
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **given}}
        ],
        "usage": usage,
    }


def _token_answer(reply: str | dict[str, Any] | list[int], request: StubRequest) -> dict[str, Any]:
    given = reply if isinstance(reply, dict) else {}
    ids = reply if isinstance(reply, list) else list(str(reply).encode("utf-8"))
    choice = {
        "index": 0,
        "text": "",
        "finish_reason": "stop",
        "token_ids": ids if request.body.get("return_token_ids") else None,
        "logprobs": {"token_logprobs": [-0.5 - n / 8 for n in range(len(ids))]},
        **given,
    }
    return {
        "id": f"stub-{request.number}",
        "object": "text_completion",
        "created": 0,
        "model": request.body.get("model"),
        "choices": [choice],
        "usage": {"prompt_tokens": len(request.body["prompt"]), "completion_tokens": len(ids)},
    }


def _usage(messages: Any, content: Any) -> dict[str, int]:
    asked = sum(len(str(message.get("content")).split()) for message in messages or ())
    said = len(str(content or "").split())
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    stub: StubServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients that give up are part of the play."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = 30.0

    def do_GET(self) -> None:
        """Answer the list of models."""
        self._play("GET", {})

    def do_POST(self) -> None:
        """Answer a completion."""
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        self._play("POST", json.loads(raw or b"{}"))

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""

    def _play(self, method: str, body: Any) -> None:
        headers = {key.lower(): value for key, value in self.headers.items()}
        stub = self.server.stub
        answer = stub.handle(stub.log(method, self.path, headers, body))
        if answer.reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            self.close_connection = True
            return
        if answer.status == 0:
            self.close_connection = True
            return
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        raw = text.encode(answer.encoding, "ignore")
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        for key, value in answer.headers.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(raw)
