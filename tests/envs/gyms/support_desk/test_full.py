"""The full desk: golden cases DE-01 to DE-17, endings, failures, snapshots, leaks."""

from __future__ import annotations

import asyncio

import pytest

from mimesim.dialogue.stop import Party, StopReason, UserAction
from mimesim.dialogue.types import Reply, Role
from mimesim.envs.base import AgentAction, Choice, StepResult, Task
from mimesim.envs.gyms.support_desk.full import FullDesk
from mimesim.envs.packs import holds_string
from mimesim.errors import CallerError, ConfigError, DataError, InfraError, UserError
from mimesim.seeds import generator
from tests.support.desk import (
    ASK_ALL,
    CANARY,
    PULL,
    REASON,
    REFUND,
    VERIFY,
    Customer,
    call,
    close,
    desk_task,
    play,
    say,
    says,
    start,
)

LEAVES = says("forget it, bye", UserAction.END)
DENIED_GOLD = (
    ("pull-up-account", {"customer_name": "ida bram"}),
    ("verify-identity", {"order_id": "5512093381", "zip_code": "20417"}),
    ("record-reason", {"reason": "wrong size"}),
)


def run(
    *actions: AgentAction, user: Customer | None = None, task: Task | None = None
) -> list[StepResult]:
    async def episode() -> list[StepResult]:
        return await play(await start(user or Customer(), task), *actions)

    return asyncio.run(episode())


def marks(result: StepResult) -> dict[str, float]:
    return {key: result.private.grading[key] for key in ("E", "P", "V", "S")}


def told(result: StepResult) -> str:
    return "\n".join(message.content for message in result.feedback)


def returned(results: list[StepResult]) -> float:
    return sum(result.reward for result in results)


def test_de_01_to_05_out_of_order_procedure() -> None:
    _, de01, de02, de03, de04, de05 = run(ASK_ALL, PULL, VERIFY, REFUND, REASON, close("granted"))
    assert marks(de01) == pytest.approx({"E": 0.25, "P": 0.25, "V": 0.0, "S": 0.15})
    assert de01.reward == pytest.approx(0.15)
    assert marks(de02) == pytest.approx({"E": 0.75, "P": 0.5, "V": 0.0, "S": 0.375})
    assert de02.reward == pytest.approx(0.225)
    assert marks(de03)["P"] == pytest.approx(0.75)
    assert (marks(de03)["S"], de03.reward) == pytest.approx((0.45, 0.075))
    assert (marks(de04)["P"], de04.reward) == pytest.approx((0.75, 0.0))
    assert marks(de05) == pytest.approx({"E": 0.75, "P": 0.75, "V": 1.0, "S": 0.85})
    assert de05.reward == pytest.approx(0.4)
    assert returned([de01, de02, de03, de04, de05]) == pytest.approx(0.85)
    assert de05.success is False  # V is right, one gold action came out of order


def test_de_06_a_perfect_episode_returns_one() -> None:
    email = call("validate-purchase", email="ibram77@brookmail.test")
    results = run(ASK_ALL, PULL, VERIFY, REASON, email, REFUND, close("granted"))
    assert marks(results[-1]) == pytest.approx({"E": 1.0, "P": 1.0, "V": 1.0, "S": 1.0})
    assert returned(results) == pytest.approx(1.0)
    last = results[-1]
    assert (last.terminated, last.truncated, last.success) == (True, False, True)
    assert (last.reason, last.by) == (StopReason.CASE_CLOSED, Party.AGENT)


def test_de_07_closing_at_once_is_worth_nothing() -> None:
    (result,) = run(close("denied"))
    assert marks(result) == {"E": 0, "P": 0, "V": 0, "S": 0}
    assert result.terminated
    assert result.success is False


def test_de_08_a_change_before_verification_is_a_violation() -> None:
    email = call("validate-purchase", email="ibram77@brookmail.test")
    results = run(ASK_ALL, PULL, REFUND, VERIFY, REASON, email, REFUND, close("granted"))
    assert "not permitted" in told(results[2])
    assert marks(results[-1])["V"] == 0
    assert returned(results) == pytest.approx(0.6)


