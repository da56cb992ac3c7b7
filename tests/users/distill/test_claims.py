"""Claims of a judge: what does not stand in the conversation is dropped and counted."""

from __future__ import annotations

import asyncio
from typing import Any

from mimesim import jsonio
from mimesim.corpora.base import HumanDialogue, HumanTurn
from mimesim.judges.load import make_judge
from mimesim.users.distill.claims import Judged, ask_judge
from mimesim.users.distill.scenario import distill
from tests.support.stub_server import Reply, StubServer

TURNS = (
    HumanTurn("user", "Hi, my kettle  is leaking and I want my money back"),
    HumanTurn("agent", "Sorry! What is your order number?"),
    HumanTurn("user", "55127. It is the blue one"),
    HumanTurn("agent", "Refunded."),
    HumanTurn("user", "great, thanks"),
)
CLAIMS: dict[str, Any] = {
    "goal": "You want a refund for a leaking kettle.",
    "goal_turn": 0,
    "goal_quote": "my kettle is leaking",
    "facts": [
        {"key": "Order ID", "value": "55127", "turn": 2, "quote": "55127."},
        {"key": "color", "value": "blue", "turn": 2, "quote": "the BLUE one"},
    ],
    "outcome": "solved",
    "outcome_turn": 4,
    "outcome_quote": "great",
}


def judged(*replies: Reply, **claims: Any) -> Judged:
    answers = replies or (jsonio.dumps({**CLAIMS, **claims}),)
    dialogue = HumanDialogue("d", TURNS)
    ruled = distill(dialogue)
    assert ruled is not None

    async def ask(url: str) -> Judged:
        judge = make_judge(f"model:openai:stub@{url}", options={"reasks": 0})
        try:
            return await ask_judge(judge, dialogue, ruled, seed=1)
        finally:
            await judge.aclose()

    with StubServer(answers) as server:
        return asyncio.run(ask(server.url))


def fact(**changed: Any) -> dict[str, Any]:
    return {"key": "color", "value": "blue", "turn": 2, "quote": "the blue one", **changed}


def test_claims_that_hold_are_taken_over() -> None:
    found = judged()
    assert (found.result, found.claims, +found.dropped) == ("verdict", 4, {})
    person = found.distilled
    assert person.goal == CLAIMS["goal"]
    assert person.goal_from == ((0, "my kettle  is leaking"),)
    facts = {f.key: f for f in person.facts}
    assert facts["order_id"].asked is not None
    assert (facts["color"].value, facts["color"].said.quote) == ("blue", "the blue one")
    assert (facts["color"].by, facts["color"].asked) == ("judge", None)
    assert (person.ending, person.ending_from) == ("solved", (4, "great"))


def test_claims_that_do_not_hold_are_dropped_by_reason() -> None:
    wrong = [
        fact(quote="the red one"),
        fact(turn=1, quote="Sorry!"),
        fact(turn=9),
        fact(value="navy blue"),
        fact(key="!!"),
        fact(quote="  "),
        fact(),
        fact(),
    ]
    found = judged(facts=wrong)
    assert +found.dropped == {
        "quote_not_in_turn": 2,
        "no_turn_of_the_person": 2,
        "value_not_in_quote": 1,
        "key_or_value_unfit": 1,
        "key_twice": 1,
    }
    assert [f.key for f in found.distilled.facts if f.by == "judge"] == ["color"]


def test_findings_of_the_rules_stay_where_no_claim_covers_them() -> None:
    found = judged(facts=[])
    assert {(f.key, f.by) for f in found.distilled.facts} == {("order_id", "rule")}


def test_a_goal_that_quotes_the_opening_is_not_taken() -> None:
    found = judged(goal=TURNS[0].text)
    assert +found.dropped == {"goal_unfit": 1}
    assert found.distilled.goal != TURNS[0].text


def test_a_judge_that_cannot_be_read_changes_nothing() -> None:
    ruled = distill(HumanDialogue("d", TURNS))
    for reply in ("no JSON at all", '{"goal": 3}'):
        found = judged(reply)
        assert found.result != "verdict"
        assert found.distilled == ruled
    refused = judged({"content": "", "finish_reason": "content_filter"})
    assert (refused.result, refused.distilled) == ("refused", ruled)
