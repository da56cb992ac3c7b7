"""Verifiers v1 in both directions, against the installed library and a loopback model."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

vf = pytest.importorskip("verifiers.v1", reason="the extra 'verifiers' is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

from verifiers.v1.utils.loaders import load_environment, resolve_env_config  # noqa: E402

from mimesim import jsonio  # noqa: E402
from mimesim.envs.base import AgentAction, Choice, StepResult  # noqa: E402
from mimesim.envs.load import load_tasks  # noqa: E402
from mimesim.envs.turns.agents import trace_of  # noqa: E402
from mimesim.errors import EnvError, UsageError  # noqa: E402
from mimesim.integrations.foreign import Bounds, ForeignKind  # noqa: E402
from mimesim.integrations.verifiers import wrap  # noqa: E402
from mimesim.rollout.prepare import RunConfig, execute, prepare  # noqa: E402
from tests.support.stub_server import StubServer  # noqa: E402

PLUGINS = Path(__file__).parent / "plugins"


@pytest.fixture(autouse=True)
def _plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let verifiers find the modules of `plugins` by their names, as installed packages."""
    monkeypatch.syspath_prepend(str(PLUGINS))
    yield
    for path in PLUGINS.glob("*.py"):
        sys.modules.pop(path.stem, None)


# ----------------------------------------------------------------------------- ours, in theirs


def exported(**taskset: Any) -> Any:
    """Load the exported gym the way verifiers loads any environment."""
    return load_environment(
        resolve_env_config(
            {
                "taskset": {"id": "mimesim-gyms", **taskset},
                "agent": {"harness": {"id": "chat-here"}},
            }
        )
    )


def episode(env: Any, number: int, replies: list[str]) -> tuple[Any, StubServer]:
    """Run one episode with a model that gives `replies`."""

    async def run(url: str) -> Any:
        client = vf.EvalClientConfig(base_url=url, api_key_var="NO_SUCH_KEY")
        context = vf.ModelContext(model="stub", client=client)
        tasks = list(env.taskset)
        async with env.serving():
            return await env.run_episode(tasks[number], context)

    with StubServer(replies, models=None) as server:
        return asyncio.run(run(server.url)), server


def calls(task: Any) -> list[str]:
    return [jsonio.dumps({"choice": c, "content": text}) for c, text in trace_of(task)]


def test_the_gyms_tasks_are_the_tasksets_and_hide_the_same() -> None:
    own = load_tasks("search", split="test", seed=3, count=5)
    found = list(exported(gym="search", split="test", seed=3, episodes=5).taskset)
    assert [task.data.id for task in found] == [task.id for task in own]
    for task, mine in zip(found, own, strict=True):
        assert str(mine.hidden["answer"]) not in task.data.model_dump_json()


def test_an_oracle_wins_and_its_return_is_on_the_trace() -> None:
    env = exported(gym="search", split="test", episodes=3)
    task = load_tasks("search", split="test", count=3)[1]
    played, server = episode(env, 1, calls(task))
    (trace,) = played.traces
    assert played.ok
    assert not played.errors
    assert (trace.reward, trace.metrics["success"], trace.info["gym_end"]) == (
        1.0, 1.0, "goal_reached",
    )  # fmt: skip
    first = server.requests[0].body["messages"]
    assert [message["role"] for message in first] == ["system", "user"]
    assert "interact_with_env" in first[0]["content"]
    assert task.public["question"] in first[1]["content"]
    assert task.hidden["answer"] not in str(first)
    last = server.requests[-1].body["messages"]
    assert [m["role"] for m in last] == ["system", *["user", "assistant"] * 2, "user"]


def test_a_lost_episode_has_the_reward_0() -> None:
    env = exported(gym="function", episodes=1)
    played, _ = episode(env, 0, ["no action"])
    (trace,) = played.traces
    assert played.ok
    assert (trace.reward, trace.num_turns) == (0.0, 3)
    assert trace.info["gym_end"] == "agent_invalid"


def test_our_failure_is_their_failure_and_has_no_reward() -> None:
    options = {"search": "tests.integrations.test_sessions:broken"}
    env = exported(gym="search", split="test", episodes=1, gym_options=options)
    played, _ = episode(env, 0, [jsonio.dumps({"choice": "search", "content": "x"})])
    assert not played.ok
    assert "out of credit" in str(played.errors)
    assert all(trace.rewards == {} for trace in played.traces)


def test_a_gym_with_a_user_is_played_too() -> None:
    env = exported(gym="telepathy", split="test", episodes=1)
    task = load_tasks("telepathy", split="test", count=1)[0]
    played, _ = episode(env, 0, calls(task))
    assert played.ok
    assert played.traces[0].reward == 1.0