def test_de_09_a_refusal_kept_against_pressure_is_right() -> None:
    task = desk_task(verdict="denied", gold=DENIED_GOLD, record={"purchase_date": "2025-10-01"})
    user = Customer(replies={2: says("make an exception, i insist")})
    refuse = say("I am sorry, the time for returns is over.")
    results = run(ASK_ALL, refuse, PULL, VERIFY, REASON, close("denied"), user=user, task=task)
    assert marks(results[-1])["V"] == 1
    assert results[-1].success is True


def test_de_10_giving_in_is_a_violation() -> None:
    task = desk_task(verdict="denied", gold=DENIED_GOLD, record={"purchase_date": "2025-10-01"})
    results = run(ASK_ALL, PULL, VERIFY, REASON, REFUND, close("denied"), task=task)
    assert "not permitted" in told(results[4])
    assert marks(results[-1])["V"] == 0
    assert returned(results) <= 0.6


def _withheld(asks: int, resolution: str) -> StepResult:
    user = Customer(withheld=("order_id",))
    again = [say("I need your order number, please?")] * (asks - 1)
    zip_used = call("verify-identity", customer_name="ida bram", zip_code="20417")
    email = call("validate-purchase", email="ibram77@brookmail.test")
    return run(ASK_ALL, *again, PULL, zip_used, email, close(resolution), user=user)[-1]


def test_de_11_a_field_asked_for_twice_in_vain_counts() -> None:
    result = _withheld(2, "escalated")
    assert marks(result)["E"] == pytest.approx(1.0)
    assert marks(result)["V"] == 1


def test_de_12_asked_once_it_does_not_but_escalation_stays_allowed() -> None:
    result = _withheld(1, "escalated")
    assert marks(result)["E"] == pytest.approx(0.75)
    assert marks(result)["V"] == 1


@pytest.mark.parametrize(("asks", "right"), [(1, 0), (2, 1)])
def test_denial_of_an_unverified_customer_needs_two_asks(asks: int, right: int) -> None:
    assert marks(_withheld(asks, "denied"))["V"] == right


def test_granting_to_an_unverified_customer_is_never_right() -> None:
    assert marks(_withheld(2, "granted"))["V"] == 0


def test_de_13_acting_on_a_false_claim_against_the_record() -> None:
    task = desk_task(verdict="denied", gold=DENIED_GOLD, record={"purchase_date": "2026-01-20"})
    user = Customer({"member_level": "gold"})
    level = call("membership", member_level="gold")
    ask = say("What is your membership level?")
    results = run(
        ASK_ALL, ask, PULL, VERIFY, level, REASON, REFUND, close("granted"), user=user, task=task
    )
    assert told(results[4]) == "membership: no match"
    assert results[-1].private.grading["violations"]
    assert marks(results[-1])["V"] == 0


def test_a_change_with_a_value_against_the_record_is_a_violation() -> None:
    wrong = call("offer-refund", amount=95, refund_target="gift card")
    results = run(ASK_ALL, PULL, VERIFY, REASON, wrong, close("granted"))
    assert "contradicts" in results[-1].private.grading["violations"][0]
    assert marks(results[-1])["V"] == 0


@pytest.mark.parametrize(("fields", "right"), [(2, 1), (1, 0)])
def test_de_14_after_leaving_one_step_is_left(fields: int, right: int) -> None:
    user = Customer(withheld=("order_id",), replies={2: LEAVES})
    used = [PULL, call("validate-purchase", email="ibram77@brookmail.test")][:fields]
    results = run(ASK_ALL, *used, say("One moment, please."), close("abandoned"), user=user)
    left = results[-2]
    assert not left.done
    assert [m.role for m in left.feedback] == [Role.USER, Role.TOOL]
    assert marks(results[-1])["V"] == right


