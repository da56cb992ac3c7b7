"""Gymnasium in both directions, against the installed library."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest

gymnasium = pytest.importorskip("gymnasium", reason="the extra 'integrations' is not installed")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from mimesim import jsonio  # noqa: E402
from mimesim.envs.load import REGISTRY  # noqa: E402
from mimesim.envs.turns.agents import trace_of  # noqa: E402
from mimesim.errors import CallerError, InfraError  # noqa: E402
from mimesim.integrations.foreign import Bounds  # noqa: E402
from mimesim.integrations.gymnasium import AnyText, TextEnv, make_env, register, wrap  # noqa: E402
from mimesim.rollout.prepare import RunConfig, execute, prepare  # noqa: E402


def call(choice: str, content: str) -> str:
    return jsonio.dumps({"choice": choice, "content": content})


# ----------------------------------------------------------------------------- ours, in theirs


def test_every_gym_is_registered_and_one_passes_their_checker() -> None:
    ids = register()
    assert ids == register() == [f"mimesim/{name}-v0" for name in REGISTRY.names()]
    env = gymnasium.make("mimesim/function-v0", render_mode="ansi", episodes=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.close()


def test_an_oracle_wins_through_their_interface() -> None:
    env = make_env("search", split="test", episodes=5)
    for number in range(3):
        seen, info = env.reset(seed=number, options={"task": number})
        task = env._gym.gym.tasks[number]
        assert info["task"] == task.id
        assert seen == f"{info['system']}\n\n{info['text']}"
        assert task.public["question"] in info["text"]
        results = [env.step(call(*action)) for action in trace_of(task)]
        *_, (_, reward, terminated, truncated, info) = results
        assert (reward, terminated, truncated) == (1.0, True, False)
        assert info == {"valid": True, "is_success": True, "reason": "goal_reached"}
        with pytest.raises(CallerError):
            env.step("more")
    env.close()


def test_equal_seeds_give_equal_episodes_and_others_other_tasks() -> None:
    env = make_env("function", episodes=8)
    starts = [env.reset(seed=seed)[1]["task"] for seed in (1, 1, 2, 3, 4)]
    assert starts[0] == starts[1]
    assert len(set(starts)) > 1
    env.reset(seed=1)
    assert [env.reset()[1]["task"] for _ in range(4)]  # drawn from the same generator
    env.close()


def test_malformed_actions_are_answered_not_raised() -> None:
    env = make_env("function", episodes=1)
    env.reset(seed=0)
    for text in ("hello", "{", call("answer", "x" * 100_000)):
        told, reward, terminated, _, info = env.step(text)
        assert (reward, info["valid"]) == (0.0, False)
        assert "Not a valid step" in told
    assert terminated
    env.close()


def test_a_failure_is_raised_and_never_a_reward() -> None:
    options = {"search": "tests.integrations.test_sessions:broken"}
    env = make_env("search", episodes=1, gym_options=options)
    env.reset(seed=0)
    with pytest.raises(InfraError):
        env.step(call("search", "x"))
    env.close()


def test_environments_side_by_side() -> None:
    envs = gymnasium.vector.SyncVectorEnv([lambda: TextEnv("function", episodes=4)] * 3)
    seen, _ = envs.reset(seed=5)
    assert len(seen) == 3
    assert all("hidden rule" in one for one in seen)
    envs.close()


def test_any_text_is_in_the_space() -> None:
    space = AnyText(seed=1)
    assert all(text in space for text in ("", "ünïcode 漢字 🎈", space.sample()))
    assert 3 not in space
    assert "x" * 200_000 not in space
    assert space == AnyText()
    assert space != gymnasium.spaces.Discrete(2)


# ----------------------------------------------------------------------------- theirs, as ours


class Doors(gymnasium.Env[str, str]):
    """Say the color of the right door; a wrong one costs nothing."""

    def __init__(self) -> None:
        self.action_space = gymnasium.spaces.Text(10, charset="abcdefghijklmnopqrstuvwxyz")
        self.observation_space = AnyText()
        self.closed = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self._right = ("red", "blue")[int(self.np_random.integers(2))]
        return "Two doors: red or blue", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == "broken":
            raise RuntimeError("a door fell off")
        won = action == self._right
        return ("open", 1.0, True, False, {"is_success": True}) if won else (
            "closed", 0.0, False, False, {},
        )  # fmt: skip

    def close(self) -> None:
        self.closed = True


class Steps(gymnasium.Env[int, int]):
    """Numbers in, numbers out: go to three."""

    def __init__(self) -> None:
        self.action_space = gymnasium.spaces.Discrete(3)
        self.observation_space = gymnasium.spaces.Discrete(10)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self._place += action
        return self._place, 1.0 if self._place == 3 else 0.0, self._place >= 3, False, {}


DOORS = wrap(f"{__name__}:DOORS", Doors, bounds=Bounds(max_steps=5), system="Open a door.")
STEPS = wrap(
    f"{__name__}:STEPS",
    Steps,
    bounds=Bounds(max_steps=6, success=1.0),
    observe=lambda place: f"you stand at {place}",
    act=int,
)


class Says:
    """An agent that says the same line for ever."""

    line = "red"

    def __call__(self, message: str) -> str:
        return self.line


class SaysOne(Says):
    line = "1"


class SaysWord(Says):
    line = "left"


class Breaks(Says):
    line = "broken"


def run(gym: str, agent: str) -> Any:
    """Run a wrapped environment as any gym."""
    config = RunConfig(
        gym=f"{__name__}:{gym}",
        agent=f"python:{__name__}:{agent}",
        action_format="plain",
        episodes=8,
    )
    return asyncio.run(execute(prepare(config)))


def test_a_text_environment_is_a_gym() -> None:
    summary = run("DOORS", "Says")
    outcomes = [(e.outcome.reward, e.outcome.success, str(e.stop.reason)) for e in summary.episodes]
    assert set(outcomes) == {(1.0, True, "case_closed"), (0.0, None, "max_steps")}


def test_numbers_are_read_and_written() -> None:
    summary = run("STEPS", "SaysOne")
    assert [e.outcome.reward for e in summary.episodes] == [1.0] * 8
    assert all(e.outcome.success for e in summary.episodes)


def test_what_is_no_action_is_the_agents_fault() -> None:
    assert {str(e.stop.reason) for e in run("STEPS", "SaysWord").episodes} == {"agent_invalid"}


def test_their_failure_is_not_counted() -> None:
    summary = run("DOORS", "Breaks")
    assert summary.counts.counted == 0
    assert {e.outcome.status.value for e in summary.episodes} == {"env_failure"}
    assert all(e.outcome.reward is None for e in summary.episodes)


def test_an_environment_is_named_by_its_id_too() -> None:
    gymnasium.register("tests/Doors-v0", entry_point=Doors)
    kind = wrap("tests.x:Y", "tests/Doors-v0", bounds=Bounds())
    task = kind.tasks("default", "test", 1, 1)[0]
    gym = kind.make("default", user=None, judge=None, options=None)
    assert asyncio.run(gym.reset(task, seed=1)).first_user == "Two doors: red or blue"


def test_our_gym_through_their_interface_and_back_is_the_same_gym() -> None:
    """The round trip: exported, wrapped again, played by the same words."""
    kind = wrap("tests.x:Z", lambda: make_env("function", episodes=1), bounds=Bounds())
    task = kind.tasks("default", "test", 1, 1)[0]
    gym = kind.make("default", user=None, judge=None, options=None)
    answer = make_env("function", episodes=1)._gym.gym.tasks[0].hidden["expected"]

    async def play() -> Any:
        from mimesim.envs.base import AgentAction, Choice

        await gym.reset(task, seed=1)
        step = await gym.step(AgentAction(Choice.ACTION, call("answer", str(answer))))
        await gym.aclose()
        return step

    step = asyncio.run(play())
    assert (step.reward, step.terminated, step.success) == (1.0, True, True)
