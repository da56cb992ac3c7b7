"""Counts, both denominators, thresholds; prepared runs; review and validation of stored files."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mimesim import config as configs
from mimesim import jsonio
from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import Party, StopReason
from mimesim.dialogue.types import Usage
from mimesim.errors import EnvironmentFault, InfraError, UsageError
from mimesim.rollout.engine import EngineConfig, Job, RunSummary, run
from mimesim.rollout.events import count
from mimesim.rollout.prepare import RunConfig, execute, prepare
from mimesim.rollout.review import review
from mimesim.rollout.summary import shortfalls, summarize
from mimesim.rollout.validate import validate
from tests.rollout.toy import ToyAgents, ToyUsers, cast, make_task

TOYS: dict[str, Any] = {
    "gym": "tests.rollout.toy:GYM",
    "agent": "tests.rollout.toy:make_agent",
    "user": "tests.rollout.toy:make_user",
    "action_format": "line",
}


def toy_run(number: int = 8, lines: tuple[str, ...] = (), **by_task: Any) -> RunSummary:
    jobs = [Job(make_task(n)) for n in range(number)]
    named = {key.replace("_", "-"): value for key, value in by_task.items()}
    return run(jobs, cast(ToyAgents(by_task=named), ToyUsers(lines)), EngineConfig())


def test_failures_are_in_their_own_columns() -> None:
    """EV-11: two of ten are not counted; means are over the eight, both denominators are told."""
    lost = (InfraError("lost"),) * 3
    summary = toy_run(10, toy_001=lost, toy_002=lost, toy_003=("a", KeyError("x")))
    result = summarize(summary, out="x")
    assert (result["episodes"], result["completed"]) == (10, 8)
    assert result["failures"]["infra_failure"] == 2
    assert (result["success_counted"], result["success_all"]) == ("7/8", "7/10")
    assert result["success"]["n"] == 8
    assert result["success"]["mean"] == pytest.approx(7 / 8)
    assert result["reward"]["mean"] == pytest.approx((7 * 0.75 + 0.25) / 8)
    low, high = result["success"]["ci95"]
    assert low < 7 / 8 < high
    assert result["retried"] == 4
    # The user's calls: 7 whole talks of 4, 2 before the agent's error, 1 in each of 6 lost attempts.
    assert result["cost_usd"] == pytest.approx(0.5 * (7 * 4 + 2 + 6))


def test_markers_of_agents_are_counted() -> None:
    """C-STOP-04: an agent that prints an end has ended nothing, and the counts tell how often."""
    summary = toy_run(3, toy_001=("All sorted! ###STOP###", "b", "###STOP###"))
    assert summary.counts.guards == {"agent_marker": 2}
    assert summary.counts.to_json()["guards"] == {"agent_marker": 2}
    assert [len(episode.steps) for episode in summary.episodes] == [3, 3, 3]


def test_nothing_counted_is_not_zero() -> None:
    lost = {f"toy_00{n}": (InfraError("lost"),) * 3 for n in range(2)}
    result = summarize(toy_run(2, **lost), out="x")
    assert result["success"] == {"mean": None, "ci95": None, "n": 0}


def test_thresholds() -> None:
    summary = toy_run(4, toy_001=(InfraError("lost"),) * 3)
    assert len(shortfalls(RunConfig(), summary)) == 1
    assert shortfalls(RunConfig(max_invalid=0.25), summary) == []
    strict = RunConfig(max_invalid=0.3, fail_under={"success": 1.0, "reward": 0.8})
    assert shortfalls(strict, summary) == ["reward is 0.7500, below 0.8"]


def test_what_floats_lose_is_below_no_threshold() -> None:
    summary = toy_run(1)
    whole = summary.episodes[0]
    sixths = replace(whole, outcome=replace(whole.outcome, reward=sum([1 / 6] * 6)))
    found = replace(summary, episodes=(sixths,))
    assert sixths.outcome.reward != 1.0
    assert shortfalls(RunConfig(fail_under={"reward": 1.0}), found) == []


def test_usage_adds_up_and_unknown_stays_unknown() -> None:
    episode = toy_run(1).episodes[0]
    unknown = replace(episode, usage={"agent": Usage(calls=1, unknown_cost_calls=1)})
    counts = count([episode, unknown])
    assert counts.usage["agent"].unknown_cost_calls == 1
    assert counts.usage["user"].cost == 2.0
    assert count([unknown]).to_json()["cost_usd"] is None


def test_trials_cycle_over_the_tasks() -> None:
    ready = prepare(RunConfig(**TOYS, episodes=7, trials=3))
    assert [(job.task.id, job.trial) for job in ready.jobs] == [
        ("toy-000", 0),
        ("toy-001", 0),
        ("toy-002", 0),
        ("toy-000", 1),
        ("toy-001", 1),
        ("toy-002", 1),
        ("toy-000", 2),
    ]


def test_the_endpoints_are_asked_before_anything_runs() -> None:
    ready = prepare(RunConfig(**TOYS, episodes=2))

    class Refusing(ToyAgents):
        async def preflight(self) -> None:
            raise EnvironmentFault("wrong key")

    agents = Refusing()
    refused = replace(ready, cast=replace(ready.cast, agent=agents))
    with pytest.raises(EnvironmentFault, match="wrong key"):
        asyncio.run(execute(refused))
    assert agents.made == []


@pytest.mark.parametrize(
    ("key", "value"), [("seed", 8), ("agent_options", {"a": 1}), ("split", "train")]
)
def test_what_decides_results_is_in_the_identity(key: str, value: Any) -> None:
    base = prepare(RunConfig(**TOYS)).plan.identity
    assert prepare(replace(RunConfig(**TOYS), **{key: value})).plan.identity != base


@pytest.mark.parametrize(("key", "value"), [("concurrency", 2), ("episodes", 9), ("retries", 0)])
def test_what_decides_nothing_is_not(key: str, value: Any) -> None:
    base = prepare(RunConfig(**TOYS)).plan.identity
    assert prepare(replace(RunConfig(**TOYS), **{key: value})).plan.identity == base


def test_the_desk_runs_through_the_same_door() -> None:
    ready = prepare(RunConfig(profile="compact", episodes=12, seed=7))
    one = asyncio.run(execute(ready))
    two = asyncio.run(execute(prepare(RunConfig(profile="compact", episodes=12, seed=7))))
    assert one.counts.counted == 12
    assert [e.turns[0].content for e in one.episodes] == [e.turns[0].content for e in two.episodes]
    assert {e.task.profile for e in one.episodes} == {"compact"}


def with_goal(episode: Episode, **private: Any) -> Episode:
    return replace(episode, private={"goal": "get the money back", **private})


def test_review_finds_leaks_loops_and_early_ends() -> None:
    lines = ("my order is AB-123-XY", "As an AI language model I cannot", "I know", "I know")
    episode = toy_run(1, lines).episodes[0]
    leaky = with_goal(episode, facts={"order_id": "AB123XY"}, withhold=["order_id"])
    found = review([leaky])
    assert found.by_guard == {"meta_talk": 1, "repeat": 1, "withheld_leak": 1}
    assert found.messages == 4
    assert found.hard_rate == 0.5
    assert found.to_json()["tags"]["revealed_info_early"] == 1
    stop = replace(episode.stop, reason=StopReason.USER_STOP, by=Party.USER)
    early = replace(
        episode, stop=stop, turns=episode.turns[:1], outcome=replace(episode.outcome, success=False)
    )
    assert "early_end" in review([early]).by_guard
    assert review([replace(episode, private=None)]).by_guard == {"meta_talk": 1, "repeat": 1}


def test_a_value_that_was_asked_for_is_no_leak() -> None:
    lines = ("hello there", "it is AB-123-XY")
    jobs = [Job(make_task(0, talk=1))]
    agents = ToyAgents(("What is your order number?",))
    episode = run(jobs, cast(agents, ToyUsers(lines)), EngineConfig()).episodes[0]
    leaky = with_goal(episode, facts={"order_id": "AB123XY"}, withhold=["order_id"])
    assert "withheld_leak" not in review([leaky]).by_guard


def test_validation_tells_all_problems_at_once(tmp_path: Path) -> None:
    good = jsonio.dumps(toy_run(1).episodes[0].to_json())
    lines = [good, '{"a": ', good, '{"schema": "mimesim.episode/2"}', good[:50]]
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(lines))
    (checked,) = validate(file)
    assert checked.kind == "episodes"
    assert [text.split(":")[1] for text in checked.problems] == ["2", "3", "4"]
    assert "stands in line 1 too" in checked.problems[1]
    assert checked.torn == 50


def test_validation_tells_kinds_apart(tmp_path: Path) -> None:
    task = {"gym": "x", "id": "1", "split": "test", "groups": [], "public": {}, "hidden": {}}
    files = {
        "config.toml": "episodes = 3\nlimitz = 1\n",
        "tasks.jsonl": jsonio.dumps(task) + "\n",
        "scenarios.jsonl": '{"id": "s", "goal": "g", "withhold": ["x"]}\n',
        "rows.jsonl": '{"record": {}, "subflow": "x"}\n',
    }
    kinds = {}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        (checked,) = validate(tmp_path / name)
        kinds[name] = checked.kind
        assert len(checked.problems) == 1, name
        assert str(tmp_path / name) in checked.problems[0]
    assert list(kinds.values()) == ["config", "tasks", "scenarios", "rows"]
    (tmp_path / "odd.jsonl").write_text('{"x": 1}\n')
    with pytest.raises(UsageError, match="cannot tell"):
        validate(tmp_path / "odd.jsonl")
    with pytest.raises(UsageError, match="did you mean 'tasks'"):
        validate(tmp_path / "odd.jsonl", "task")
    with pytest.raises(UsageError, match="not found"):
        validate(tmp_path / "absent.jsonl")


@pytest.mark.parametrize(
    ("key", "told"),
    [("episodes=0", "'episodes'"), ("max_invalid=2", "'max_invalid'"), ("retries=-1", "'retries'")],
)
def test_numbers_that_make_no_run_are_refused(key: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        configs.load(RunConfig, overrides=[key], env={})
