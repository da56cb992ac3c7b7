"""Calls functions that somebody else wrote, sync or async, so that none can hold or end a run.

A sync function has a daemon thread of its own, for which nobody waits at the end of the process. An
async one is a task of its own: where it goes on although it was cancelled, it is left behind after
`GRACE_S`. Whatever it raises, even a cancellation or an exit, is its own failure.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from mimesim.errors import EpisodeError

GRACE_S = 1.0
"""How long an async function may tidy up once its time is over."""

_Outcome = tuple[Any, BaseException | None]


async def call(function: Callable[[], Any], failure: Callable[[str], Exception]) -> Any:
    """Call a function and return its answer; an awaitable answer is awaited.

    Args:
        function: sync or async, its arguments bound.
        failure: makes what is raised here of what the function raised, from one line.

    Raises:
        EpisodeError: the function raised one; it passes as it is.
    """
    if inspect.iscoroutinefunction(function):
        answer, error = await _held(function)
    else:
        answer, error = await _in_a_thread(function)
        if error is None and inspect.isawaitable(answer):
            answer, error = await _held(lambda: answer)
    if error is None:
        return answer
    if isinstance(error, EpisodeError | KeyboardInterrupt):
        raise error
    raise failure(_in_words(error)) from error


def _in_words(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an error that cannot tell itself is an error all the same
        return type(error).__name__


async def _held(make: Callable[[], Awaitable[Any]]) -> _Outcome:
    """Await what `make` returns in a task of its own, and no longer than we may ourselves."""

    async def outcome() -> _Outcome:
        try:
            return await make(), None
        except BaseException as error:  # noqa: BLE001 - handed on to whoever waits
            return None, error

    task = asyncio.ensure_future(outcome())
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=GRACE_S)
        finally:
            if not task.done():  # else the end of the loop would wait for it
                asyncio.tasks._unregister_task(task)
        raise
    return task.result()


async def _in_a_thread(function: Callable[[], Any]) -> _Outcome:
    """Call a sync function beside the loop; the outcome is a value, for some errors stop loops."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[_Outcome] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(outcome: _Outcome) -> None:
        if not arrived.done():
            arrived.set_result(outcome)

    def work() -> None:
        try:
            outcome: _Outcome = (context.run(function), None)
        except BaseException as error:  # noqa: BLE001 - handed on to whoever waits
            outcome = (None, error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(deliver, outcome)

    threading.Thread(target=work, daemon=True, name="mimesim-call").start()
    return await arrived
