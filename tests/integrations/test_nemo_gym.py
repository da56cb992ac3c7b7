"""NeMo-Gym's resources server: the contract on a stand-in (the library needs Python 3.13)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

STAND_INS = str(Path(__file__).parent / "stand_ins")
sys.path.append(STAND_INS)

from fastapi import HTTPException  # noqa: E402

from mimesim.envs.load import load_tasks  # noqa: E402
from mimesim.envs.turns.agents import trace_of  # noqa: E402
from mimesim.errors import CallerError  # noqa: E402
from mimesim.integrations.nemo_gym import (  # noqa: E402
    ActRequest,
    BaseVerifyRequest,
    MimesimConfig,
    MimesimResourcesServer,
    SeedRequest,
)

sys.path.remove(STAND_INS)  # nobody else shall meet a FastAPI that is none
for _name in ("fastapi", "nemo_gym"):
    if (sys.modules[_name].__file__ or "").startswith(STAND_INS):
        del sys.modules[_name]

RUN = BaseVerifyRequest(responses_create_params={}, response={})
SETTINGS = {"split": "test", "episodes": 3}


def request(name: str) -> Any:
    return SimpleNamespace(session={"session_id": name})


def server(gym: str = "telepathy", **settings: Any) -> MimesimResourcesServer:
    return MimesimResourcesServer(config=MimesimConfig(gym=gym, settings={**SETTINGS, **settings}))


def test_the_routes_are_those_of_a_resources_server_and_the_tool() -> None:
    assert set(server().setup_webserver().routes) == {
        "/seed_session", "/verify", "/interact_with_env",
    }  # fmt: skip


def test_sessions_are_played_side_by_side_to_their_rewards() -> None:
    tasks = load_tasks("telepathy", split="test", count=3)
    made = server()

    async def one(number: int) -> Any:
        who = request(f"s{number}")
        told = await made.seed_session(who, SeedRequest(task=number))
        assert str(tasks[number].hidden.get("target", "?")) not in told.model_dump_json()
        for choice, content in trace_of(tasks[number]):
            heard = await made.interact_with_env(who, ActRequest(choice=choice, content=content))
        assert not heard.should_continue
        again = await made.interact_with_env(who, ActRequest(choice="action", content="more?"))
        assert not again.should_continue
        return await made.verify(who, RUN)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*map(one, range(3)))

    for result in asyncio.run(all_of_them()):
        assert (result.reward, result.success, result.stop) == (1.0, True, "goal_reached")


def test_our_failure_is_503_and_no_reward() -> None:
    broken = {"search": "tests.integrations.test_sessions:broken"}
    made, who = server("search", gym_options=broken), request("s")

    async def run() -> None:
        await made.seed_session(who, SeedRequest())
        for ask in (
            made.interact_with_env(who, ActRequest(choice="search", content="x")),
            made.verify(who, RUN),
        ):
            with pytest.raises(HTTPException) as told:
                await ask
            assert told.value.status_code == 503

    asyncio.run(run())


def test_a_session_begins_with_a_seed() -> None:
    with pytest.raises(CallerError):
        asyncio.run(server().verify(request("nobody"), RUN))