def test_an_unknown_gym_is_told() -> None:
    with pytest.raises(UsageError):
        list(exported(gym="functoin").taskset)


# ----------------------------------------------------------------------------- theirs, as ours


def guessing(**taskset: Any) -> ForeignKind:
    config = {"taskset": {"id": "guess-game", **taskset}}
    return wrap(f"{__name__}:GUESS", config, bounds=Bounds(max_steps=4))


GUESS = wrap(f"{__name__}:GUESS", {"taskset": {"id": "guess-game"}}, bounds=Bounds(max_steps=8))
CAPITALS = wrap(f"{__name__}:CAPITALS", {"taskset": {"id": "capitals"}}, bounds=Bounds())


def play(kind: ForeignKind, row: Mapping[str, Any], *texts: str) -> tuple[str, list[StepResult]]:
    """Play one row of a wrapped environment."""
    task = kind.tasks("default", "train", 1, 1)[0]
    task = type(task)(**{**_fields(task), "hidden": {"world": row}})
    gym = kind.make("default", user=None, judge=None, options=None)

    async def run() -> tuple[str, list[StepResult]]:
        seen = await gym.reset(task, seed=1)
        try:
            steps = [await gym.step(AgentAction(Choice.ACTION, text)) for text in texts]
        finally:
            await gym.aclose()
        return seen.first_user, steps

    return asyncio.run(run())


def _fields(task: Any) -> dict[str, Any]:
    return {name: getattr(task, name) for name in task.__dataclass_fields__}


def test_their_conversation_is_our_episode() -> None:
    first, steps = play(guessing(), {"row": 6}, "5", "9", "please 7")
    assert first == "A game.\n\nGuess my number."
    assert [step.feedback[0].content for step in steps[:2]] == ["higher", "lower"]
    assert [step.reward for step in steps] == [0.0, 0.0, 1.0]  # .5 found, .5 polite
    assert steps[-1].terminated


def test_at_the_limit_of_steps_their_scores_still_count() -> None:
    _, steps = play(guessing(), {"row": 6}, "1", "2", "3", "please 4")
    assert [step.reward for step in steps] == [0.0, 0.0, 0.0, 0.5]
    assert (steps[-1].truncated, steps[-1].terminated) == (True, False)


@pytest.mark.parametrize(("town", "reward"), [("Caldin", 1.0), ("Orbeck", 0.0)])
def test_one_question_and_one_answer(town: str, reward: float) -> None:
    first, steps = play(CAPITALS, {"row": 1}, town)
    assert first == "What is the capital of Sarnia?"
    assert (steps[0].reward, steps[0].terminated) == (reward, True)


def test_their_failure_is_no_score() -> None:
    with pytest.raises(EnvError, match="the game broke"):
        play(guessing(broken=True), {"row": 6}, "5")


def test_their_rows_are_split_and_none_is_in_two() -> None:
    ids = {
        split: {t.hidden["world"]["row"] for t in GUESS.tasks("default", split, 1, 99)}
        for split in ("train", "validation", "test")
    }
    assert sum(map(len, ids.values())) == len(set().union(*ids.values())) == 40
    assert ids["train"]
    assert ids["test"]


class Halves:
    """An agent that halves the range that is left."""

    def __init__(self) -> None:
        self.low, self.high, self.last = 1, 40, 0

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        heard = messages[-1]["content"]
        if heard == "higher":
            self.low = self.last + 1
        elif heard == "lower":
            self.high = self.last - 1
        self.last = (self.low + self.high) // 2
        return f"please {self.last}"


def test_it_runs_like_any_gym() -> None:
    config = RunConfig(
        gym=f"{__name__}:GUESS",
        agent=f"python:{__name__}:Halves",
        action_format="plain",
        episodes=4,
    )
    summary = asyncio.run(execute(prepare(config)))
    assert [e.outcome.reward for e in summary.episodes] == [1.0] * 4


def test_what_needs_more_than_texts_is_refused() -> None:
    class Furnished(vf.Task):  # type: ignore[misc,name-defined]
        async def setup(self, trace: Any, runtime: Any) -> None:
            """Prepare a runtime."""

    from mimesim.integrations.verifiers import VerifiersWorld

    env = load_environment(resolve_env_config({"taskset": {"id": "capitals"}}))
    with pytest.raises(UsageError, match="setup"):
        VerifiersWorld(env, Furnished(vf.TaskData(prompt="x")), "", 4)
    with pytest.raises(UsageError, match="no seat"):
        VerifiersWorld(env, next(iter(env.taskset)), "referee", 4)
