"""OpenEnv: a gym behind its real server, asked by its real client over a loopback socket."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

openenv = pytest.importorskip("openenv", reason="the extra 'openenv' is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

import uvicorn  # noqa: E402

from mimesim import jsonio  # noqa: E402
from mimesim.envs.load import load_tasks  # noqa: E402
from mimesim.envs.turns.agents import trace_of  # noqa: E402
from mimesim.errors import UsageError  # noqa: E402
from mimesim.integrations.openenv import TextAction, TextEnvironment, make_app  # noqa: E402


def call(choice: str, content: str) -> dict[str, str]:
    return {"text": jsonio.dumps({"choice": choice, "content": content})}


@contextmanager
def serving(gym: str, **settings: Any) -> Iterator[str]:
    """Serve a gym and yield its address."""
    config = uvicorn.Config(
        make_app(gym, **settings), host="127.0.0.1", port=0, log_level="critical"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def test_an_oracle_wins_over_the_wire() -> None:
    tasks = load_tasks("search", split="test", count=4)

    async def play(url: str) -> None:
        async with openenv.GenericEnvClient(base_url=url) as client:
            for number in (2, 0):
                start = await client.reset(task=number)
                assert start.observation["metadata"]["task"] == tasks[number].id
                assert "interact_with_env" in start.observation["system"]
                assert tasks[number].public["question"] in start.observation["text"]
                for action in trace_of(tasks[number]):
                    result = await client.step(call(*action))
                assert (result.reward, result.done) == (1.0, True)
                assert result.observation["metadata"]["success"] is True
                assert (await client.state())["step_count"] == 3

    with serving("search", split="test", episodes=4) as url:
        asyncio.run(play(url))


def test_sessions_side_by_side_do_not_mix_and_equal_seeds_are_equal() -> None:
    async def start(url: str, seed: int) -> str:
        async with openenv.GenericEnvClient(base_url=url) as client:
            first = await client.reset(seed=seed)
            await client.step(call("search", "test"))
            return str(first.observation["metadata"]["task"])

    async def several(url: str) -> list[str]:
        return list(await asyncio.gather(*(start(url, seed) for seed in (1, 2, 3, 1))))

    with serving("function", episodes=16) as url:
        found = asyncio.run(several(url))
    assert found[0] == found[3]
    assert len(set(found)) > 1


def test_an_action_of_another_form_is_refused_and_the_session_goes_on() -> None:
    async def play(url: str) -> None:
        async with openenv.GenericEnvClient(base_url=url) as client:
            await client.reset(seed=1)
            with pytest.raises(RuntimeError):
                await client.step({"words": 1})
            result = await client.step({"text": "hello"})
            assert result.observation["metadata"]["valid"] is False

    with serving("function", episodes=1) as url:
        asyncio.run(play(url))


def test_a_failure_is_an_error_and_never_a_reward() -> None:
    settings = {"gym_options": {"search": "tests.integrations.test_sessions:broken"}}

    async def play(url: str) -> None:
        async with openenv.GenericEnvClient(base_url=url) as client:
            await client.reset(seed=1)
            with pytest.raises(RuntimeError):
                await client.step(call("search", "x"))

    with serving("search", episodes=1, **settings) as url:
        asyncio.run(play(url))


def test_without_a_server_it_is_an_ordinary_environment() -> None:
    env = TextEnvironment("function", {"episodes": 2})
    first, second = env.reset(), env.reset()
    assert first.metadata["task"] != second.metadata["task"]  # the tasks go round
    assert env.step(TextAction(**call("search", "test"))).done is False
    with pytest.raises(UsageError):
        env.reset(task=7)
    env.close()