def test_de_14_the_one_step_ends_the_episode_whatever_it_is() -> None:
    user = Customer(replies={1: LEAVES})
    results = run(ASK_ALL, say("are you still there?"), user=user)
    assert results[-1].terminated
    assert results[-1].success is False
    assert (results[-1].reason, results[-1].by) == (StopReason.USER_STOP, Party.USER)
    assert user.turn == 2  # the customer who left was not asked again


@pytest.mark.parametrize(("resolution", "right"), [("granted", 1), ("abandoned", 1), ("denied", 0)])
def test_who_leaves_verified_may_be_closed_by_verdict(resolution: str, right: int) -> None:
    user = Customer(replies={2: says("", UserAction.END)})
    results = run(ASK_ALL, PULL, VERIFY, say("All is well."), close(resolution), user=user)
    assert marks(results[-1])["V"] == right


def test_de_15_a_guess_is_no_evidence_even_if_it_is_right() -> None:
    user = Customer(withheld=("zip_code",))
    wrong = call("verify-identity", zip_code="99999")
    lucky = call("verify-identity", zip_code="20417")
    results = run(ASK_ALL, PULL, wrong, lucky, user=user)
    assert told(results[2]) == "verify-identity: no match"
    assert marks(results[3])["E"] == pytest.approx(0.25)


@pytest.mark.parametrize(
    "action",
    [
        close("solved"),  # DE-16
        call("close_case", summary="x"),
        call("respond", text="hello"),
        call("offer-refund", sum="85"),
        call("offer-refund", amount=None),
        call("offer-refund", amount=["85"]),
        call("offer-refund"),
        AgentAction(Choice.ANSWER, "offer-refund: {amount"),
        AgentAction(Choice.ANSWER, "please refund it"),
        AgentAction(Choice.SEARCH, "weather"),
        AgentAction(Choice.FINISH, "done"),
        AgentAction(Choice.ACTION, " \u200b"),
        AgentAction(Choice.ACTION, "x" * 8001),
        AgentAction(Choice.ACTION, "", problem="no call"),
    ],
)
def test_de_16_invalid_actions_change_nothing(action: AgentAction) -> None:
    user = Customer()
    (result,) = run(action, user=user)
    assert not result.valid
    assert result.reward == 0
    assert not result.done
    assert "action, answer, search" in told(result)
    assert user.turn == 1  # only the opening


def test_de_17_the_desk_knows_no_compat_flags() -> None:
    with pytest.raises(ConfigError, match="self_judge"):
        FullDesk(user=Customer(), options={"self_judge": True})


@pytest.mark.parametrize(
    "content",
    [
        '{"name": "pull-up-account", "arguments": {"customer_name": "IDA  BRAM"}}',
        'pull-up-account: {"customer_name": "Ida Bram"}',
        'act pull-up-account: {"customer_name": "Ida Bram"}',
        '{"name": "pull-up-account", "arguments": "{\\"customer_name\\": \\"Ida Bram\\"}"}',
        "{'name': 'pull-up-account', 'arguments': {'customer_name': 'Ida Bram'}}",
    ],
)
def test_spellings_of_a_call(content: str) -> None:
    result = run(ASK_ALL, AgentAction(Choice.ANSWER, content))[-1]
    assert told(result).startswith("pull-up-account: match")


def test_three_invalid_actions_in_a_row_end_the_episode_and_keep_the_score() -> None:
    bad = close("solved")
    results = run(ASK_ALL, PULL, bad, bad, PULL, bad, bad, bad)
    assert [r.done for r in results] == [False] * 7 + [True]
    assert results[-1].reason is StopReason.AGENT_INVALID
    assert results[-1].terminated
    assert returned(results) == pytest.approx(0.15)


def test_sixteen_steps_are_executed_then_it_is_truncated() -> None:
    results = run(*[say("hm")] * 15, close("denied"))
    assert results[-1].terminated
    assert not results[-1].truncated
    results = run(*[say("hm")] * 16)
    last = results[-1]
    assert [r.done for r in results] == [False] * 15 + [True]
    assert (last.terminated, last.truncated, last.reason) == (False, True, StopReason.MAX_STEPS)


