"""The door of a server: who may come in, how often, and how many at once."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mimesim.server.settings import Refusal, ServeSettings

_CLIENTS = 4096
_MINUTE = 60.0


class Gate:
    """Checks tokens, counts requests of each client, and lets a bounded number work or wait."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings
        self._free = asyncio.Semaphore(settings.max_active)
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self.active = 0
        self.waiting = 0

    def admit(self, authorization: str) -> None:
        """Let a caller in.

        Raises:
            Refusal: 401.
        """
        if self._settings.token and not _bears(authorization, self._settings.token):
            raise Refusal(401, "a token is needed: Authorization: Bearer ...", "invalid_api_key")

    def admit_to_thoughts(self, authorization: str) -> None:
        """Let somebody read the private side.

        Raises:
            Refusal: 404, nobody can; 401, not with this token.
        """
        if not self._settings.private_token:
            raise Refusal(404, "no such page", "not_found")
        if not _bears(authorization, self._settings.private_token):
            raise Refusal(401, "the private token is needed", "invalid_api_key")

    def count(self, client: str) -> None:
        """Count a request of a client.

        Raises:
            Refusal: 429, too many in a minute.
        """
        rate = self._settings.per_minute
        if not rate:
            return
        now = time.monotonic()
        left, since = self._clients.pop(client, (float(rate), now))
        left = min(float(rate), left + (now - since) * rate / _MINUTE)
        self._clients[client] = (left - 1 if left >= 1 else left, now)
        while len(self._clients) > _CLIENTS:
            self._clients.popitem(last=False)
        if left < 1:
            told = f"more than {rate} requests a minute"
            wait = max(1, round((1 - left) * _MINUTE / rate))
            raise Refusal(429, told, "rate_limit_exceeded", retry_after=wait)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold one of the places in which replies are made.

        Raises:
            Refusal: 429, too many wait already.
        """
        if self._free.locked() and self.waiting >= self._settings.max_waiting:
            raise Refusal(429, "the queue is full", "queue_full", retry_after=1)
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1
            self._free.release()


def _bears(authorization: str, token: str) -> bool:
    """Tell whether a header bears a token, in a time that does not depend on where it differs.

    Servers decode the bytes of a header as Latin-1.
    """
    scheme, _, given = authorization.partition(" ")
    same = hmac.compare_digest(given.strip().encode("latin-1", "replace"), token.encode("utf-8"))
    return same and scheme.lower() == "bearer"
