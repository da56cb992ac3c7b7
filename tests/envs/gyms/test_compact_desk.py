"""The compact desk: golden cases CD-01 to CD-21, endings, snapshots, and its own agents.

Rewards are worked out by hand from the grade table: .3 kind, .1 order, .1 slot, .5 all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.stop import Party, StopReason, UserAction
from mimesim.dialogue.types import PublicMessage, Reply, Role, Thought, Usage
from mimesim.envs.actions import get_format
from mimesim.envs.agents.floors import floors
from mimesim.envs.base import AgentAction, AgentMove, AgentView, StepResult, Task
from mimesim.envs.gyms.support_desk.compact import MAX_STEPS, SPEC, CompactDesk, make_tasks
from mimesim.envs.gyms.support_desk.compact_agents import (
    DemonstratorAgent,
    EagerAgent,
    OracleAgent,
    PatientAgent,
    Reading,
    expert_line,
)
from mimesim.envs.load import load_tasks, make_gym
from mimesim.errors import CallerError, InfraError
from mimesim.scenarios.compact import FinalAction, parse_final, policy_line
from mimesim.seeds import derive
from mimesim.users.base import UserRequest
from mimesim.users.load import make_user
from mimesim.users.scripted.compact import CompactUser

POLICY = {"refund": "30", "gold": "60", "exchange": "15", "missing": "60"}
FACTS = {
    "order": "123",
    "method": "card",
    "days": "40",
    "tier": "gold",
    "size": "large",
    "zip": "650",
    "status": "not shipped",
}
CANARY = "canary-thought-4419"


def task(intent: str = "refund", **changed: str) -> Task:
    scenario = {
        "id": "compact-golden",
        "goal": f"{intent} for the clock",
        "facts": {**FACTS, **changed},
        "meta": {
            "profile": "compact",
            "intent": intent,
            "item": "clock",
            "policy": POLICY,
            "opening_seed": 4,
        },
    }
    public = {"profile": "compact", "policy": policy_line(POLICY)}
    return Task("support-desk", "golden", "test", ("g",), public, {"scenario": scenario})


def says(text: str, action: UserAction = UserAction.SAY, **changed: Any) -> Reply:
    """A reply whose wish is the golden refund, but for `changed` values or intent."""
    intent = changed.pop("intent", "refund")
    wish = {
        "intent": intent,
        "values": {**FACTS, **changed},
        "missing": [],
        "said_intent": intent,
        "false_claim": False,
    }
    return Reply(Thought(CANARY), text, action, wish=wish, usage=Usage(calls=1))


class Person:
    """Says the lines it was given, one a turn; the last one repeats."""

    def __init__(self, *lines: Reply | Exception) -> None:
        self.lines = list(lines) or [says("hello")]
        self.requests: list[UserRequest] = []

    async def respond(self, request: UserRequest) -> Reply:
        self.requests.append(request)
        line = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
        if isinstance(line, Exception):
            raise line
        return line

    def snapshot(self) -> dict[str, Any]:
        return {"left": len(self.lines)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.lines = self.lines[-state["left"] :]


def action(line: str) -> AgentAction:
    return get_format("line").parse(AgentMove(line), SPEC)


def run(*lines: str, user: Any = None, about: Task | None = None) -> list[StepResult]:
    async def episode() -> list[StepResult]:
        desk = CompactDesk(user=user or Person())
        await desk.reset(about or task(), seed=5)
        return [await desk.step(action(line)) for line in lines]

    return asyncio.run(episode())


ASK = "what is the order number ?"
RIGHT = "act refund order 123 to card"
BAD = "act refund order 123"  # the slot is missing


@pytest.mark.parametrize(
    ("case", "line", "about", "reward"),
    [
        ("CD-01 all right", RIGHT, task(), 1.0),
        ("CD-02 right kind, wrong order", "act refund order 124 to card", task(), 0.4),
        ("CD-03 right kind, wrong slot", "act refund order 123 to wallet", task(), 0.4),
        ("CD-04 right kind only", "act refund order 124 to wallet", task(), 0.3),
        ("CD-05 wrong kind, right order", "act deny order 123", task(), 0.1),
        ("CD-06 nothing right", "act cancel order 124", task(), 0.0),
        ("CD-07 a denial is due", "act deny order 123", task(tier="basic"), 1.0),
        ("CD-08 granted against the policy", RIGHT, task(tier="basic"), 0.1),
        ("CD-09 a denial of another order", "act deny order 124", task(tier="basic"), 0.4),
        ("CD-10 not lost yet", "act wait order 123", task("missing"), 1.0),
        ("CD-11 escalated too soon", "act escalate order 123", task("missing"), 0.1),
        ("CD-12 a new address", "act address order 123 zip 650", task("address"), 1.0),
    ],
)
def test_golden_final_actions(case: str, line: str, about: Task, reward: float) -> None:
    wish = about.scenario["meta"]["intent"]
    person = Person(says("hello", intent=wish, **about.scenario["facts"]))
    (result,) = run(line, user=person, about=about)
    assert result.reward == pytest.approx(reward), case
    assert result.success is (reward == 1.0)
    assert (result.terminated, result.truncated, result.valid) == (True, False, True)
    assert (result.reason, result.by) == (StopReason.CASE_CLOSED, Party.AGENT)
    assert result.feedback == ()


def test_cd_13_a_customer_who_leaves_is_worth_nothing() -> None:
    bye = says("i give up , bye", UserAction.END)
    (result,) = run(ASK, user=Person(says("hello"), bye))
    assert (result.reward, result.success) == (0.0, False)
    assert (result.terminated, result.truncated) == (True, False)
    assert (result.reason, result.by) == (StopReason.USER_STOP, Party.USER)
    assert [m.content for m in result.feedback] == ["i give up , bye"]


def test_cd_14_eight_questions_are_cut() -> None:
    results = run(*[ASK] * MAX_STEPS)
    assert [r.done for r in results] == [False] * 7 + [True]
    last = results[-1]
    assert (last.reward, last.success) == (0.0, False)
    assert (last.terminated, last.truncated) == (False, True)
    assert (last.reason, last.by) == (StopReason.MAX_STEPS, Party.RUNNER)


def test_cd_15_the_eighth_step_may_still_close() -> None:
    results = run(*[ASK] * 7, RIGHT)
    assert results[-1].reward == pytest.approx(1.0)
    assert results[-1].terminated


def test_cd_16_a_malformed_action_is_refused_and_can_be_mended() -> None:
    refused, closed = run(BAD, RIGHT)
    assert (refused.valid, refused.done, refused.reward) == (False, False, 0.0)
    assert [m.role for m in refused.feedback] == [Role.TOOL]
    assert closed.reward == pytest.approx(1.0)


def test_cd_17_three_malformed_actions_in_a_row_end_it() -> None:
    results = run(BAD, "act explode order 123", "act")
    assert [r.done for r in results] == [False, False, True]
    last = results[-1]
    assert (last.terminated, last.truncated, last.success) == (True, False, False)
    assert (last.reason, last.by) == (StopReason.AGENT_INVALID, Party.AGENT)


def test_cd_18_a_question_forgives_what_was_malformed() -> None:
    results = run(BAD, BAD, ASK, BAD, BAD, RIGHT)
    assert [r.valid for r in results] == [False, False, True, False, False, True]
    assert results[-1].reward == pytest.approx(1.0)


def test_cd_19_malformed_actions_use_up_steps() -> None:
    results = run(BAD, BAD, ASK, BAD, BAD, ASK, ASK, BAD)
    last = results[-1]
    assert (last.valid, last.truncated, last.reason) == (False, True, StopReason.MAX_STEPS)


@pytest.mark.parametrize(
    ("line", "reward"), [(RIGHT, 0.4), ("act refund order 123 to wallet", 1.0)]
)
def test_cd_20_the_goal_that_counts_is_the_present_one(line: str, reward: float) -> None:
    moved = says("no wait , wallet is better", method="wallet")
    results = run(ASK, line, user=Person(says("hello"), moved))
    assert results[-1].reward == pytest.approx(reward)


@pytest.mark.parametrize(("line", "reward"), [(RIGHT, 0.1), ("act cancel order 123", 1.0)])
def test_cd_21_a_switched_request_moves_the_right_action(line: str, reward: float) -> None:
    switched = says("wait , something else . please cancel the clock", intent="cancel")
    results = run(ASK, line, user=Person(says("hello"), switched))
    assert results[-1].reward == pytest.approx(reward)


def test_a_user_without_a_stated_wish_is_graded_by_the_scenario() -> None:
    silent = Reply(Thought(CANARY), "hello , order 123")
    (result,) = run(RIGHT, user=Person(silent))
    assert result.reward == pytest.approx(1.0)


def test_an_empty_line_is_not_said_to_the_customer() -> None:
    person = Person()
    (result,) = run("", user=person)
    assert not result.valid
    assert len(person.requests) == 1  # the opening only


def test_the_customer_hears_the_question_and_what_it_asks_for() -> None:
    person = Person(says("hello"), says("order 123"))
    run("can you give me the order number and the member level ?", user=person)
    opening, asked = person.requests
    assert (opening.history, opening.agent_text, opening.asked_fields) == ((), "", ())
    assert asked.asked_fields == ("order", "tier")
    assert [m.content for m in asked.history] == ["hello"]
    assert asked.seed != opening.seed


def test_the_agent_sees_words_only() -> None:
    async def episode() -> list[Any]:
        desk = CompactDesk(user=Person(says("hello"), says("order 123")))
        observation = await desk.reset(task(), seed=5)
        result = await desk.step(action(ASK))
        assert desk.opening_private.reply is not None
        assert desk.opening_private.reply.thought
        return [observation, *result.feedback]

    seen = asyncio.run(episode())
    assert CANARY not in repr(seen)
    assert seen[0].system == policy_line(POLICY)
    assert seen[1] == PublicMessage(Role.USER, "order 123")


def test_usage_of_the_user_is_summed() -> None:
    async def episode() -> Usage:
        desk = CompactDesk(user=Person())
        await desk.reset(task(), seed=5)
        await desk.step(action(ASK))
        return desk.user_usage

    assert asyncio.run(episode()).calls == 2


@pytest.mark.parametrize("ending", [[RIGHT], [BAD] * 3, [ASK] * 8])
def test_a_step_after_the_end_is_the_callers_fault(ending: Sequence[str]) -> None:
    with pytest.raises(CallerError):
        run(*ending, ASK)


def test_steps_before_reset_second_resets_and_two_steps_at_once_are_refused() -> None:
    class Slow(Person):
        async def respond(self, request: UserRequest) -> Reply:
            await asyncio.sleep(0)
            return await super().respond(request)

    async def misuse() -> None:
        desk = CompactDesk(user=Slow())
        with pytest.raises(CallerError):
            await desk.step(action(ASK))
        await desk.reset(task(), seed=5)
        with pytest.raises(CallerError):
            await desk.reset(task(), seed=5)
        first = asyncio.ensure_future(desk.step(action(ASK)))
        await asyncio.sleep(0)
        with pytest.raises(CallerError, match="two steps"):
            await desk.step(action(ASK))
        assert not (await first).done

    asyncio.run(misuse())


def test_a_failing_user_commits_nothing() -> None:
    async def episode() -> tuple[dict[str, Any], dict[str, Any], StepResult]:
        person = Person(says("hello"), InfraError("away", retryable=True), says("order 123"))
        desk = CompactDesk(user=person)
        await desk.reset(task(), seed=5)
        before = desk.snapshot()
        with pytest.raises(InfraError):
            await desk.step(action(ASK))
        after = desk.snapshot()
        return before, after, await desk.step(action(ASK))

    before, after, result = asyncio.run(episode())
    assert {**before, "user_state": None} == {**after, "user_state": None}
    assert [m.content for m in result.feedback] == ["order 123"]


@pytest.mark.parametrize("kind", ["neutral", "realistic", "hostile", "B2", "B6", "B10"])
def test_a_restored_desk_goes_on_as_if_nothing_had_happened(kind: str) -> None:
    lines = ["what is the kind of help ?", BAD, "what is the order number and the new size ?", ASK]
    closing = "act refund order 101 to card"

    async def play(about: Task, cut: int) -> None:
        desk = CompactDesk(user=CompactUser(about.scenario, kind=kind, seed=8))
        await desk.reset(about, seed=5)
        for line in lines[:cut]:
            if not (await desk.step(action(line))).done:
                continue
            return
        state = jsonio.loads(jsonio.dumps(desk.snapshot()))
        twin = CompactDesk(user=CompactUser(about.scenario, kind=kind, seed=99))
        await twin.reset(about, seed=6)
        twin.restore(state)
        assert jsonio.dumps(twin.snapshot()) == jsonio.dumps(state)
        for line in [*lines[cut:], closing]:
            one, two = await desk.step(action(line)), await twin.step(action(line))
            assert (one.feedback, one.reward, one.reason) == (two.feedback, two.reward, two.reason)
            assert one.private.grading == two.private.grading
            if one.done:
                return

    for about in make_tasks("test", 3, 6):
        for cut in range(4):
            asyncio.run(play(about, cut))


def test_a_state_of_another_task_is_refused() -> None:
    async def misuse() -> None:
        one, two = make_tasks("test", 3, 2)
        desk = CompactDesk(user=Person())
        await desk.reset(one, seed=5)
        other = CompactDesk(user=Person())
        await other.reset(two, seed=5)
        with pytest.raises(CallerError, match="another task"):
            other.restore(desk.snapshot())

    asyncio.run(misuse())


def test_tasks_are_reproducible_and_show_the_policy_only() -> None:
    tasks = make_tasks("test", 3, 5)
    assert tasks == make_tasks("test", 3, 5)
    assert {t.id for t in tasks}.isdisjoint(t.id for t in make_tasks("train", 3, 5))
    for made in tasks:
        assert set(made.public) == {"profile", "policy"}
        jsonio.dumps([dict(made.public), dict(made.hidden), dict(made.meta)])


# -- the desk's own agents ------------------------------------------------------------------


def success(agent: type[Any], kind: str, count: int = 200) -> float:
    """Share of successes of an agent that reads views, on tasks of the pack."""
    users = make_user(f"scripted:{kind}")

    async def one(about: Task) -> bool:
        seed = derive(0, about.id)
        desk = make_gym(
            "support-desk", profile="compact", user=users.start(about.scenario, seed=seed)
        )
        observation = await desk.reset(about, seed=seed)
        player, heard = agent(about, seed), ()
        for step in range(MAX_STEPS):
            line = (await player.act(AgentView(observation, heard, step, MAX_STEPS - step))).text
            result = await desk.step(action(line))
            heard = (*heard, PublicMessage(Role.AGENT, line), *result.feedback)
            if result.done:
                return bool(result.success)
        raise AssertionError("the desk never ended")

    async def all_of_them() -> list[bool]:
        tasks = load_tasks("support-desk", profile="compact", split="test", seed=9, count=count)
        return [await one(about) for about in tasks]

    wins = asyncio.run(all_of_them())
    return sum(wins) / len(wins)


@pytest.mark.parametrize(
    ("kind", "at_least"),
    [
        ("cooperative", 1.0),
        ("easy", 1.0),
        ("neutral", 0.99),
        ("realistic", 0.9),
        ("heldout-1", 1.0),
        ("heldout-2", 0.99),
        ("heldout-4", 0.9),
        ("heldout-5", 0.9),
    ],
)
def test_patience_solves_what_can_be_solved(kind: str, at_least: float) -> None:
    """The ceiling: reading public words only, every one of these users can be satisfied."""
    assert success(PatientAgent, kind) >= at_least


def test_a_hasty_agent_loses_where_fields_must_be_asked_for() -> None:
    assert success(EagerAgent, "cooperative") == 1.0
    assert success(EagerAgent, "heldout-3") < 0.5


def test_the_demonstrator_is_good_with_easy_users_and_leaves_room_elsewhere() -> None:
    cooperative, neutral = (success(DemonstratorAgent, k, 300) for k in ("cooperative", "neutral"))
    assert 0.85 < cooperative < 1.0
    assert 0.4 < neutral < 0.8
    assert success(DemonstratorAgent, "hostile", 300) < neutral


def test_the_oracle_knows_and_silence_wins_nothing() -> None:
    tasks = load_tasks("support-desk", profile="compact", split="test", seed=9, count=100)
    found = asyncio.run(floors(tasks, make_user("scripted:neutral")))
    assert found.oracle == pytest.approx(1.0)
    assert found.null == 0.0
    assert found.sound


def test_the_oracle_does_not_foresee_a_goal_that_moves() -> None:
    assert success(OracleAgent, "neutral", 50) == 1.0
    assert success(OracleAgent, "B6", 50) > 0.95  # it acts before the customer changes its mind


def view(*said: str, left: int = 8) -> AgentView:
    from mimesim.envs.base import Observation

    observation = Observation(policy_line(POLICY), said[0])
    heard = tuple(PublicMessage(Role.USER, text) for text in said[1:])
    return AgentView(observation, heard, 8 - left, left)


def test_a_careful_reader_keeps_the_last_value_of_each_field() -> None:
    reading = Reading(
        view("hello . please refund the clock . order 123 . use the card", "order 124")
    )
    assert reading.intent == "refund"
    assert reading.latest == {"order": "124", "method": "card"}
    assert reading.first == {"order": "123", "method": "card"}
    assert reading.missing() == ["days", "tier"]
    assert reading.policy == POLICY


def test_a_reader_is_not_misled_by_distractions_and_decoys() -> None:
    reading = Reading(
        view(
            "order 350 had one in it . please refund the clock . paid with wallet , so do the good"
            " thing . i can not use voucher or transfer . someone at your shop said yes"
        )
    )
    assert reading.latest == {}
    assert reading.intent == "refund"
    assert reading.pressed


def test_an_expert_asks_for_what_the_note_names_and_acts_when_nothing_is_missing() -> None:
    opening = "please refund the clock . order 123 . use the card . 40 days now . gold level"
    asked = expert_line(view(opening), ["tier", "days"], seed=1)
    assert parse_final(asked) is None
    assert "level" in asked
    assert "date" in asked
    assert expert_line(view(opening), [], seed=1) == FinalAction("refund", "123", "card").line()
    assert parse_final(expert_line(view(opening, left=1), ["tier"], seed=1)) is not None
