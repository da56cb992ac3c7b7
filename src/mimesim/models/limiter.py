"""One limiter per endpoint: how many calls are in flight, and a pause that all callers keep.

When a server says 429, everybody waits as long as it asked for; then one caller tries alone, and
the others follow only after it was served. So a storm costs one refused call per pause instead of
one per caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

_LIMITERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Limiter]] = WeakKeyDictionary()


def limiter_for(url: str, concurrency: int) -> Limiter:
    """Return the limiter that all users of `url` in the running loop share.

    The lowest `concurrency` that any of them asks for holds.
    """
    limiters = _LIMITERS.setdefault(asyncio.get_running_loop(), {})
    limiter = limiters.setdefault(url, Limiter(concurrency))
    limiter.limit = min(limiter.limit, concurrency)
    return limiter


class Limiter:
    """Bounded concurrency and a shared pause; use `slot` around a call, `turn` around an attempt."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.failed_probes = 0  # in a row, since anybody was served; makes pauses grow
        self._active = 0
        self._resume_at = 0.0  # time of the loop's clock
        self._throttled = False  # a 429 was seen and nobody has been served since
        self._probing = False
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the places for a whole call, retries included."""
        while self._active >= self.limit:
            await self._changed.wait()
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1
            self._wake()

    @asynccontextmanager
    async def turn(self, deadline: float) -> AsyncIterator[None]:
        """Wait until one attempt may be sent; leaving without an error means it was served.

        Raises:
            TimeoutError: the pause lasts beyond `deadline` (clock of the loop).
        """
        probe = await self._admit(deadline)
        self.failed_probes += probe
        try:
            yield
            if probe:
                self._throttled, self.failed_probes = False, 0
        finally:
            if probe:
                self._probing = False
            self._wake()

    def throttle(self, seconds: float) -> None:
        """Make all callers wait; called when the server asked for it."""
        self._throttled = True
        now = asyncio.get_running_loop().time()
        self._resume_at = max(self._resume_at, now + seconds)

    async def _admit(self, deadline: float) -> bool:
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            if now >= deadline or self._resume_at > deadline:
                raise TimeoutError
            if now < self._resume_at:
                await asyncio.sleep(self._resume_at - now)
            elif not self._throttled:
                return False
            elif not self._probing:
                self._probing = True
                return True
            else:
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()

    def _wake(self) -> None:
        """Let everybody who waits look again."""
        self._changed.set()
        self._changed = asyncio.Event()
