"""UserRL's gyms with our served user: a stand-in gym, and its own where `MIMESIM_USERRL_PATH` is set."""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")

from mimesim import jsonio
from mimesim.dialogue.types import Identity
from mimesim.errors import InfraError, UsageError
from mimesim.integrations.userrl import ServedGym, address
from mimesim.models.scripted import Scripted
from mimesim.server.local import serving
from mimesim.users.settings import TRAINED, Settings
from mimesim.users.sources import SimulatorSource
from tests.support.dropins import SECRET

CHECKOUT = os.environ.get("MIMESIM_USERRL_PATH", "")


def oracle(*replies: str) -> SimulatorSource:
    """Make a user that answers a gym's prompt in the gym's own form."""
    return SimulatorSource(
        Identity("llm", "scripted:oracle"),
        Scripted(lambda messages, sampling: f"<think>{SECRET}</think>{replies[0]}"),
        TRAINED,
        Settings(thinking=True, guards="off"),  # type: ignore[arg-type]
    )


@dataclass
class Config:
    base_url: str = ""
    model_name: str = ""
    api_key: str = ""
    timeout: float = 10


@dataclass
class Game:
    """Asks its endpoint as the gyms do: any failure is a canned sentence."""

    config: Config = field(default_factory=Config)
    told: bool = True

    def reset(self, seed: int | None = None) -> Any:
        return "guess", {}

    def step(self, action: str) -> Any:
        try:
            with OpenAI(
                api_key=self.config.api_key, base_url=self.config.base_url, max_retries=0
            ) as client:
                reply = client.chat.completions.create(
                    model=self.config.model_name,
                    messages=[
                        {"role": "system", "content": "You know a thing. Answer in JSON."},
                        {"role": "user", "content": action},
                    ],
                )
            said = jsonio.loads(reply.choices[0].message.content or "")["response"]
            info = {"judge_success": True}
        except Exception:  # noqa: BLE001 - as they do
            said, info = "Unable to respond to your question right now.", {"judge_success": False}
        return {"feedback": said}, 0.0, False, False, info if self.told else {}

    async def step_async(self, action: str) -> Any:
        return await asyncio.to_thread(self.step, action)


def test_an_episode_has_its_own_address() -> None:
    assert address("http://h:1/v1/", "run-7") == "http://h:1/ep/run-7/v1"
    assert address("http://h:1", "a/b") == "http://h:1/ep/a%2Fb/v1"


def test_replies_come_without_their_thought_and_thoughts_stay_with_the_episode() -> None:
    import httpx

    with serving(oracle('{"response": "Yes"}'), private_token="look") as url:
        gym = ServedGym(Game(), url, name="run")
        for _ in range(2):
            gym.reset(seed=1)
            answer = gym.step("[action]is it alive?")
            assert answer[0] == {"feedback": "Yes"}
            assert SECRET not in str(answer)
        assert asyncio.run(gym.step_async("[action]really?"))[0] == {"feedback": "Yes"}
        head = {"Authorization": "Bearer look"}
        page = httpx.get(f"{address(url, 'run-0').removesuffix('/v1')}/private", headers=head)
        assert [SECRET in str(one) for one in page.json()["thoughts"]] == [True]


def test_a_failure_is_raised_and_never_a_reply() -> None:
    with serving(oracle("no json at all")) as url:
        gym = ServedGym(Game(), url, name="run")
        gym.reset()
        with pytest.raises(InfraError, match="run-0"):
            gym.step("[action]is it alive?")
    with pytest.raises(InfraError):
        gym.step("[action]is it alive?")  # the server is gone


def test_a_gym_that_hides_its_failures_is_refused() -> None:
    gym = ServedGym(Game(told=False), "http://127.0.0.1:9", name="run")
    gym.reset()
    with pytest.raises(UsageError):
        gym.step("x")


@pytest.mark.skipif(not CHECKOUT, reason="MIMESIM_USERRL_PATH names no checkout")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("folder", "module", "reply", "told"),
    [
        ("TelepathyGym", "telepathygym", '{"response": "Maybe"}', "Maybe"),
        ("TurtleGym", "turtlegym", '{"response": "Maybe"}', "Maybe"),
    ],
)
def test_a_real_gym_is_answered_by_our_user(
    folder: str, module: str, reply: str, told: str
) -> None:
    import importlib

    sys.path.insert(0, str(Path(CHECKOUT) / "gyms" / folder))
    warnings.simplefilter("ignore")
    theirs = importlib.import_module(module)
    config = importlib.import_module(f"{module}.config").get_default_config()
    kind = next(one for name, one in vars(theirs).items() if name.endswith("Env"))
    with serving(oracle(reply)) as url:
        config.api_key = config.api_key or "none"
        gym = ServedGym(kind(config), url, name=module)
        gym.reset(seed=1)
        answer = gym.step("[action]is it alive?")
        assert answer[0]["feedback"] == told
        assert SECRET not in str(answer)
