"""The parts of `tau`: reading calls, databases that are copied where touched, tasks, people, agents."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim import jsonio, prompts
from mimesim.dialogue.stop import UserAction
from mimesim.envs.agents.floors import floors
from mimesim.envs.base import AgentView, Task
from mimesim.envs.gyms.tau import customer, world
from mimesim.envs.gyms.tau.calls import read_call, spelled, written
from mimesim.envs.gyms.tau.domain import Books, Call, Records, digest, gold_digest, opened, told
from mimesim.envs.gyms.tau.tasks import FORBIDDABLE, INTENTS, make_tasks
from mimesim.envs.gyms.tau.words import vocabulary
from mimesim.envs.load import check_tasks, load_gym, load_tasks, make_gym
from mimesim.envs.turns.law import BadAction
from mimesim.envs.turns.splits import split_of
from mimesim.errors import ConfigError, DataError
from mimesim.seeds import generator
from mimesim.users.load import make_user
from mimesim.users.scripted.kinds import CHARACTERS
from tests.support.tau import Customer, line, run, say, says, started, use
from tests.support.tau import told as heard

SHOP = world.shop()
TOOLS = SHOP.tools
TASKS = make_tasks("train", 0, 60)
SPOKEN = [
    "act get_order order 104",
    "ACT get_order order 104",
    'act get_order: {"order": "104"}',
    'act {"name": "get_order", "arguments": {"order": "104"}}',
]


@pytest.mark.parametrize("text", SPOKEN)
def test_the_line_grammar_says_the_same(text: str) -> None:
    assert read_call(text, TOOLS) == Call("get_order", {"order": "104"})


def test_values_of_several_words() -> None:
    call = read_call("act transfer reason no human here", TOOLS)
    assert call == Call("transfer", {"reason": "no human here"})
    assert read_call("act exchange_item color red item lamp order 104", TOOLS).arguments == {
        "color": "red",
        "item": "lamp",
        "order": "104",
    }


@pytest.mark.parametrize(
    "text",
    [
        "act",
        "act ",
        "act fly",
        "act get_order",
        "act get_order 104",
        "act get_order order",
        "act get_order order 104 order",
        "get_order order 104",
        'get_order: {"order": "104", "color": "red"}',
        "get_order: {}",
        'get_order: ["104"]',
        '{"name": 3, "arguments": {}}',
        '{"name": "get_order", "arguments": {"order": "104"}} {"name": "get_user"}',
    ],
)
def test_what_is_no_call(text: str) -> None:
    try:
        call = read_call(text, TOOLS)
    except BadAction:
        return
    # Two words of one name: the second is a value.
    assert (text, call.arguments) == ("act get_order order 104 order", {"order": "104 order"})


@given(st.text(max_size=60) | st.sampled_from(SPOKEN).flatmap(lambda s: st.just(s[:-1])))
def test_reading_never_breaks(text: str) -> None:
    for content in (text, f"act {text}", f"get_order: {text}"):
        with suppress(BadAction):
            assert read_call(content, TOOLS).tool in TOOLS


WORDS = st.text("abc123", min_size=1, max_size=5)


@given(st.sampled_from(sorted(TOOLS)), st.data())
def test_both_spellings_are_read_back(name: str, data: st.DataObject) -> None:
    call = Call(name, {key: data.draw(WORDS) for key in TOOLS[name].names})
    assert read_call(spelled(call), TOOLS) == call
    assert read_call(written(call), TOOLS) == call


def test_tools_have_schemas() -> None:
    assert len(TOOLS) == 10
    for tool in TOOLS.values():
        assert tool.parameters["type"] == "object"
        assert set(tool.required) == set(tool.names) == set(tool.parameters["properties"])


def test_records_are_copied_when_touched_and_the_shared_ones_stay() -> None:
    shared = {"a": {"n": [1]}, "b": {"n": [2]}, "c": {"n": [3]}}
    before = jsonio.canonical(shared)
    table = Records(shared)
    table["a"]["n"].append(9)
    table.get("b")["n"] = [2]
    for _, record in table.items():
        record.setdefault("seen", True)
        del record["seen"]
    del table["c"]
    table["d"] = {"n": []}
    assert table.get("x") is None
    assert "x" not in table
    assert jsonio.canonical(shared) == before
    assert table.changes() == {"a": {"n": [1, 9]}, "c": None, "d": {"n": []}}
    assert [len(record["n"]) for record in Records(shared).values()] == [1, 1, 1]


def test_equal_databases_have_equal_hashes() -> None:
    base = SHOP.tables("1")
    order = next(k for k, o in base["orders"].items() if o["status"] == "pending")
    cancel = Call("cancel_order", {"order": order})
    nothing, once = Books(SHOP, "1").digest(()), Books(SHOP, "1").digest((cancel,))
    assert once != nothing == digest(opened(base))
    assert Books(SHOP, "1").digest((cancel, cancel, Call("get_order", {"order": order}))) == once
    zip_code = base["orders"][order]["zip"]
    there = Call("set_order_zip", {"order": order, "zip": "600"})
    back = Call("set_order_zip", {"order": order, "zip": zip_code})
    assert Books(SHOP, "1").digest((there, back)) == nothing
    assert gold_digest(SHOP, "1", [cancel]) == once
    assert gold_digest(SHOP, "2", ()) == nothing  # nothing differs from its own start


def test_books_play_calls_again_after_a_step_back() -> None:
    calls = tuple(Call("set_user_zip", {"user": "u1", "zip": z}) for z in ("611", "622", "633"))
    books = Books(SHOP, "4")
    made: tuple[Call, ...] = ()
    for call in calls:
        books.use(made, call)
        made = (*made, call)
    assert "zip 633" in books.use(made, Call("get_user", {"user": "u1"}))
    assert "zip 611" in books.use(calls[:1], Call("get_user", {"user": "u1"}))
    assert books.digest(calls) == Books(SHOP, "4").digest(calls)


@pytest.mark.parametrize("call", ["act get_order order 999", "act find_user name nobody"])
def test_what_is_not_there_is_told(call: str) -> None:
    (result,) = run(TASKS[0], line(call))
    assert heard(result).startswith("error : no ")
    assert result.valid


def test_errors_of_tools_change_nothing() -> None:
    start = gold_digest(SHOP, "0", ())
    wrong = [
        Call("exchange_item", {"order": "104", "item": "lamp", "color": "pink"}),
        Call("return_item", {"order": "nine", "item": "lamp"}),
        Call("set_user_zip", {"zip": "600"}),
    ]
    books = Books(SHOP, "0")
    assert all(books.use((), call).startswith("error :") for call in wrong)
    assert books.digest(()) == start


@pytest.mark.parametrize("number", [0, 7, world.WORLDS - 1])
def test_worlds_are_small_sound_and_the_same_for_equal_numbers(number: int) -> None:
    tables = world.make_tables(number)
    assert tables == world.make_tables(number) != world.make_tables(number + 1)
    assert len(jsonio.dumps(tables)) < 200_000
    for user, record in tables["users"].items():
        assert all(tables["orders"][order]["user"] == user for order in record["orders"])
    assert max(map(world.total, tables["orders"].values())) < int(world.ORDERS[0])


def test_the_policy_forbids_what_it_says() -> None:
    tables = world.make_tables(0)
    order, record = next(iter(tables["orders"].items()))
    item = next(iter(record["items"]))
    facts = {"order": order, "item": item, "color": "red"}
    stock = tables["products"][item]["stock"]
    for status, days, left, intent, expected in [
        ("pending", 1, 1, "cancel", ""),
        ("shipped", 1, 1, "cancel", "shipped"),
        ("delivered", 1, 1, "redirect", "delivered"),
        ("pending", 1, 1, "return", "pending"),
        ("delivered", world.RETURN_DAYS, 0, "return", ""),
        ("delivered", world.RETURN_DAYS + 1, 1, "return", "late"),
        ("delivered", 1, 0, "exchange", "out"),
        ("delivered", 1, 1, "exchange", ""),
        ("cancelled", 1, 1, "exchange", "cancelled"),
        ("shipped", 1, 0, "move", ""),
    ]:
        record.update(status=status, days=days)
        stock["red"] = left
        assert world.verdict(tables, intent, facts) == expected


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_tasks_of_a_split(split: str) -> None:
    made = make_tasks(split, 3, 200)
    assert made == make_tasks(split, 3, 200)
    assert made[:50] == make_tasks(split, 3, 50)
    assert len({task.id for task in made}) == 200
    assert {task.hidden["script"]["intent"] for task in made} == set(INTENTS)
    for task in made:
        assert split_of("tau", task.groups[0].rpartition(":")[0]) == split
        assert task.hidden["actions"] or task.hidden["outputs"]
    denied = [t for t in made if t.hidden["outputs"] and t.hidden["outputs"][0] in world.REASONS]
    assert 0.15 < len(denied) / len(made) < 0.35
    assert {task.hidden["script"]["intent"] for task in denied} == set(FORBIDDABLE)


def test_no_customer_is_in_two_splits_and_nothing_is_given_away() -> None:
    made = [t for s in ("train", "validation", "test") for t in load_tasks("tau", split=s, seed=2)]
    assert check_tasks(made) == []


def test_more_tasks_than_there_are() -> None:
    with pytest.raises(DataError, match="errands of"):
        make_tasks("nowhere", 0, 3)


DAMAGED: list[tuple[str, Any]] = [
    *((key, None) for key in ("instruction", "db_ref", "actions", "outputs", "script")),
    ("instruction", " "),
    ("db_ref", world.WORLDS),
    ("db_ref", True),
    ("outputs", [""]),
    ("outputs", "24"),
    ("actions", [{"name": "fly", "kwargs": {}}]),
    ("actions", [{"name": "get_order"}]),
    ("actions", ["get_order"]),
    ("script", {"intent": "fly", "facts": {}}),
    ("script", {"intent": "cancel", "facts": {}}),
    ("script", {"intent": "cancel", "facts": {"order": 104}}),
]


@pytest.mark.parametrize(("key", "value"), DAMAGED)
def test_damaged_tasks_are_refused_before_and_in_an_episode(key: str, value: Any) -> None:
    hidden = {k: v for k, v in TASKS[0].hidden.items() if k != key}
    task = replace(TASKS[0], hidden=hidden if value is None else {**hidden, key: value})
    with pytest.raises(DataError, match=f"hidden.{key}"):
        load_gym("tau").attainable(task)
    with pytest.raises(DataError):
        asyncio.run(started(task))


def test_a_task_that_is_won_by_doing_nothing_is_refused() -> None:
    task = next(t for t in TASKS if t.hidden["actions"])
    nothing = [{"name": "get_user", "kwargs": {"user": "u1"}}]
    idle = replace(task, hidden={**task.hidden, "actions": nothing, "outputs": []})
    with pytest.raises(DataError, match="does nothing would win"):
        load_gym("tau").secrets(idle)


def test_options_that_cannot_be_used() -> None:
    for options in ({"max_turns": 0}, {"max_turns": "9"}, {"turns": 3}):
        with pytest.raises(ConfigError):
            make_gym("tau", user=Customer(), options=options)


def test_brief_instructions_are_words_of_the_vocabulary_and_leave_the_policy_out() -> None:
    task = TASKS[0]

    async def shown(options: Mapping[str, Any]) -> str:
        gym = make_gym("tau", user=Customer(says("hi")), options=options)
        return (await gym.reset(task, seed=1)).system

    whole, brief = (asyncio.run(shown(options)) for options in ({}, {"brief": True}))
    assert world.shop().policy in whole
    assert len(brief.split()) < 12
    assert set(brief.split()) <= set(vocabulary())


def test_a_stored_first_message_is_needed_where_it_is_shown() -> None:
    task = replace(TASKS[0], public={"profile": "mini"})
    with pytest.raises(DataError, match="first_message"):
        asyncio.run(started(task, None, {"compat": True}))
    with pytest.raises(DataError, match="first_message"):
        load_gym("tau").secrets(replace(task, public={"profile": "mini", "first_message": 3}))


def test_outputs_on_word_borders() -> None:
    assert told("24", ["it is $24."], whole_words=True)
    assert told("LATE", ["too late"], whole_words=True)
    assert not told("24", ["it is 240", "x24"], whole_words=True)
    assert told("24", ["it is 240"], whole_words=False)


# People ---------------------------------------------------------------------------------------

ERRAND = customer.Errand(
    "exchange", {"name": "babo", "order": "104", "item": "lamp", "color": "red"}
)


def answer(words: str, kind: str = "neutral", *before: tuple[str, str]) -> Any:
    talk = (("user", "i want to exchange an item ."), *before, ("agent", words))
    return customer.reply(ERRAND, talk, kind)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("what is the order number ?", "it is order 104 ."),
        ("Please tell me the item and the colour.", "it is the lamp . the color is red ."),
        ("what is your name ?", "my name is babo ."),
        ("which zip ?", customer.UNKNOWN),
        ("Shall I go ahead with order 104?", customer.YES),
        ("what can i do for you ?", "i want to exchange an item ."),
        ("one moment .", customer.GO_ON),
        ("will it be exchanged ?", "i want to exchange an item ."),
    ],
)
def test_what_a_customer_answers(words: str, expected: str) -> None:
    reply = answer(words)
    assert (reply.utterance, reply.action) == (expected, UserAction.SAY)


def test_when_a_customer_leaves() -> None:
    done = answer("The lamp was exchanged. Anything else?")
    assert (done.utterance, done.action) == ("", UserAction.END)
    denied = answer("Sorry, that is too late.")
    assert (denied.utterance, denied.action) == (customer.PITY, UserAction.END)
    asking = customer.Errand("points", {"name": "babo"})
    for words, left in (("you have 7 points .", True), ("you have many .", False)):
        action = customer.reply(asking, (("agent", words),), "neutral").action
        assert (action is UserAction.END) == left


def test_hard_people_put_off_and_insist_once() -> None:
    first = answer("what is the order number ?", "hostile")
    assert first.utterance == customer.PUT_OFF
    again = answer("what is the order number ?", "hostile", ("user", first.utterance))
    assert again.utterance == f"{customer.GRUMBLE} 104 ."
    no = answer("sorry , it is late .", "hostile")
    assert (no.utterance, no.action) == (customer.INSIST, UserAction.SAY)
    assert answer("sorry .", "hostile", ("user", no.utterance)).action is UserAction.END


@pytest.mark.parametrize("kind", sorted(CHARACTERS))
def test_what_people_volunteer(kind: str) -> None:
    said = [customer.opening(ERRAND, kind, generator(n, "opening")).utterance for n in range(100)]
    share = sum("104" in words for words in said) / len(said)
    assert share == pytest.approx(CHARACTERS[kind].volunteers, abs=0.15)
    assert all(words.startswith(customer.WISHES["exchange"]) for words in said)


def test_the_part_of_a_model_is_told_from_what_it_may_know() -> None:
    for opening, expected in ((True, "Nothing was said yet"), (False, "Answer the last message")):
        text = prompts.render(
            "user/kinds/tau.customer",
            public={"opening": opening},
            private={"instruction": "You are Mo.\nYou want a chair."},
        )
        assert "| You are Mo.\n| You want a chair." in text
        assert expected in text


# Agents ---------------------------------------------------------------------------------------


async def play(task: Task, kind: str, agent: str) -> tuple[float, list[str]]:
    """Return the return and all that was said and read."""
    gym = load_gym("tau")
    env = make_gym("tau", user=make_user(f"scripted:{kind}").start(task.scenario, seed=1))
    player = gym.agent(agent, task, 1)
    observation = await env.reset(task, seed=1)
    texts = [observation.system, observation.first_user]
    messages: tuple[Any, ...] = ()
    total = 0.0
    for step in range(env.spec.max_steps):
        move = await player.act(AgentView(observation, messages, step, 16 - step))
        assert move.action is not None
        result = await env.step(move.action)
        messages = (*messages, *result.feedback)
        texts += [move.text, *(m.content for m in result.feedback)]
        total += result.reward
        if result.done:
            break
    return total, texts


@pytest.mark.parametrize("kind", ["cooperative", "neutral", "realistic", "hostile", "heldout-5"])
def test_scripted_agents_and_the_words_of_an_episode(kind: str) -> None:
    known = set(vocabulary())
    returns: Counter[str] = Counter()
    for task in TASKS[:40]:
        for agent in ("patient", "eager"):
            total, texts = asyncio.run(play(task, kind, agent))
            returns[agent] += int(total)
            assert set(" ".join(texts).split()) <= known
    assert returns["patient"] == 40
    assert 20 < returns["eager"] < 36


def test_the_vocabulary_fits_a_tiny_policy() -> None:
    assert len(vocabulary()) < 1200
    system = prompts.render("envs/tau/mini", policy=SHOP.policy, tools=list(TOOLS.values()))
    assert len(system.split()) < 160


@pytest.mark.parametrize("user", ["scripted:neutral", "scripted:cooperative", "scripted:hostile"])
def test_floors(user: str) -> None:
    found = asyncio.run(floors(TASKS, make_user(user)))
    assert (found.null, found.oracle, found.attainable) == (0.0, 1.0, 1.0)
    assert found.sound


def test_a_lie_wins_nothing() -> None:
    """A customer believes what it is told; the database does not."""
    for task in TASKS:
        facts: Mapping[str, str] = task.hidden["script"]["facts"]
        user = make_user("scripted:neutral").start(task.scenario, seed=0)
        words = "it is cancelled , returned , exchanged and changed , 3 points ."
        assert facts.get("order") != "3"
        (result,) = run(task, say(words), user=user)
        assert result.done
        assert result.reward == float(task.hidden["outputs"] in (["3"], ["cancelled"]))


def test_a_change_against_the_policy_is_worth_nothing() -> None:
    denied = next(
        t for t in TASKS if t.hidden["outputs"] and t.hidden["script"]["intent"] == "return"
    )
    facts = denied.hidden["script"]["facts"]
    change = use(written(Call("return_item", {k: facts[k] for k in ("order", "item")})))
    closing = denied.hidden["oracle_trace"][-1][1]
    user = make_user("scripted:neutral").start(denied.scenario, seed=0)
    last = run(denied, change, say(closing), say("bye ."), user=user)[-1]
    assert (last.reward, last.private.grading) == (0.0, {"database": False, "unsaid": []})
