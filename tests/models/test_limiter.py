"""The shared limiter: places, the common pause, one probe at a time."""

from __future__ import annotations

import asyncio

import pytest

from mimesim.models.limiter import Limiter, limiter_for


def test_all_users_of_an_address_in_one_loop_share_a_limiter() -> None:
    async def run() -> tuple[Limiter, Limiter, Limiter]:
        return limiter_for("http://a", 8), limiter_for("http://a", 2), limiter_for("http://b", 8)

    one, two, other = asyncio.run(run())
    assert one is two is not other
    assert (one.limit, other.limit) == (2, 8)
    assert asyncio.run(run())[0] is not one


def test_after_a_pause_one_caller_tries_alone_until_it_is_served() -> None:
    limiter = Limiter(9)
    together: list[int] = []
    inside = 0

    async def attempt() -> None:
        nonlocal inside
        async with limiter.turn(asyncio.get_running_loop().time() + 5):
            inside += 1
            together.append(inside)
            number = len(together)
            await asyncio.sleep(0.02)
            inside -= 1
            if number <= 2:
                raise ConnectionError

    async def run() -> None:
        limiter.throttle(0.05)
        calls = (attempt() for _ in range(6))
        await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(run())
    # two probes fail, the third is served, then the others go together
    assert together == [1, 1, 1, 1, 2, 3]
    assert limiter.failed_probes == 0


def test_failed_probes_are_counted() -> None:
    limiter = Limiter(1)

    async def run() -> None:
        for _ in range(3):
            limiter.throttle(0)
            with pytest.raises(ConnectionError):
                async with limiter.turn(asyncio.get_running_loop().time() + 1):
                    raise ConnectionError

    asyncio.run(run())
    assert limiter.failed_probes == 3


def test_a_pause_beyond_the_deadline_is_refused_at_once() -> None:
    limiter = Limiter(1)

    async def run() -> float:
        loop = asyncio.get_running_loop()
        limiter.throttle(60)
        started = loop.time()
        with pytest.raises(TimeoutError):
            async with limiter.turn(started + 1):
                raise AssertionError("must not be admitted")
        return loop.time() - started

    assert asyncio.run(run()) < 0.5


def test_waiting_for_a_probe_ends_at_the_deadline() -> None:
    limiter = Limiter(2)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        limiter.throttle(0)

        async def probe() -> None:
            async with limiter.turn(loop.time() + 5):
                await asyncio.sleep(0.3)

        probing = asyncio.create_task(probe())
        await asyncio.sleep(0.01)
        with pytest.raises(TimeoutError):
            async with limiter.turn(loop.time() + 0.05):
                raise AssertionError("must not be admitted")
        await probing

    asyncio.run(run())
