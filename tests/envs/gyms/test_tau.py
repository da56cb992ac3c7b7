"""The gym `tau`, rows TA-01 to TA-14 as the repaired gym plays them and under compat."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mimesim.dialogue.stop import END_MARKER, Party, StopReason, UserAction, read_marker
from mimesim.dialogue.types import Role
from mimesim.envs.base import AgentAction, Choice, Task
from mimesim.envs.gyms.tau import bench, tasks
from mimesim.envs.gyms.tau.gym import REMINDER, TauGym
from mimesim.envs.load import load_tasks
from mimesim.errors import ContextExceeded, InfraError, UserError
from mimesim.models.scripted import Scripted
from mimesim.scenarios.types import Scenario
from mimesim.users.settings import Settings
from mimesim.users.simulator import Simulator
from tests.support.tau import (
    CANARY,
    STOPS,
    Customer,
    checkout,
    look,
    run,
    say,
    says,
    started,
    told,
    use,
)

COMPAT: dict[str, Any] = {"compat": "userrl"}
MODES = pytest.mark.parametrize("options", [{}, COMPAT], ids=["fixed", "compat"])
LEAVES = says("thanks, that was all", UserAction.END)


def errand(intent: str, *, granted: bool = True) -> Task:
    """Return a made task of an errand that the policy allows, or does not."""
    for task in tasks.make_tasks("train", 0, 300):
        allowed = bool(task.hidden["actions"]) == granted or intent not in tasks.FORBIDDABLE
        if task.hidden["script"]["intent"] == intent and allowed:
            return task
    raise AssertionError(intent)


CANCEL = errand("cancel")
ORDER = CANCEL.hidden["script"]["facts"]["order"]
GOLD = use(f'{{"name": "cancel_order", "arguments": {{"order": "{ORDER}"}}}}')
SHOWN = f"order {ORDER} : pending"


@pytest.fixture
def retail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """The tasks of a hand-made copy of tau-bench: a change, a floor task, an answer."""
    monkeypatch.setenv(bench.VARIABLE, str(checkout(tmp_path)))
    return sorted(load_tasks("tau", profile="retail"), key=lambda task: task.id)


def live(options: dict[str, Any]) -> dict[str, Any]:
    """Tasks of a checkout have no stored first message."""
    return {**options, "tau_first_message": "live"}


@MODES
@pytest.mark.parametrize(
    "content",
    [
        f'{{"name": "get_order", "arguments": {{"order": "{ORDER}"}}}}',
        f'get_order: {{"order": "{ORDER}"}}',
    ],
    ids=["TA-01", "TA-02"],
)
def test_ta_01_and_02_calls_are_carried_out(content: str, options: dict[str, Any]) -> None:
    (result,) = run(CANCEL, use(content), **options)
    assert told(result).startswith(SHOWN)
    assert result.feedback[0].role is Role.TOOL
    assert (result.valid, result.reward, result.done) == (True, 0.0, False)


@pytest.mark.parametrize(
    "content",
    [
        "get_order",
        'get_order: {"order": ',
        f'get_order: {{"order": "{ORDER}"}} and so on',
        f'{{"name": "get_order", "arguments": {{"order": "{ORDER}"}}',
        f"{{'name': 'get_order', 'arguments': {{'order': '{ORDER}'}}}}",
        '{"arguments": {}}',
        '{"name": "get_order"}',
        '{"name": "get_order", "arguments": ["104"]}',
    ],
)
def test_ta_03_what_is_no_call(content: str) -> None:
    (fixed,) = run(CANCEL, use(content))
    assert (fixed.valid, fixed.reward) == (False, 0.0)
    assert told(fixed).startswith("Not a valid step")
    (compat,) = run(CANCEL, use(content), **COMPAT)
    assert (compat.valid, compat.reward, compat.done) == (True, 0.0, False)
    assert SHOWN not in told(fixed) + told(compat)


def test_ta_04_arguments_as_a_string() -> None:
    call = use(f'{{"name": "get_order", "arguments": "{{\\"order\\": \\"{ORDER}\\"}}"}}')
    (fixed,) = run(CANCEL, call)
    assert told(fixed).startswith(SHOWN)
    (compat,) = run(CANCEL, call, **COMPAT)
    assert "no call of a tool" in told(compat)
    assert SHOWN not in told(compat)


def test_ta_05_an_unknown_tool() -> None:
    call = use('{"name": "open_safe", "arguments": {}}')
    (fixed,) = run(CANCEL, call)
    assert not fixed.valid
    assert "open_safe" in told(fixed)
    assert "cancel_order" not in told(fixed)
    assert ORDER not in told(fixed)
    (compat,) = run(CANCEL, call, **COMPAT)
    assert compat.valid
    assert "open_safe" in told(compat)


def test_ta_06_respond_is_no_tool() -> None:
    call = use('respond: {"content": "what is the number ?"}')
    fixed_user, compat_user = Customer(), Customer()
    (fixed,) = run(CANCEL, call, user=fixed_user)
    assert not fixed.valid
    assert len(fixed_user.asked) == 1  # the opening
    (compat,) = run(CANCEL, call, user=compat_user, **COMPAT)
    assert compat.feedback[0].role is Role.USER
    assert compat_user.asked[-1].agent_text == "what is the number ?"
    (nothing,) = run(CANCEL, use('respond: {"text": "hello"}'), **COMPAT)
    assert nothing.feedback[0].role is Role.TOOL


@MODES
def test_ta_07_handing_over_at_once(options: dict[str, Any], retail: list[Task]) -> None:
    call = use('{"name": "transfer_to_human_agents", "arguments": {"summary": "none"}}')
    rewards = [run(task, call, **live(options))[0].reward for task in retail]
    assert rewards == [0.0, 1.0, 0.0]
    (mini,) = run(CANCEL, use('transfer: {"reason": "none"}'), **options)
    assert (mini.reward, mini.success, mini.terminated) == (0.0, False, True)
    assert (mini.reason, mini.by) == (StopReason.USER_TRANSFER, Party.AGENT)


def test_ta_08_a_marker_behind_words_leaves_one_closing_turn() -> None:
    marked = read_marker(f"thanks, that was all {END_MARKER}")
    assert (marked.text, marked.action) == ("thanks, that was all", UserAction.END)
    lines = (says("hello"), says(marked.text, marked.action))
    spoken, closing = run(CANCEL, say("anything else ?"), GOLD, user=Customer(*lines))
    assert told(spoken) == "thanks, that was all"
    assert not spoken.done
    assert (closing.terminated, closing.reward, closing.success) == (True, 1.0, True)
    assert (closing.reason, closing.by) == (StopReason.USER_STOP, Party.USER)
    assert "cancelled" in told(closing)
    for line in (says(marked.text, marked.action), says(f"thanks {END_MARKER} that was all")):
        customer = Customer(says("hello"), line)
        (compat,) = run(CANCEL, say("anything else ?"), user=customer, **COMPAT)
        assert (compat.terminated, compat.reason) == (True, StopReason.USER_STOP)


@pytest.mark.parametrize("last", [say("goodbye"), look("help"), use('get_user: {"user": "u1"}')])
def test_ta_08_nobody_answers_in_the_closing_turn(last: AgentAction) -> None:
    customer = Customer(says("hello"), LEAVES)
    _, closing = run(CANCEL, say("is that all ?"), last, user=customer)
    assert closing.terminated
    assert len(customer.asked) == 2
    assert all(message.role is not Role.USER for message in closing.feedback)


def test_ta_08_words_of_the_closing_turn_count() -> None:
    task = errand("points")
    value = task.hidden["outputs"][0]
    closing = run(task, say("wait"), say(f"it is {value}"), user=Customer(says("hi"), LEAVES))[-1]
    assert closing.reward == 1.0


def test_ta_08_an_invalid_closing_turn_is_the_last_one_too() -> None:
    broken = AgentAction(Choice.ACTION, "", problem="nothing was said")
    last = run(CANCEL, GOLD, say("done"), broken, user=Customer(says("hi"), LEAVES))[-1]
    assert (last.valid, last.reward, last.success) == (False, 1.0, True)
    assert (last.reason, last.by) == (StopReason.USER_STOP, Party.USER)
    lost = run(CANCEL, say("done"), broken, user=Customer(says("hi"), LEAVES))[-1]
    assert (lost.reward, lost.reason) == (0.0, StopReason.USER_STOP)


def test_ta_08_no_closing_turn_is_left_after_the_last_one() -> None:
    (result,) = run(CANCEL, say("bye"), user=Customer(says("hi"), LEAVES), max_turns=1)
    assert (result.terminated, result.truncated) == (True, False)
    assert result.reason is StopReason.USER_STOP


@MODES
def test_ta_09_a_customer_who_leaves_before_the_change(options: dict[str, Any]) -> None:
    (result,) = run(CANCEL, say("one moment"), user=Customer(says("hi"), STOPS), **options)
    assert (result.reward, result.success) == (0.0, False)
    assert (result.reason, result.by) == (StopReason.USER_STOP, Party.USER)
    assert [guard.guard for guard in result.private.guards] == ["early_stop"]
    last = run(CANCEL, GOLD, say("done"), user=Customer(says("hi"), STOPS), **options)[-1]
    assert (last.reward, last.private.guards) == (1.0, ())


@MODES
def test_ta_10_commas_of_the_agent_are_taken_out(
    options: dict[str, Any], retail: list[Task]
) -> None:
    user = Customer(says("hi"), STOPS)
    (found,) = run(retail[2], say("1,0 of them, in IL"), user=user, **live(options))
    assert found.reward == 1.0
    task = errand("points")
    value = task.hidden["outputs"][0]
    (mini,) = run(task, say(f"{value[0]},{value[1:]}"), user=Customer(says("hi"), STOPS), **options)
    assert mini.reward == 1.0


@MODES
def test_ta_10b_short_outputs(options: dict[str, Any], retail: list[Task]) -> None:
    (found,) = run(
        retail[2], say("I will check: 10"), user=Customer(says("hi"), STOPS), **live(options)
    )
    assert found.reward == 1.0  # "will" holds "il"
    task = errand("stock")
    value = task.hidden["outputs"][0]
    (mini,) = run(task, say(f"x{value}1"), user=Customer(says("hi"), STOPS), **options)
    assert (mini.reward, mini.private.grading["unsaid"]) == (0.0, [value])


@pytest.mark.parametrize(
    "error",
    [InfraError("no route"), UserError("silent"), ContextExceeded("full", party="user")],
    ids=lambda error: type(error).__name__,
)
def test_ta_11_a_customer_who_cannot_be_reached(error: Exception) -> None:
    async def episode() -> None:
        gym = await started(CANCEL, Customer(says("hi"), error, says("the red one")))
        await gym.step(GOLD)
        before = gym.snapshot()
        with pytest.raises(type(error)):
            await gym.step(say("which one ?"))
        after = gym.snapshot()
        assert {**after, "failures": 0} == before
        assert told(await gym.step(say("which one ?"))) == "the red one"

    asyncio.run(episode())
    (compat,) = run(CANCEL, say("which one ?"), user=Customer(says("hi"), error), **COMPAT)
    assert (compat.reward, compat.done, compat.valid) == (0.0, False, True)
    assert told(compat) == TauGym.CANNED
    assert compat.private.grading == {"compat": "user failed; failure scored 0"}


@pytest.mark.parametrize("first", ["stored", "live"])
def test_ta_11_a_customer_who_is_never_there(first: str) -> None:
    """The original scores such an episode 0; it shows the stored words or a sentence of its own."""
    lost = [InfraError("no route")] * 17

    async def episode() -> None:
        with pytest.raises(InfraError):
            await started(CANCEL, Customer(*lost))
        options = {**COMPAT, "tau_first_message": first}
        gym = TauGym(user=Customer(*lost), options=options)
        seen = await gym.reset(CANCEL, seed=0)
        shown = CANCEL.public["first_message"] if first == "stored" else TauGym.CANNED
        assert seen.first_user == shown
        assert gym.opening_private.grading == {"compat": "user failed"}
        results = [await gym.step(say("hello ?")) for _ in range(16)]
        assert sum(one.reward for one in results) == 0.0
        assert (results[-1].truncated, results[-1].success) == (True, False)

    asyncio.run(episode())


@MODES
def test_ta_12_two_gyms_in_one_process_have_their_own_customers(options: dict[str, Any]) -> None:
    async def both() -> None:
        first, second = Customer(says("i am the first")), Customer(says("i am the second"))
        gyms = [await started(CANCEL, user, options) for user in (first, second)]
        results = await asyncio.gather(*(gym.step(say("who is there ?")) for gym in gyms))
        assert [told(result) for result in results] == ["i am the first", "i am the second"]

    asyncio.run(both())


@MODES
def test_ta_13_a_tool_that_takes_long_stops_nobody_else(
    options: dict[str, Any], retail: list[Task], tmp_path: Path
) -> None:
    signal = tmp_path / "signal"

    async def episodes() -> list[str]:
        gyms = [await started(retail[0], None, live(options)) for _ in range(64)]
        call = use(f'wait: {{"path": "{signal}"}}')
        running = [asyncio.create_task(gym.step(call)) for gym in gyms]
        await asyncio.sleep(0)  # all have begun: the loop is free to let them end
        signal.write_text("now", "utf-8")
        return [told(result) for result in await asyncio.gather(*running)]

    assert asyncio.run(episodes()) == ["it is there"] * 64


@MODES
def test_ta_14_the_tools_are_listed_once(options: dict[str, Any]) -> None:
    first, second, helped = run(CANCEL, look("Tools"), look("tools"), look("help"), **options)
    assert "cancel_order" in told(first)
    assert ("required" in told(first)) is (options == {})
    assert told(second) == REMINDER
    assert told(helped)
    (other,) = run(CANCEL, look("orders"), **options)
    assert other.valid is (options != {})
    assert other.reward == 0.0


def test_what_is_seen_first() -> None:
    async def first(**options: Any) -> tuple[str, str, Customer]:
        customer = Customer(says("i say this now"), says("order 9 ."))
        gym = (await started(CANCEL, customer, options)) if options else None
        gym = gym or await started(CANCEL, customer)
        await gym.step(say("what is it ?"))
        return gym.system(CANCEL), gym.heard()[0].content, customer

    system, opening, customer = asyncio.run(first())
    assert "cancel_order order" in system
    assert "pending" in system
    assert opening == "i say this now"
    system, opening, customer = asyncio.run(first(**COMPAT))
    assert "cancel_order" not in system
    assert "pending" not in system
    assert opening == CANCEL.public["first_message"]
    assert [m.content for m in customer.asked[-1].history] == ["i say this now"]


def test_a_customer_sees_words_and_no_tools() -> None:
    customer = Customer(says("hello"), says("it is red"))
    run(CANCEL, look("tools"), GOLD, say("what color ?"), say("and size ?"), user=customer)
    last = customer.asked[-1]
    assert [m.content for m in last.history] == ["hello", "what color ?", "it is red"]
    assert last.agent_text == "and size ?"
    assert [request.may_end for request in customer.asked] == [False, True, True]
    assert last.private == {"instruction": CANCEL.hidden["instruction"]}


def test_a_model_plays_the_customer_and_leaves() -> None:
    lines = ["I want to cancel an order.", f"That was all, thank you. {END_MARKER}"]
    model = Scripted(lines)
    settings = Settings(max_regen=0)
    person = Scenario.from_json(CANCEL.scenario, "here")
    user = Simulator(model, person, template="user/roleplay", settings=settings)
    spoken, closing = run(CANCEL, say("What can I do?"), GOLD, user=user)
    assert told(spoken) == "That was all, thank you."
    assert (closing.reward, closing.reason) == (1.0, StopReason.USER_STOP)
    opening, second = (messages[0].content for messages, _ in model.requests)
    assert CANCEL.hidden["instruction"] in second
    assert (END_MARKER in opening, END_MARKER in second) == (False, True)


@MODES
def test_thoughts_and_secrets_stay_hidden(options: dict[str, Any]) -> None:
    results = run(CANCEL, look("tools"), GOLD, say("it is done"), **options)
    text = "\n".join(map(told, results))
    assert CANARY not in text
    assert CANCEL.hidden["instruction"] not in text


@MODES
@pytest.mark.parametrize("most", [3, 16, 30])
def test_turns_are_counted_with_calls_and_then_worth_nothing(
    most: int, options: dict[str, Any]
) -> None:
    results = run(CANCEL, GOLD, *[look("help")] * (most - 1), max_turns=most, **options)
    last = results[-1]
    assert (last.truncated, last.terminated, last.reward) == (True, False, 0.0)
    assert not any(result.done for result in results[:-1])


def test_compat_does_not_carry_out_the_last_turn_of_training() -> None:
    results = run(CANCEL, *[look("help")] * 15, phase="train", **COMPAT)
    assert results[-1].truncated
    assert "Reward: 0.0" in told(results[0])


def test_finishing_is_worth_nothing() -> None:
    finish = AgentAction(Choice.FINISH, "enough")
    last = run(CANCEL, GOLD, finish, expose_finish=True)[-1]
    assert (last.reward, last.reason, last.success) == (0.0, StopReason.AGENT_STOP, False)
    assert not run(CANCEL, finish)[0].valid
