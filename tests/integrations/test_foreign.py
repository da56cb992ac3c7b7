"""Somebody else's environment as a gym: the gym's contract around a world that is not ours."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from mimesim.dialogue.stop import Party, StopReason
from mimesim.envs.base import AgentAction, Choice, StepResult, Task
from mimesim.envs.load import check_tasks, load_gym, load_tasks, make_gym
from mimesim.errors import CallerError, DataError, EnvError, UnknownNameError
from mimesim.integrations.foreign import Bounds, ForeignKind, Said
from mimesim.rollout.prepare import RunConfig, execute, prepare

NAME = f"{__name__}:GYM"


class Counter:
    """Counts to the seed's last digit; `boom` breaks it, `bad` is refused, `odd` pays too much."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.left = int(row["seed"]) % 10 + 1
        self.closed = 0

    async def start(self) -> str:
        return f"count down from {self.left}"

    def check(self, text: str) -> str:
        return "that word is not known" if text == "bad" else ""

    async def step(self, text: str) -> Said:
        if text == "boom":
            raise RuntimeError("it broke")
        self.left -= 1
        if self.left == 0:
            return Said("done", 1.0, terminated=True, success=True)
        return Said(f"{self.left} to go", 7.0 if text == "odd" else 0.0)

    async def finish(self) -> float:
        return 0.5

    async def aclose(self) -> None:
        self.closed += 1


GYM = ForeignKind(NAME, Counter, Bounds(max_steps=4), tries=("one", "two"))


def task(seed: int) -> Task:
    return Task(NAME, f"t{seed}", "test", (f"seed:{seed}",), {}, {"world": {"seed": seed}})


def episode(seed: int, *texts: str) -> tuple[Any, list[StepResult]]:
    gym = make_gym(NAME, user=None)  # type: ignore[arg-type]

    async def play() -> list[StepResult]:
        seen = await gym.reset(task(seed), seed=1)
        assert seen.first_user == f"count down from {seed % 10 + 1}"
        assert seen.system
        return [await gym.step(AgentAction(Choice.ACTION, text)) for text in texts]

    return gym, asyncio.run(play())


def test_it_ends_by_its_own_rule() -> None:
    _, steps = episode(1, "x", "y")
    assert [step.reward for step in steps] == [0.0, 1.0]
    end = steps[-1]
    assert (end.terminated, end.success, end.reason, end.by) == (
        True, True, StopReason.CASE_CLOSED, Party.ENV,
    )  # fmt: skip


def test_the_limit_of_steps_pays_what_is_owed() -> None:
    _, steps = episode(9, *["x"] * 4)
    end = steps[-1]
    assert (end.truncated, end.terminated, end.reward, end.success) == (True, False, 0.5, None)
    assert (end.reason, end.by) == (StopReason.MAX_STEPS, Party.RUNNER)


def test_what_it_does_not_take_is_an_invalid_action() -> None:
    _, steps = episode(9, "bad", "bad", "bad")
    assert [step.valid for step in steps] == [False] * 3
    assert "not known" in steps[0].feedback[0].content
    assert (steps[2].terminated, steps[2].reason) == (True, StopReason.AGENT_INVALID)


@pytest.mark.parametrize("text", ["boom", "odd"])
def test_its_failure_is_no_score(text: str) -> None:
    with pytest.raises(EnvError):
        episode(9, text)


def test_after_a_failure_it_cannot_go_on() -> None:
    gym, _ = episode(9)

    async def twice() -> None:
        with pytest.raises(EnvError):
            await gym.step(AgentAction(Choice.ACTION, "boom"))
        with pytest.raises(CallerError):
            await gym.step(AgentAction(Choice.ACTION, "x"))

    asyncio.run(twice())


def test_it_cannot_be_set_back() -> None:
    gym, _ = episode(9, "x")
    with pytest.raises(CallerError):
        gym.snapshot()
    with pytest.raises(CallerError):
        gym.restore({})
    with pytest.raises(CallerError):
        asyncio.run(gym.reset(task(1), seed=1))


def test_success_by_the_return_where_it_does_not_say() -> None:
    kind = ForeignKind(NAME, Counter, Bounds(max_steps=4, success=0.5))
    gym = kind.make("default", user=None, judge=None, options=None)

    async def play() -> StepResult:
        await gym.reset(task(9), seed=1)
        return [await gym.step(AgentAction(Choice.ACTION, "x")) for _ in range(4)][-1]

    assert asyncio.run(play()).success is True


def test_its_tasks_are_seeds_and_no_split_shares_one() -> None:
    tasks = [t for split in ("train", "test") for t in load_tasks(NAME, split=split, count=50)]
    assert check_tasks(tasks) == []
    assert len({t.hidden["world"]["seed"] for t in tasks}) == 100
    with pytest.raises(DataError):
        GYM.attainable(Task(NAME, "x", "test", ("g",), {}, {}))


def test_it_runs_like_any_gym() -> None:
    prepared = prepare(
        RunConfig(gym=NAME, agent="scripted:random", episodes=6, user="scripted:easy")
    )
    summary = asyncio.run(execute(prepared))
    assert summary.counts.counted == 6
    assert {e.outcome.status.value for e in summary.episodes} <= {"completed", "truncated"}
    null = prepare(RunConfig(gym=NAME, agent="null", episodes=2))
    assert {e.stop.reason for e in asyncio.run(execute(null)).episodes} == {"agent_invalid"}


def test_it_has_no_oracle_and_no_options() -> None:
    with pytest.raises(UnknownNameError):
        load_gym(NAME).agent("oracle", task(1), 1)
    with pytest.raises(CallerError):
        make_gym(NAME, user=None, options={"x": 1})  # type: ignore[arg-type]
