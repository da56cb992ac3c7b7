"""The conversation loop: what is recorded, what ends it, whose fault it is, what the agent sees."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.episode import Episode, public_copy
from mimesim.dialogue.stop import Party, Status, StopReason
from mimesim.dialogue.types import Role, Usage
from mimesim.envs.base import AgentAction, AgentMove, StepResult
from mimesim.errors import ContextExceeded, EnvironmentFault, InfraError
from mimesim.rollout.driver import StepRecord, run_episode
from mimesim.rollout.limits import Limits
from tests.rollout.toy import ToyAgent, ToyGym, ToyUser, make_task, setup


def play(lines: tuple[Any, ...] = (), user_lines: tuple[str, ...] = (), **more: Any) -> Episode:
    """Run one toy episode."""
    task = more.pop("task", make_task(1))
    agent = more.pop("agent", None) or ToyAgent(lines, 5)
    gym = more.pop("gym", ToyGym)(ToyUser(3, user_lines))
    return asyncio.run(run_episode(task, gym, agent, setup(**more)))


def roles(episode: Episode) -> str:
    return "".join(turn.role.value[0] for turn in episode.turns)


def test_a_whole_conversation_is_recorded() -> None:
    episode = play(("one", "two", "three"))
    assert roles(episode) == "uauauau"
    assert [t.content for t in episode.turns if t.role is Role.AGENT] == ["one", "two", "three"]
    assert episode.stop.reason is StopReason.USER_STOP
    assert episode.outcome.status is Status.COMPLETED
    assert episode.outcome.success is True
    assert episode.rewards == (0.25, 0.25, 0.25)
    assert episode.outcome.reward == 0.75
    assert [s.turn for s in episode.steps] == [1, 3, 5]
    assert episode.usage["agent"] == Usage(30, 15, calls=3)
    assert episode.usage["user"].cost == 2.0
    assert episode.private is not None
    assert [t["turn"] for t in episode.private["thoughts"]] == [0, 2, 4, 6]
    assert episode.private["goal"] == "secret goal number 1"
    assert [g["step"] for g in episode.private["grading"]] == [0, 1, 2]


def test_the_agent_sees_public_messages_only() -> None:
    agent = ToyAgent((), 5)
    episode = play(agent=agent)
    for view in agent.views:
        text = jsonio.dumps(asdict(view))
        assert "PRIVATE-THOUGHT" not in text
        assert "secret goal" not in text
        assert "0.25" not in text
    assert [view.step for view in agent.views] == [0, 1, 2]
    assert [view.steps_left for view in agent.views] == [16, 15, 14]
    last = agent.views[-1].messages
    assert [m.role for m in last] == [Role.AGENT, Role.USER, Role.AGENT, Role.USER]
    assert "PRIVATE-THOUGHT" not in jsonio.dumps(public_copy(episode.to_json()))


def test_reasoning_of_the_agent_is_kept_apart() -> None:
    episode = play(("<think>he hides something</think>Which one?", "b", "c"))
    assert episode.turns[1].content == "Which one?"
    assert episode.private is not None
    assert episode.private["agent_reasoning"] == [{"turn": 1, "text": "he hides something"}]


@pytest.mark.parametrize("blank", [" \n", "\u200b", "", "<think>only thoughts</think>"])
def test_an_empty_answer_is_asked_for_once_more(blank: str) -> None:
    episode = play((blank, "Your refund is on its way.", "b", "c"))
    assert [t.content for t in episode.turns][1] == "Your refund is on its way."
    assert episode.outcome.status is Status.COMPLETED
    failed = play((blank, blank))
    assert failed.stop.reason is StopReason.AGENT_ERROR
    assert failed.stop.by is Party.AGENT
    assert failed.outcome.status is Status.AGENT_FAILURE
    assert failed.outcome.success is False
    assert failed.outcome.reward == 0.0
    assert roles(failed) == "u"


def test_max_turns_belongs_to_the_runner() -> None:
    """C-STOP-05: a user that never ends, three messages delivered, three answers."""
    task = make_task(1, talk=99)
    again = ("and what else?",) * 9
    limits = Limits(max_turns=3, detect_loops=False)
    episode = play(("a", "b", "c", "d"), again, task=task, limits=limits)
    delivered = [t for t in episode.turns if t.delivered]
    assert "".join(t.role.value[0] for t in delivered) == "uauaua"
    stop = episode.to_json()["stop"]
    assert stop["reason"] == "max_turns"
    assert stop["by"] == "runner"
    assert stop["turns_used"] == 3
    assert stop["limit"] == 3
    assert episode.outcome.status is Status.TRUNCATED
    assert episode.outcome.success is False
    assert episode.outcome.reward == 0.75


def test_repetition_ends_as_a_loop() -> None:
    episode = play(("what?",) * 9, ("no",) * 9, task=make_task(1, talk=99))
    assert episode.stop.reason is StopReason.LOOP_DETECTED
    assert episode.stop.by is Party.RUNNER
    assert episode.outcome.status is Status.TRUNCATED


def test_max_steps_can_be_lowered_only() -> None:
    episode = play(task=make_task(1, talk=99), limits=Limits(max_steps=2))
    assert len(episode.steps) == 2
    assert episode.stop.reason is StopReason.MAX_STEPS
    assert episode.stop.limit == 2


def test_marker_of_the_agent_has_no_effect() -> None:
    """C-STOP-04: noted, counted in `test_summary`, and the conversation goes on."""
    marker = "#" * 3 + "STOP" + "#" * 3
    episode = play((f"All sorted! {marker}", "b", "c"))
    assert len(episode.steps) == 3
    assert [g["guard"] for g in episode.guards] == ["agent_marker"]


def test_lone_surrogates_of_the_agent_are_replaced() -> None:
    episode = play(("ok \ud83d done", "b", "c"))
    assert episode.turns[1].content == "ok \ufffd done"
    assert [g["guard"] for g in episode.guards] == ["surrogate"]


def test_an_exception_of_the_agent_is_its_failure() -> None:
    episode = play(("one", KeyError("x")))
    assert episode.stop.reason is StopReason.AGENT_ERROR
    assert episode.outcome.status is Status.AGENT_FAILURE
    assert episode.errors[0]["where"] == "agent"
    assert "KeyError" in episode.errors[0]["message"]
    assert all("KeyError" not in turn.content for turn in episode.turns)
    assert len(episode.steps) == 1


def test_a_lost_connection_is_not_data() -> None:
    episode = play(("one", InfraError("connection lost")))
    assert episode.outcome.status is Status.INFRA_FAILURE
    assert episode.outcome.success is None
    assert episode.outcome.reward is None
    assert episode.rewards == (0.25,)


@pytest.mark.parametrize(
    ("party", "status"),
    [
        ("agent", Status.TRUNCATED),
        ("user", Status.USER_FAILURE),
        ("judge", Status.JUDGE_FAILURE),
    ],
)
def test_a_full_context_is_judged_by_its_party(party: str, status: Status) -> None:
    episode = play(("one", ContextExceeded("8 of 8 tokens", party=party)))
    assert episode.stop.reason is StopReason.CONTEXT_EXCEEDED
    assert episode.outcome.status is status
    assert roles(episode) == "uau"


def trouble(error: str, **more: Any) -> Any:
    return make_task(1, trouble={"where": "gym", "step": 1, "error": error, **more})


def test_a_step_that_committed_nothing_is_tried_again() -> None:
    episode = play(task=trouble("infra", times=2, retryable=True))
    assert episode.outcome.status is Status.COMPLETED
    assert [e["attempt"] for e in episode.errors] == [0, 1]
    beaten = play(task=trouble("infra", times=3, retryable=True))
    assert beaten.outcome.status is Status.INFRA_FAILURE
    assert beaten.turns[-1].role is Role.AGENT
    assert beaten.turns[-1].delivered is False


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        ("user", Status.USER_FAILURE, StopReason.USER_ERROR),
        ("env", Status.ENV_FAILURE, StopReason.ENV_ERROR),
        ("bug", Status.ENV_FAILURE, StopReason.INTERNAL_ERROR),
    ],
)
def test_failures_go_to_whose_they_are(error: str, status: Status, reason: StopReason) -> None:
    episode = play(task=trouble(error))
    assert (episode.outcome.status, episode.stop.reason) == (status, reason)


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), float("-inf")])
def test_a_reward_that_is_no_number_is_the_gyms_failure(reward: float) -> None:
    class Broken(ToyGym):
        async def step(self, action: AgentAction) -> StepResult:
            return replace(await super().step(action), reward=reward)

    episode = play(("hello",), gym=Broken)
    assert (episode.outcome.status, episode.outcome.reward) == (Status.ENV_FAILURE, None)
    assert "reward" in episode.stop.detail
    assert Episode.from_json(jsonio.loads(jsonio.dumps(episode.to_json()))) == episode


def test_wall_clocks_end_a_conversation() -> None:
    class Stuck(ToyAgent):
        async def act(self, view: Any) -> AgentMove:
            await asyncio.sleep(30)
            return AgentMove("late")

    for limits in (Limits(seconds=0.05), Limits(step_seconds=0.05)):
        stuck = Stuck((), 1)
        episode = play(agent=stuck, limits=limits)
        assert episode.stop.reason is StopReason.TIMEOUT
        assert episode.outcome.status is Status.INFRA_FAILURE
        assert stuck.closed == 1


def test_a_time_out_of_the_agent_itself_is_its_error() -> None:
    assert play((TimeoutError("mine"),)).stop.reason is StopReason.AGENT_ERROR


def test_budgets_are_checked_before_a_move() -> None:
    episode = play(limits=Limits(tokens=30))
    assert episode.stop.reason is StopReason.BUDGET_EXCEEDED
    assert len(episode.steps) == 2
    assert play(limits=Limits(cost=0.6)).stop.limit == 0.6


def test_wrong_surroundings_leave_the_loop() -> None:
    with pytest.raises(EnvironmentFault):
        play((EnvironmentFault("wrong key"),))


def test_hooks_see_the_private_side() -> None:
    seen: list[Any] = []

    class Hook:
        async def opened(self, episode_id: str, task: Any, observation: Any, private: Any) -> None:
            seen.append(private.reply.thought.reveal())

        async def stepped(self, step: StepRecord) -> None:
            assert step.result.private.reply is not None
            seen.append(step.index)

    play(("a", "b", "c"), hooks=(Hook(),))
    assert str(seen[0]).startswith("PRIVATE-THOUGHT")
    assert seen[1:] == [0, 1, 2]


@pytest.mark.parametrize("name", ["max_turns", "max_steps", "tokens"])
def test_limits_that_allow_nothing_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Limits(**{name: 0})
