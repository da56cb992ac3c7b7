"""The scripted customer of the full desk in conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.stop import UserAction
from mimesim.dialogue.types import PublicMessage, Reply, Role
from mimesim.scenarios import behaviors
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.behaviors import Situation
from mimesim.scenarios.compose import compose
from mimesim.scenarios.fields import asked_fields, field_name, says, says_field
from mimesim.scenarios.rows import row_to_scenario
from mimesim.scenarios.types import Row
from mimesim.users.base import User, UserRequest
from mimesim.users.scripted import KINDS, make

MANUAL = manuals.load()
Agent = Callable[[Sequence[PublicMessage]], str]


@cache
def rows(behavior: str | None = None, count: int = 24) -> tuple[Row, ...]:
    if behavior is None:
        return compose(MANUAL, seed=41, count=count, neutral_share=1).rows
    return compose(MANUAL, seed=42, count=count, neutral_share=0, behaviors=behavior).rows


def scenario_of(row: Row) -> dict[str, Any]:
    return jsonio.loads(jsonio.dumps(row_to_scenario(row, MANUAL).to_json()))


def request(history: Sequence[PublicMessage], seed: int = 0) -> UserRequest:
    last = history[-1].content if history else ""
    return UserRequest("desk.customer", tuple(history), last, seed, asked_fields=asked_fields(last))


def say(user: User, text: str = "", history: Sequence[PublicMessage] = ()) -> Reply:
    heard = [*history, PublicMessage(Role.AGENT, text)] if text else list(history)
    return asyncio.run(user.respond(request(heard)))


def converse(user: User, agent: Agent, turns: int = 40) -> tuple[list[PublicMessage], list[Reply]]:
    async def run() -> tuple[list[PublicMessage], list[Reply]]:
        history: list[PublicMessage] = []
        replies: list[Reply] = []
        for _ in range(turns):
            replies.append(await user.respond(request(history)))
            history.append(PublicMessage(Role.USER, replies[-1].utterance))
            if replies[-1].action is not UserAction.SAY:
                break
            history.append(PublicMessage(Role.AGENT, agent(history)))
        return history, replies

    return asyncio.run(run())


def interviewer(row: Row, ending: str) -> Agent:
    """Asks for every field that has not been said, then reports `ending` again and again."""
    needed = MANUAL.request(row.subflow).required

    def answer(history: Sequence[PublicMessage]) -> str:
        said = [m.content for m in history if m.role is Role.USER]
        open_fields = [
            name for name in needed if not any(says_field(t, name, row.record[name]) for t in said)
        ]
        asked = sum(m.role is Role.AGENT for m in history)
        if open_fields and asked < 6:
            return f"Could you tell me your {' and your '.join(map(field_name, open_fields))}?"
        return ending

    return answer


ENDINGS = (
    "I am sorry, I cannot do that.",
    "All done. Is there anything else?",
    "Shall I go ahead?",
    "One moment.",
    "What do you mean?",
    "It does not match our records.",
    "###",
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_customer_ends_whatever_the_agent_says(kind: str) -> None:
    for position, ending in enumerate(ENDINGS):
        row = rows()[position]
        history, replies = converse(
            make(kind).start(scenario_of(row), seed=position), interviewer(row, ending)
        )
        assert replies[-1].action is UserAction.END
        assert len(replies) <= 25
        assert all(m.content.strip() for m in history)


@pytest.mark.parametrize("kind", KINDS)
def test_every_turn_has_a_thought_that_stays_private(kind: str) -> None:
    for row in rows()[:6]:
        history, replies = converse(
            make(kind).start(scenario_of(row), seed=1), interviewer(row, ENDINGS[1])
        )
        public = " ".join(m.content for m in history)
        for reply in replies:
            assert reply.thought
            assert reply.thought.reveal() not in public


@pytest.mark.parametrize("kind", KINDS)
def test_snapshot_law(kind: str) -> None:
    """Restoring a state, here or in a new customer, gives the same rest of the conversation."""
    row = rows()[3]
    agent = interviewer(row, ENDINGS[0])
    user = make(kind).start(scenario_of(row), seed=9)
    history = [PublicMessage(Role.USER, say(user).utterance)]
    history.append(PublicMessage(Role.AGENT, agent(history)))
    state = jsonio.loads(jsonio.dumps(user.snapshot()))
    kept = jsonio.dumps(state)
    other = make(kind).start(scenario_of(row), seed=9)
    other.restore(state)

    def rest(someone: User) -> list[Reply]:
        heard, out = list(history), []
        for _ in range(5):
            out.append(asyncio.run(someone.respond(request(heard))))
            heard.append(PublicMessage(Role.USER, out[-1].utterance))
            heard.append(PublicMessage(Role.AGENT, agent(heard)))
        return out

    first = rest(user)
    assert rest(other) == first
    assert jsonio.dumps(state) == kept, "a restored state belongs to the giver"
    user.restore(state)
    assert rest(user) == first


def test_the_opening_is_the_same_for_all_seeds_and_later_turns_are_not() -> None:
    openings, later = set(), set()
    row = rows()[0]
    for seed in range(12):
        user = make("neutral").start(scenario_of(row), seed=seed)
        first = say(user).utterance
        openings.add(first)
        later.add(say(user, "Could you tell me your full name?").utterance)
    assert len(openings) == 1
    assert len(later) > 2


def test_the_same_seed_repeats_a_conversation() -> None:
    row = rows()[5]
    runs = [
        converse(make("hostile").start(scenario_of(row), seed=4), interviewer(row, ENDINGS[2]))
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


def stated(row: Row, text: str) -> int:
    needed = MANUAL.request(row.subflow).required
    return sum(says_field(text, name, row.record[name]) for name in needed)


def test_volunteering_grows_from_guarded_to_cooperative() -> None:
    shares = []
    for kind in ("heldout-2", "neutral", "easy", "cooperative"):
        told = needed = 0
        for row in rows():
            told += stated(row, say(make(kind).start(scenario_of(row), seed=1)).utterance)
            needed += len(MANUAL.request(row.subflow).required)
        shares.append(told / needed)
    assert shares == sorted(shares)
    assert 0.2 < shares[1] < 0.5 < shares[2] < 0.95
    assert shares[3] == 1.0


@pytest.mark.parametrize("kind", ["cooperative", "easy", "neutral", "realistic", "B3", "hostile"])
def test_withheld_fields_are_never_told_before_they_are_asked_for(kind: str) -> None:
    for row in rows("B3"):
        history, _ = converse(
            make(kind).start(scenario_of(row), seed=2), interviewer(row, ENDINGS[1])
        )
        for name in row.params["withheld_fields"]:
            asked = False
            for message in history:
                if message.role is Role.AGENT:
                    asked = asked or name in asked_fields(message.content)
                elif not asked:
                    assert not says_field(message.content, name, row.record[name])


def test_b3_gives_a_field_after_its_patience_and_null_never() -> None:
    row = rows("B3")[0]
    name = row.params["withheld_fields"][0]
    question = f"What is your {field_name(name)}?"
    user = make("realistic").start(scenario_of(row), seed=1)
    say(user)
    told = [says_field(say(user, question).utterance, name, row.record[name]) for _ in range(4)]
    patience = row.params["patience"]
    assert told[: patience + 1] == [False] * patience + [True]
    stubborn = scenario_of(row)
    stubborn["behavior"][0]["params"]["patience"] = None
    user = make("B3").start(stubborn, seed=1)
    say(user)
    assert not any(
        says_field(say(user, question).utterance, name, row.record[name]) for _ in range(10)
    )


def test_b8_says_the_false_value_and_the_truth_only_when_contested() -> None:
    row = next(r for r in rows("B8") if r.params["field"] == "member_level")
    user = make("B8").start(scenario_of(row), seed=1)
    false, true = row.params["false_value"], row.params["true_value"]
    assert says_field(say(user).utterance, "member_level", false)
    first = say(user, "What is your membership level?").utterance
    assert says_field(first, "member_level", false)
    assert not says_field(first, "member_level", true)
    contest = "That does not match our records. What is your membership level?"
    replies = [say(user, contest).utterance for _ in range(2)]
    assert says_field(replies[1], "member_level", true)
    assert not says_field(replies[1], "member_level", false)


def test_b2_moves_the_wish_and_answers_with_the_new_value() -> None:
    row = next(r for r in rows("B2", 60) if r.params["field"] == "refund_target")
    history, replies = converse(
        make("B2").start(scenario_of(row), seed=1), interviewer(row, "Shall I go ahead?")
    )
    moved = [r for r in replies if r.wish]
    assert moved
    assert replies[0].wish == {}
    assert moved[-1].wish == {"refund_target": row.params["value"]}
    assert any(row.params["value"] in m.content for m in history if m.role is Role.USER)
    assert row.params["value"] != row.record["refund_target"]


def test_b6_names_the_topic_that_has_taken_over() -> None:
    row = rows("B6")[0]
    _, replies = converse(make("B6").start(scenario_of(row), seed=1), interviewer(row, ENDINGS[3]))
    assert replies[-1].wish == {"topic": row.params["target_topic"]}
    assert any(row.params["target_topic"] in r.utterance for r in replies)


def test_b10_leaves_an_open_errand() -> None:
    for row in rows("B10")[:8]:
        _, replies = converse(
            make("B10").start(scenario_of(row), seed=1), interviewer(row, ENDINGS[3])
        )
        assert replies[-1].action is UserAction.END
        assert 3 <= len(replies) <= 5


def test_b9_is_short_and_gives_values_only_when_asked_twice() -> None:
    for row in rows("B9")[:8]:
        user = make("B9").start(scenario_of(row), seed=1)
        texts = [say(user).utterance]
        names = MANUAL.request(row.subflow).required
        question = f"Could you tell me your {' and your '.join(map(field_name, names))}?"
        texts += [say(user, question).utterance for _ in range(4)]
        assert all(len(text) <= 60 for text in texts)
        assert not any(stated(row, text) for text in texts[:2])
        assert any(stated(row, text) for text in texts[2:])


def test_b4_insists_after_a_refusal_and_gives_in_at_last() -> None:
    for row in rows("B4")[:6]:
        user = make("B4").start(scenario_of(row), seed=1)
        history = [PublicMessage(Role.USER, say(user).utterance)]
        for _ in range(5):
            history.append(PublicMessage(Role.AGENT, "I am sorry, I cannot do that."))
            history.append(PublicMessage(Role.USER, say(user, history[-1].content).utterance))
        check = behaviors.get("B4").check(history, Situation(row, MANUAL), row.params)
        assert check == 1.0
        late = behaviors.get("B4").check(history[-3:], Situation(row, MANUAL), row.params)
        assert late == 0.0


@pytest.mark.parametrize("name", ["B3", "B4", "B7", "B8", "B9", "B10", "B11", "B12"])
def test_a_played_behavior_passes_its_own_check_and_a_neutral_customer_does_not(name: str) -> None:
    def mean(kind: str) -> float:
        scores = []
        for row in rows(name)[:16]:
            ending = "I am sorry, I cannot do that." if name == "B4" else "Shall I go ahead?"
            history, _ = converse(
                make(kind).start(scenario_of(row), seed=3), interviewer(row, ending), turns=9
            )
            score = behaviors.get(name).check(history, Situation(row, MANUAL), row.params)
            if score is not None:
                scores.append(score)
        return sum(scores) / max(1, len(scores))

    played, neutral = mean(name), mean("neutral")
    assert played >= 0.45
    assert played > neutral + 0.3


def test_authored_lines_go_out_byte_for_byte() -> None:
    opening = "hi \u2013 my parcel (no. 4-77) is stuck at customs \U0001f4e6"
    scenario = {"id": "x", "goal": "get it out", "opening": opening, "script": ["two", "three"]}
    user = make("neutral").start(scenario, seed=1)
    said = [say(user), say(user, "yes?"), say(user, "and?"), say(user, "well?")]
    assert [r.utterance for r in said] == [opening, "two", "three", ""]
    assert said[-1].action is UserAction.END


def test_a_scenario_without_a_row_is_played_from_its_facts() -> None:
    scenario = {"id": "x", "goal": "swap a lamp", "facts": {"order_id": "4417009"}}
    user = make("cooperative").start(scenario, seed=1)
    assert "4417009" in say(user).utterance
    assert "swap a lamp" in say(make("neutral").start({**scenario, "id": "y"}, seed=1)).utterance
    assert "4417009" not in say(user, "What is your zip code?").utterance


def test_asked_fields_of_the_request_outrank_the_phrase_table() -> None:
    row = rows()[0]
    name = MANUAL.request(row.subflow).required[0]
    user = make("heldout-2").start(scenario_of(row), seed=1)
    say(user)
    asked = UserRequest("desk.customer", (), "Bitte?", 0, asked_fields=(name,))
    assert says_field(asyncio.run(user.respond(asked)).utterance, name, row.record[name])


def test_the_opening_never_tells_what_the_author_withholds() -> None:
    facts = {"parcel": "PX-5512", "address": "4 mill lane, 55128", "zip_code": "55128"}
    for kind in ("cooperative", "heldout-1", "B5"):
        for withheld in (["parcel"], ["zip_code"]):
            scenario = {"id": "x", "goal": "find parcel PX 5512", "facts": facts}
            user = make(kind).start({**scenario, "withhold": withheld}, seed=1)
            assert not any(says(say(user).utterance, facts[name]) for name in withheld)


def test_the_goal_of_a_scenario_is_spoken_in_the_first_person() -> None:
    goal = "get your money back; find out: where is your order; your box was open"
    for kind in ("neutral", "cooperative", "heldout-1"):
        said = say(make(kind).start({"id": "x", "goal": goal}, seed=1)).utterance
        for part in ("get my money back", "where is my order", ". my box was open"):
            assert part in said
        assert "your" not in said
        assert ";" not in said
    assert "your" not in say(make("B9").start({"id": "x", "goal": goal}, seed=1)).utterance