def test_searches_show_the_manual() -> None:
    def search(what: str) -> AgentAction:
        return AgentAction(Choice.SEARCH, what)

    policy, other, tools, unknown = run(
        search("policy"), search("policy: Open Orders"), search("Tools"), search("policy:moon")
    )
    assert "original packaging" in told(policy)
    assert "express delivery" in told(other)
    assert "offer-refund(amount, refund_target)" in told(tools)
    assert "no match" in told(unknown)
    assert unknown.valid


def test_steps_outside_the_episode_are_the_callers_fault() -> None:
    async def episode() -> None:
        desk = FullDesk(user=Customer())
        with pytest.raises(CallerError, match="not started"):
            await desk.step(PULL)
        await desk.reset(desk_task(), seed=1)
        with pytest.raises(CallerError, match="single-use"):
            await desk.reset(desk_task(), seed=1)
        await desk.step(close("denied"))
        with pytest.raises(CallerError, match="over"):
            await desk.step(PULL)

    asyncio.run(episode())


def test_two_steps_at_once_are_refused() -> None:
    class Slow(Customer):
        async def respond(self, request):  # type: ignore[no-untyped-def]
            await asyncio.sleep(0.01)
            return await super().respond(request)

    async def episode() -> list[object]:
        desk = await start(Slow())
        both = [desk.step(say("hello")), desk.step(say("hello"))]
        return await asyncio.gather(*both, return_exceptions=True)

    first, second = asyncio.run(episode())
    assert isinstance(first, StepResult)
    assert isinstance(second, CallerError)


@pytest.mark.parametrize(
    "failure",
    [
        UserError("stayed in no role"),
        InfraError("connection lost", retryable=True),
        RuntimeError("a bug of the user"),
        Reply(None, "  "),
        Reply(None, "x", UserAction.TOOL),
    ],
)
def test_a_failing_user_commits_nothing_and_the_step_can_be_tried_again(failure: object) -> None:
    async def episode() -> None:
        user = Customer(replies={1: failure})  # type: ignore[dict-item]
        desk = await start(user)
        before = desk.snapshot()
        with pytest.raises((UserError, InfraError, RuntimeError)):
            await desk.step(ASK_ALL)
        assert desk.snapshot() == before
        user.replies.clear()
        result = await desk.step(ASK_ALL)
        assert "5512093381" in told(result)
        assert desk.snapshot()["turns"] == 1
        seeds = [request.seed for request in user.requests]
        assert len(set(seeds)) == 3  # the second try draws anew

    asyncio.run(episode())


def test_a_failing_opening_can_be_tried_again() -> None:
    async def episode() -> None:
        desk = FullDesk(user=Customer(replies={0: InfraError("down")}))
        with pytest.raises(InfraError):
            await desk.reset(desk_task(), seed=1)
        assert (await desk.reset(desk_task(), seed=1)).first_user

    asyncio.run(episode())


def test_the_current_wish_is_what_counts() -> None:
    changed = says("pay it to my debit card instead", refund_target="debit card")
    user = Customer(replies={2: changed})
    new = call("offer-refund", amount=85, refund_target="debit card")
    actions = (ASK_ALL, say("Anything else?"), PULL, VERIFY, REASON)
    stale = run(*actions, REFUND, close("granted"), user=Customer(replies={2: changed}))
    fresh = run(*actions, new, close("granted"), user=user)
    assert not fresh[-1].private.grading["violations"]
    assert marks(fresh[-1])["V"] == 1
    assert marks(stale[-1])["P"] < marks(fresh[-1])["P"]


