"""Users behind a real server on 127.0.0.1, and short ways to ask them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from mimesim.models.base import ChatMessage, ChatModel, Completion, Sampling
from mimesim.models.scripted import Scripted
from mimesim.server.local import serving
from mimesim.users.base import UserSource
from mimesim.users.settings import read_settings
from mimesim.users.sources import make_source

Replies = Sequence[str | Completion] | Callable[[Sequence[ChatMessage], Sampling], str | Completion]


def played_by(model: ChatModel, **settings: Any) -> UserSource:
    """Return a trained user whose model is `model`."""
    read = read_settings(settings, where="test")
    return make_source("trained:stub", model, template="user/trained", settings=read)


@dataclass
class Served:
    """A running server; `lines` is its log."""

    url: str
    model: Scripted | None = None
    lines: list[Mapping[str, Any]] = field(default_factory=list)
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=20, verify=False))

    def post(self, body: Any, **headers: str) -> httpx.Response:
        """Send a request as it stands."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        raw = body if isinstance(body, bytes) else json.dumps(body).encode("ascii")
        return self.client.post(f"{self.url}/chat/completions", headers=named, content=raw)

    def ask(self, messages: Sequence[Any], **more: Any) -> httpx.Response:
        """Ask the user."""
        return self.post({"model": "user", "messages": list(messages), **more})

    def said(self, *words: str, prompt: str = "You want a tea pot.", **more: Any) -> dict[str, Any]:
        """Ask with a transcript that begins with the agent, and return the body of the reply."""
        rows = [{"role": ("user", "assistant")[i % 2], "content": w} for i, w in enumerate(words)]
        answer = self.ask([{"role": "system", "content": prompt}, *rows], **more)
        assert answer.status_code == 200, answer.text
        read: dict[str, Any] = answer.json()
        return {**read["mimesim"], "content": read["choices"][0]["message"]["content"], "all": read}

    def get(self, path: str, token: str = "") -> httpx.Response:
        """Get a page below the root."""
        headers = {"authorization": f"Bearer {token}".encode()} if token else {}
        return self.client.get(self.url.removesuffix("/v1") + path, headers=headers)


@contextmanager
def served(user: Any, **settings: Any) -> Iterator[Served]:
    """Serve a user."""
    lines: list[Mapping[str, Any]] = []
    with serving(user, log=lines.append, **settings) as url:
        one = Served(url, lines=lines)
        with one.client:
            yield one


@contextmanager
def speaking(
    replies: Replies, *, user: Mapping[str, Any] | None = None, **settings: Any
) -> Iterator[Served]:
    """Serve a user whose model writes `replies`."""
    model = Scripted(replies)
    with served(played_by(model, **(user or {})), **settings) as one:
        one.model = model
        yield one
