"""verifiers v1 with our user in place of its own, against the installed library."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

vf = pytest.importorskip("verifiers.v1", reason="the extra 'verifiers' is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

from verifiers.v1.envs.user_sim.env import UserSimEnv, UserSimEnvConfig  # noqa: E402
from verifiers.v1.utils.loaders import load_environment, resolve_env_config  # noqa: E402

from mimesim.users.base import UserSource  # noqa: E402
from tests.support.dropins import ANSWERS, SECRET, WORDS, breaking, thinker  # noqa: E402
from tests.support.stub_server import StubServer  # noqa: E402

PLUGINS = Path(__file__).parent / "plugins"


@pytest.fixture(autouse=True)
def _plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(PLUGINS))
    yield
    for path in PLUGINS.glob("*.py"):
        sys.modules.pop(path.stem, None)


def thinking(name: str, *, options: Any = None) -> UserSource:
    return thinker()


def gone(name: str, *, options: Any = None) -> UserSource:
    return breaking(after=1)


def play(user: str, **settings: Any) -> tuple[Any, StubServer]:
    env = load_environment(
        resolve_env_config(
            {
                "id": "mimesim-users",
                "taskset": {"id": "returns-desk"},
                "assistant": {"harness": {"id": "chat-here"}},
                "user": user,
                **settings,
            }
        )
    )

    async def run(url: str) -> Any:
        client = vf.EvalClientConfig(base_url=url, api_key_var="NO_SUCH_KEY")
        context = vf.ModelContext(model="stub", client=client)
        async with env.serving():
            return await env.run_episode(next(iter(env.taskset)), context)

    with StubServer(list(ANSWERS), models=None) as server:
        return asyncio.run(run(server.url)), server


def test_the_contract_is_that_of_its_own_user_sim() -> None:
    assert {"assistant", "user"} <= set(UserSimEnvConfig.model_fields)
    assert callable(UserSimEnv.run)
    assert {"last_reply", "terminated"} <= {*vars(vf.Segment), *vf.Segment.__dataclass_fields__}


def test_an_episode_is_talked_to_its_end_and_scored_by_the_task() -> None:
    played, server = play(f"{__name__}:thinking")
    (trace,) = played.traces
    assert played.ok, played.errors
    assert trace.reward == 1.0
    assert (trace.metrics["user_turns"], trace.info["user_end"]) == (3.0, "user_stop")
    last = server.requests[-1].body["messages"]
    assert [m["role"] for m in last] == ["system", *["user", "assistant"] * 2, "user"]
    assert [m["content"] for m in last if m["role"] == "user"] == list(WORDS)
    assert SECRET not in str([request.body for request in server.requests])
    assert SECRET not in played.model_dump_json()


def test_the_agent_does_not_see_what_the_user_knows() -> None:
    _, server = play(f"{__name__}:thinking")
    assert "whole price" not in str(server.requests[0].body)


def test_a_failure_of_ours_is_no_reward() -> None:
    played, server = play(f"{__name__}:gone")
    assert not played.ok
    assert "endpoint of the user is gone" in str(played.errors)
    assert all(trace.rewards == {} for trace in played.traces)
    assert len(server.requests) == 1


def test_the_cap_is_told() -> None:
    played, _ = play("scripted:neutral", max_turns=2)
    assert played.traces[0].info["user_end"] == "max_turns"
    assert played.traces[0].metrics["user_turns"] == 2.0