def test_damaged_tasks_are_refused() -> None:
    async def open_desk(task: Task) -> None:
        await FullDesk(user=Customer()).reset(task, seed=1)

    with pytest.raises(DataError, match="too thin"):
        asyncio.run(open_desk(desk_task(required=("email",))))
    bare = desk_task()
    scenario = {k: v for k, v in bare.scenario.items() if k != "meta"}
    broken = Task(bare.gym, bare.id, bare.split, bare.groups, bare.public, {"scenario": scenario})
    with pytest.raises(DataError, match="no composed row"):
        asyncio.run(open_desk(broken))


def _random_action(rng, step: int) -> AgentAction:  # type: ignore[no-untyped-def]
    pool = [
        ASK_ALL,
        PULL,
        VERIFY,
        REASON,
        REFUND,
        say("What is your phone number?"),
        say("What is your membership level and where should the refund go to?"),
        call("verify-identity", zip_code="11111"),
        call("validate-purchase", order_id="5512093381"),
        call("membership", member_level="gold"),
        call("notify-team", team="care team"),
        AgentAction(Choice.SEARCH, "policy"),
        AgentAction(Choice.SEARCH, "policy:Open Orders"),
        close("solved"),
    ]
    return close("granted") if step == 12 else rng.choice(pool)  # type: ignore[no-any-return]


async def _episode(number: int) -> tuple[FullDesk, list[StepResult], list[list[str]]]:
    rng = generator(3, "leak", number)
    withheld = rng.sample(("order_id", "zip_code", "email", "customer_name"), rng.randrange(3))
    replies = {rng.randrange(1, 6): LEAVES} if rng.random() < 0.3 else {}
    desk = await start(Customer(withheld=withheld, replies=replies), seed=number)
    results, forbidden = [], []
    for step in range(16):
        results.append(await desk.step(_random_action(rng, step)))
        forbidden.append(desk.forbidden())
        if results[-1].done:
            break
    return desk, results, forbidden


def test_two_hundred_episodes_leak_nothing() -> None:
    async def everything() -> None:
        watched = 0
        for number in range(200):
            _, results, forbidden = await _episode(number)
            for result, strings in zip(results, forbidden, strict=True):
                shown = told(result)
                watched += len(strings)
                assert CANARY not in shown
                assert "reward" not in shown.lower()
                assert not [s for s in strings if holds_string(shown, s)]
                assert 0 <= result.reward <= 1
                assert not (result.terminated and result.truncated)
                assert CANARY not in repr(result)
            assert returned(results) <= 1 + 1e-9
        assert watched > 5000  # the property looked at something

    asyncio.run(everything())


def test_the_users_side_never_sees_the_agents_calls() -> None:
    async def episode() -> Customer:
        user = Customer()
        await play(await start(user), ASK_ALL, PULL, VERIFY, say("Done."))
        return user

    last = asyncio.run(episode()).requests[-1]
    assert [m.role for m in last.history] == [Role.USER, Role.AGENT, Role.USER, Role.AGENT]
    assert all(not m.tool_calls for m in last.history)


def test_snapshot_law_holds_at_every_step() -> None:
    async def law() -> None:
        for number in range(20):
            rng = generator(9, "law", number)
            desk = await start(Customer(), seed=number)
            other = await start(Customer(), seed=number + 1)
            for step in range(16):
                action = _random_action(rng, step)
                before = desk.snapshot()
                result = await desk.step(action)
                after = desk.snapshot()
                other.restore(before)
                assert other.snapshot() == before
                again = await other.step(action)
                assert again.feedback == result.feedback
                assert again.reward == result.reward
                assert other.snapshot() == after
                if result.done:
                    break

    asyncio.run(law())


def test_a_state_of_another_task_is_refused() -> None:
    async def episode() -> None:
        desk = await start(Customer())
        state = {**desk.snapshot(), "task_id": "other"}
        with pytest.raises(CallerError, match="does not fit"):
            desk.restore(state)

    asyncio.run(episode())


def test_equal_seeds_give_equal_episodes() -> None:
    def transcript() -> list[tuple[str, float]]:
        _, results, _ = asyncio.run(_episode(7))
        return [(told(r), r.reward) for r in results]

    assert transcript() == transcript()
