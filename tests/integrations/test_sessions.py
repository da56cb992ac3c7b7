"""A gym played from outside: through the driver, with its failures, in order and in parallel."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.envs.gyms.search.backends import Found
from mimesim.envs.load import REGISTRY, load_gym, load_tasks
from mimesim.envs.turns.agents import trace_of
from mimesim.errors import CallerError, InfraError, UnknownNameError, UsageError
from mimesim.integrations.sessions import Heard, SyncGym, TextGym, open_gym


class Broken:
    """A search back end whose server never answers."""

    mode = "broken"

    async def search(self, query: str) -> list[Found] | None:
        raise InfraError("the server is out of credit")

    async def aclose(self) -> None:
        """Release nothing."""


def broken(rest: str, options: Any) -> Broken:
    return Broken()


def call(choice: str, content: str) -> str:
    """Write an action as a model writes it."""
    return jsonio.dumps({"choice": choice, "content": content})


def played(gym: TextGym, number: int, texts: list[str]) -> tuple[Any, list[Heard]]:
    """Play texts and return session and answers."""

    async def play() -> tuple[Any, list[Heard]]:
        session = await gym.open(number)
        heard = [await session.step(text) for text in texts]
        await session.aclose()
        await gym.aclose()
        return session, heard

    return asyncio.run(play())


def test_an_episode_is_played_and_recorded_as_everywhere() -> None:
    gym = open_gym("search", "tests", {"split": "test", "episodes": 3, "seed": 4})
    assert gym.tasks == tuple(load_tasks("search", split="test", seed=4, count=3))
    texts = [call(*action) for action in trace_of(gym.tasks[1])]
    session, heard = played(gym, 1, texts)
    assert "interact_with_env" in session.opened.system
    assert gym.tasks[1].public["question"] in session.opened.text
    assert [one.reward for one in heard] == [0.0, 0.0, 1.0]
    end = heard[-1]
    assert (end.terminated, end.truncated, end.success, end.reason) == (
        True, False, True, "goal_reached",
    )  # fmt: skip
    record = session.episode
    assert (record.outcome.reward, record.agent.name, record.judge.name) == (1.0, "tests", "rule")


def test_a_reasoning_text_is_read_and_its_thoughts_are_not_passed_on() -> None:
    gym = open_gym("function", "tests", {"episodes": 1})
    session, heard = played(gym, 0, ["<think>secret</think>" + call("search", "test")])
    assert heard[0].valid
    assert "input that counts" in heard[0].text
    assert "secret" not in str(session.opened) + heard[0].text


def test_a_text_that_is_no_action_costs_a_turn_and_three_end_it() -> None:
    gym = open_gym("function", "tests", {"episodes": 1})
    _, heard = played(gym, 0, ["hello"] * 3)
    assert [one.valid for one in heard] == [False] * 3
    assert (heard[2].terminated, heard[2].success, heard[2].reason) == (
        True, False, "agent_invalid",
    )  # fmt: skip


def test_an_empty_text_is_the_agents_failure() -> None:
    gym = open_gym("function", "tests", {"episodes": 1})
    _, heard = played(gym, 0, [" "])
    assert (heard[0].terminated, heard[0].reward, heard[0].reason) == (True, 0.0, "agent_error")


def test_sixteen_steps_are_truncated() -> None:
    gym = open_gym("function", "tests", {"episodes": 1})
    _, heard = played(gym, 0, [call("action", "1 2 3 4")] * 16)
    assert (heard[-1].truncated, heard[-1].terminated) == (True, False)


def test_a_failure_of_the_infrastructure_is_raised_and_never_scored() -> None:
    options = {"search": f"{__name__}:broken"}
    gym = open_gym("search", "tests", {"episodes": 1, "gym_options": options})
    with pytest.raises(InfraError, match="out of credit"):
        played(gym, 0, [call("search", "x")])


def test_after_the_end_nothing_can_be_said() -> None:
    gym = open_gym("function", "tests", {"episodes": 1})
    answer = gym.tasks[0].hidden["expected"]
    with pytest.raises(CallerError):
        played(gym, 0, [call("answer", str(answer))] * 2)


@pytest.mark.parametrize(
    ("name", "settings", "error"),
    [
        ("functoin", {}, UnknownNameError),
        ("function", {"epsiodes": 3}, UsageError),
        ("function", {"agent": "oracle"}, UsageError),
        ("function", {"gym": "search"}, UsageError),
        ("function", {"profile": "nope"}, UnknownNameError),
        ("telepathy", {"user": "scripted:nobody"}, UsageError),
    ],
)
def test_wrong_settings_are_told_at_once(
    name: str, settings: dict[str, Any], error: type[UsageError]
) -> None:
    with pytest.raises(error):
        open_gym(name, "tests", settings)


def test_a_task_that_is_not_there_is_told() -> None:
    gym = open_gym("function", "tests", {"episodes": 2})
    with pytest.raises(UsageError, match="0 to 1"):
        played(gym, 2, [])


def test_episodes_side_by_side_do_not_mix() -> None:
    gym = open_gym("function", "tests", {"episodes": 8, "split": "test"})

    async def one(number: int) -> float:
        session = await gym.open(number)
        await session.step(call("search", "test"))
        heard = await session.step(call("answer", str(gym.tasks[number].hidden["expected"])))
        await session.aclose()
        return heard.reward

    async def all_of_them() -> list[float]:
        found = await asyncio.gather(*(one(number) for number in range(8)))
        await gym.aclose()
        return found

    assert asyncio.run(all_of_them()) == [1.0] * 8


@pytest.mark.parametrize("name", REGISTRY.names())
def test_every_gym_can_be_played_from_outside_by_its_oracle(name: str) -> None:
    """The traces of turn-taking gyms; the desk's oracle looks at the conversation."""
    if name == "support-desk":
        pytest.skip("its oracle is no list of actions")
    gym = open_gym(name, "tests", {"episodes": 2, "split": "test"})
    task = gym.tasks[0]

    async def play() -> float:
        session = await gym.open(0)
        trace, total = trace_of(task), 0.0
        for place in range(gym.spec.max_steps):
            heard = await session.step(call(*trace[min(place, len(trace) - 1)]))
            total += heard.reward
            if heard.done:
                break
        await session.aclose()
        await gym.aclose()
        return total

    assert asyncio.run(play()) >= 0.95 * load_gym(name).attainable(task)


def test_without_await_the_same_is_played() -> None:
    gym = SyncGym(open_gym("function", "tests", {"episodes": 2}))
    with pytest.raises(CallerError):
        gym.step("x")
    first = gym.reset(0)
    again = gym.reset(0)  # leaves the first one
    assert first == again
    answer = gym.gym.tasks[0].hidden["expected"]
    assert gym.step(call("answer", str(answer))).reward == 1.0
    gym.close()
    gym.close()


def test_a_program_that_never_closes_ends_quietly() -> None:
    code = (
        "from mimesim.integrations.sessions import SyncGym, open_gym\n"
        "gym = SyncGym(open_gym('function', 'tests', {'episodes': 1}))\n"
        "gym.reset(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("gymnasium", "gymnasium", "integrations"),
        ("verifiers", "verifiers", "verifiers"),
        ("openenv", "openenv", "openenv"),
    ],
)
def test_without_its_library_a_module_says_what_to_install(
    module: str, library: str, extra: str
) -> None:
    code = (
        f"import sys\nsys.modules[{library!r}] = None\n"
        "from mimesim.errors import MissingExtraError\n"
        f"try:\n    import mimesim.integrations.{module}\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert f'pip install "mimesim[{extra}]"' in done.stdout, done.stderr
