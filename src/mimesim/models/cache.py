"""A cache of finished answers in one SQLite file; off unless it is asked for.

The key is everything that determines an answer: who answers and with which options, the complete
messages, tools, schema, every sampling argument, seed, trial and attempt. Only complete, successful
answers are stored; a hit is marked and costs nothing. The file holds private text and is readable
by its owner only.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mimesim import jsonio, seeds
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import Identity, Role, Thought, ToolCall, Usage
from mimesim.errors import EnvironmentFault
from mimesim.models.base import ChatMessage, ChatModel, Completion, Sampling

FORMAT = 1
"""Raised when keys or stored answers change their meaning."""

_WAIT_S = 30.0
_TABLE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL)"


def complete(completion: Completion) -> bool:
    """Tell whether an answer came to its own end and says something."""
    ended = completion.finish_reason in ("stop", "tool_calls")
    return ended and (not is_blank(completion.text) or bool(completion.tool_calls))


class CacheStore:
    """The file. Several models and several processes may share it.

    Raises:
        EnvironmentFault: the file cannot be opened, or is something else.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._file = sqlite3.connect(
                self.path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise self._fault(error) from error
        try:
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute(_TABLE)
        except sqlite3.Error as error:
            self._file.close()
            raise self._fault(error) from error

    async def get(self, key: str) -> Completion | None:
        """Return the stored answer, marked as cached and free of cost, or None."""
        rows = await asyncio.to_thread(
            self._run, "SELECT answer FROM answers WHERE key = ?", (key,)
        )
        return _loaded(rows[0][0]) if rows else None

    async def put(self, key: str, completion: Completion) -> None:
        """Store an answer; the first one stored under a key stays."""
        row = (key, _stored(completion))
        await asyncio.to_thread(self._run, "INSERT OR IGNORE INTO answers VALUES (?, ?)", row)

    def close(self) -> None:
        """Close the file; twice is harmless."""
        with self._lock:
            self._file.close()

    def _run(self, statement: str, values: tuple[str, ...]) -> list[Any]:
        try:
            with self._lock:
                return self._file.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._fault(error) from error

    def _fault(self, error: Exception) -> EnvironmentFault:
        return EnvironmentFault(
            f"the answer cache cannot be used: {error}",
            where=str(self.path),
            expected="a writable SQLite file of ours, and free space",
            mend="free space, name another file, or run without a cache",
        )


class Cached:
    """A chat model that asks `model` only for what `store` does not hold.

    A call is cached only when something tells repetitions apart: a seed, or the trial and attempt
    given with `at`. Otherwise five trials would get one answer.

    Attributes:
        hits: answers from the store; misses: answers from the model.
    """

    def __init__(
        self,
        model: ChatModel,
        store: CacheStore,
        *,
        accept: Callable[[Completion], bool] = complete,
        scope: Mapping[str, int] | None = None,
    ) -> None:
        self.model = model
        self.hits = 0
        self.misses = 0
        self._store = store
        self._accept = accept
        self._scope = dict(scope or {})

    @property
    def identity(self) -> Identity:
        """Who answers."""
        return self.model.identity

    def at(self, *, trial: int, attempt: int = 0) -> Cached:
        """Return the same cached model for one trial and attempt."""
        scope = {"trial": trial, "attempt": attempt}
        return Cached(self.model, self._store, accept=self._accept, scope=scope)

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        sampling: Sampling,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        response_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Answer `messages` from the store, else from the model.

        Raises:
            EnvironmentFault: the file became unusable; else as `ChatModel.chat`.
        """
        known = sampling.seed is not None or bool(self._scope)
        key = self._key(messages, sampling, tools, response_schema)
        found = await self._store.get(key) if known else None
        if found is not None:
            self.hits += 1
            return found
        self.misses += 1
        answer = await self.model.chat(
            messages, sampling, tools=tools, response_schema=response_schema
        )
        if known and self._accept(answer):
            await self._store.put(key, answer)
        return answer

    async def aclose(self) -> None:
        """Close the model and the file; twice is harmless."""
        await self.model.aclose()
        self._store.close()

    def _key(
        self,
        messages: Sequence[ChatMessage],
        sampling: Sampling,
        tools: Sequence[Mapping[str, Any]],
        response_schema: Mapping[str, Any] | None,
    ) -> str:
        request = {
            "format": FORMAT,
            "model": asdict(self.model.identity),
            "messages": [asdict(message) for message in messages],
            "sampling": asdict(sampling),
            "tools": list(tools),
            "schema": response_schema,
            "scope": self._scope,
        }
        return seeds.fingerprint(jsonio.canonical(request), 64)


def _stored(answer: Completion) -> str:
    thought = answer.reasoning.reveal() if answer.reasoning is not None else None
    return jsonio.dumps(
        {
            "text": answer.text,
            "finish_reason": answer.finish_reason,
            "reasoning": thought,
            "tool_calls": [asdict(call) for call in answer.tool_calls],
            "usage": asdict(answer.usage),
        }
    )


def _loaded(text: str) -> Completion:
    row = jsonio.loads(text)
    thought = row["reasoning"]
    calls = (ToolCall(**{**call, "owner": Role(call["owner"])}) for call in row["tool_calls"])
    usage = replace(Usage(**row["usage"]), calls=0, cost=0.0, unknown_cost_calls=0)
    return Completion(
        text=row["text"],
        finish_reason=row["finish_reason"],
        reasoning=None if thought is None else Thought(thought),
        tool_calls=tuple(calls),
        usage=usage,
        cached=True,
    )
