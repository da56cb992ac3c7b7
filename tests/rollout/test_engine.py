"""Many episodes: isolation, seeds, retries, both denominators, order and concurrency."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.episode import Episode, without_times
from mimesim.dialogue.stop import Status
from mimesim.errors import ContextExceeded, EnvironmentFault, InfraError
from mimesim.rollout.engine import (
    EngineConfig,
    Job,
    RunSummary,
    episode_seed,
    run,
    run_episodes,
)
from mimesim.rollout.events import EpisodeFinished, EpisodeRetried, RunStarted
from tests.rollout.toy import ToyAgents, ToyGym, cast, make_task

JOBS = tuple(Job(make_task(number), trial) for trial in range(2) for number in range(6))


def lines(episodes: tuple[Episode, ...]) -> list[str]:
    """Return the comparable bytes of episodes, by id."""
    found = [jsonio.dumps(without_times(e.to_json()), sort_keys=True) for e in episodes]
    return sorted(found)


@pytest.mark.parametrize("concurrency", [1, 3, 12])
def test_episodes_are_equal_at_any_concurrency_and_order(concurrency: int) -> None:
    first = run(JOBS, cast(), EngineConfig(seed=7, run_id="r", concurrency=6))
    again = run(JOBS[::-1], cast(), EngineConfig(seed=7, run_id="r", concurrency=concurrency))
    assert lines(first.episodes) == lines(again.episodes)
    other = run(JOBS, cast(), EngineConfig(seed=8, run_id="r"))
    assert lines(first.episodes) != lines(other.episodes)


def test_trials_differ_and_a_part_equals_the_whole() -> None:
    whole = run(JOBS, cast(), EngineConfig(seed=7, run_id="r"))
    part = run(JOBS[:3], cast(), EngineConfig(seed=7, run_id="r"))
    assert set(lines(part.episodes)) < set(lines(whole.episodes))
    said = [[turn.content for turn in e.turns] for e in whole.episodes]
    assert said[0] != said[6]  # trial 0 and trial 1 of one task
    assert [e.id for e in whole.episodes[:3]] == [e.id for e in part.episodes]


def test_one_failing_episode_never_cancels_others() -> None:
    """C-RUN-02: 50 conversations, one agent that raises, one lost connection."""
    jobs = [Job(make_task(number)) for number in range(50)]
    trouble = {"toy-013": ("one", KeyError("x")), "toy-020": (InfraError("lost"),)}
    events: list[Any] = []
    agents = ToyAgents(by_task=trouble)
    summary = run(jobs, cast(agents), EngineConfig(concurrency=10), on_event=events.append)
    counts = summary.counts
    assert counts.by_status == {"agent_failure": 1, "completed": 48, "infra_failure": 1}
    assert counts.not_counted == {"infra_failure": 1}
    assert (counts.successes, counts.counted, counts.all) == (48, 49, 50)
    assert counts.invalid_rate == 0.02
    assert len(summary.failures) == 2  # two attempts before the last one
    assert sum(isinstance(e, EpisodeRetried) for e in events) == 2
    assert sum(isinstance(e, EpisodeFinished) for e in events) == 50
    assert all(agent.closed == 1 for agent in agents.made)


def test_no_task_is_left_behind() -> None:
    async def main() -> int:
        await run_episodes(JOBS, cast(), EngineConfig(concurrency=4))
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1


def test_a_new_attempt_has_a_new_seed_and_can_help() -> None:
    class Once(ToyAgents):
        def start(self, **arguments: Any) -> Any:
            self._lines = () if self.made else (InfraError("lost"),)
            return super().start(**arguments)

    summary = run(JOBS[:1], cast(Once()), EngineConfig(seed=3))
    (episode,), (failure,) = summary.episodes, summary.failures
    assert episode.outcome.status is Status.COMPLETED
    assert (failure.attempt, episode.attempt) == (0, 1)
    assert failure.id == episode.id
    assert failure.seed == episode_seed(3, JOBS[0])
    assert episode.seed == episode_seed(3, JOBS[0], 1) != failure.seed


@pytest.mark.parametrize(
    ("error", "attempts"),
    [(InfraError("lost"), 3), (ContextExceeded("full", party="user"), 1), (KeyError("x"), 1)],
)
def test_only_what_a_retry_can_help_is_retried(error: Exception, attempts: int) -> None:
    agents = ToyAgents((error,) * 9)
    run(JOBS[:1], cast(agents), EngineConfig())
    assert len(agents.made) == attempts


def test_a_bug_of_the_gym_is_not_retried() -> None:
    agents = ToyAgents()
    task = make_task(1, trouble={"where": "gym", "step": 0, "error": "bug"})
    summary = run([Job(task)], cast(agents), EngineConfig())
    assert summary.episodes[0].outcome.status is Status.ENV_FAILURE
    assert len(agents.made) == 1


def test_a_party_that_cannot_be_made_fails_its_episode_only() -> None:
    def make_gym(task: Any, user: Any) -> Any:
        if task.id == "toy-002":
            raise ValueError("no such world")
        return ToyGym(user)

    summary = run(JOBS, replace(cast(), make_gym=make_gym), EngineConfig())
    assert summary.counts.by_status == {"completed": 10, "env_failure": 2}
    broken = next(e for e in summary.episodes if not e.counted)
    assert "no such world" in broken.errors[0]["message"]


def test_wrong_surroundings_end_the_run() -> None:
    agents = ToyAgents(by_task={"toy-003": (EnvironmentFault("wrong key"),)})
    with pytest.raises(EnvironmentFault, match="wrong key"):
        run(JOBS, cast(agents), EngineConfig(concurrency=2))
    assert all(agent.closed == 1 for agent in agents.made)


def test_a_group_can_share_its_world() -> None:
    task = make_task(1)
    jobs = [Job(task, trial, world_seed=99) for trial in range(4)]
    summary = run(jobs, cast(), EngineConfig(seed=1))
    assert len({e.turns[0].content for e in summary.episodes}) == 1
    assert len({e.seed for e in summary.episodes}) == 4


def test_run_works_inside_a_running_loop() -> None:
    async def main() -> RunSummary:
        return run(JOBS[:2], cast(), EngineConfig())

    assert asyncio.run(main()).counts.all == 2


def test_slow_conversations_do_not_block_others() -> None:
    order: list[str] = []

    class Mixed(ToyAgents):
        def start(self, *, task: Any, seed: int, key: str) -> Any:
            agent = super().start(task=task, seed=seed, key=key)
            if task.id == "toy-000":
                slow = agent.act

                async def act(view: Any) -> Any:
                    await asyncio.sleep(0.2)
                    return await slow(view)

                agent.act = act  # type: ignore[method-assign]
            return agent

    def note(event: Any) -> None:
        if isinstance(event, EpisodeFinished):
            order.append(event.episode.task.id)

    run(
        [Job(make_task(n)) for n in range(8)],
        cast(Mixed()),
        EngineConfig(concurrency=2),
        on_event=note,
    )
    assert order[-1] == "toy-000"


def test_cancelling_stops_the_workers() -> None:
    async def main() -> list[Any]:
        agents = ToyAgents()
        work = asyncio.create_task(run_episodes(JOBS, cast(agents), EngineConfig(concurrency=2)))
        await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert len(asyncio.all_tasks()) == 1
        return agents.made

    assert all(agent.closed == 1 for agent in asyncio.run(main()))


def test_events_begin_with_the_size_of_the_work() -> None:
    events: list[Any] = []
    run(JOBS, cast(), EngineConfig(), on_event=events.append)
    assert events[0] == RunStarted(total=12, resumed=0)


@pytest.mark.parametrize("key", ["concurrency", "retries"])
def test_numbers_that_make_no_run_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match=key):
        EngineConfig(**{key: -1})
