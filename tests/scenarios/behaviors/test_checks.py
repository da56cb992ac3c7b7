"""Rule checks on transcripts: where they fire, where they must not."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.scenarios import behaviors
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.behaviors import Situation
from mimesim.scenarios.compose import compose
from mimesim.scenarios.types import Row

MANUAL = manuals.load()
_BASE = next(
    row
    for row in compose(MANUAL, seed=1, count=200, neutral_share=1).rows
    if row.subflow == "return_wrong_size"
)
RECORD = {
    **_BASE.record,
    "customer_name": "ida bram",
    "order_id": "5512093381",
    "zip_code": "20417",
    "member_level": "bronze",
    "packaging": "no",
    "num_products": "1",
    "payment_method": "paypal",
    "city": "Graypoint",
}
CASE = Situation(Row(**{**_BASE.to_json(), "record": RECORD}), MANUAL)


def turns(*lines: str) -> list[PublicMessage]:
    """Lines `A: ...` are the agent's, all others the customer's."""
    return [
        PublicMessage(Role.AGENT, line[2:].strip())
        if line.startswith("A:")
        else PublicMessage(Role.USER, line)
        for line in lines
    ]


def score(name: str, params: dict[str, Any], *lines: str) -> float | None:
    return behaviors.get(name).check(turns(*lines), CASE, params)


ORDER = {"withheld_fields": ["order_id", "zip_code"]}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["hi", "A: What is your order number?", "just look it up"], 1.0),
        (["hi", "A: What is your order number?", "its 5512093381"], 0.0),
        (["hi", "A: What is your order number?", "its 55120 93381"], 0.0),
        (["hi", "A: What is your order number?", "starts with 55 i think"], 1.0),
        (["A: Order number?", "why", "A: What\u2019s your order number?", "5512093381"], 0.5),
        (["A: Order id and zip code?", "20417"], 0.5),
        (["A: What is your name?", "why"], None),
        (["A: I have your order number.", "ok"], None),
        (["A: What is your order number?"], None),
        ([], None),
    ],
)
def test_b3_share_of_dodged_questions(lines: list[str], expected: float | None) -> None:
    assert score("B3", ORDER, *lines) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["A: I can't take it back.", "cant you make an exception"], 1.0),
        (["A: I\u2019m unable to do that.", "ok", "A: Sorry.", "are you sure? check again"], 1.0),
        (["A: That is against our policy.", "then let me talk to your supervisor"], 1.0),
        (["A: The time has expired.", "its only two weeks over"], 1.0),
        (["A: I cannot do that.", "i don\u2019t accept that"], 1.0),
        (["A: I cannot do that.", "ok thanks anyway"], 0.0),
        (["A: i cant do that", "i dont accept that"], 1.0),
        (["A: I cannot do that.", "thank you, have a good day"], 0.0),
        (["A: I cannot do that."], 0.0),
        (["make an exception", "A: I cannot do that.", "fine"], 0.0),
        (["A: Sure, done.", "are you sure?"], None),
    ],
)
def test_b4_persistence_after_a_refusal(lines: list[str], expected: float | None) -> None:
    assert score("B4", {}, *lines) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["cant print anything, no printer"], 2 / 3),
        (
            ["i don\u2019t have a car", "my phone is broken", "the email is closed", "no scanner"],
            1.0,
        ),
        (["i lost the box"], 1 / 3),
        (["A: you can't print it", "ok, i can do that"], 0.0),
        ([], 0.0),
    ],
)
def test_b7_counts_closed_ways(lines: list[str], expected: float) -> None:
    assert score("B7", {}, *lines) == pytest.approx(expected)


FALSE_LEVEL = {"field": "member_level", "true_value": "bronze", "false_value": "gold"}
FALSE_BOX = {"field": "packaging", "true_value": "no", "false_value": "yes"}
FALSE_DATE = {"field": "purchase_date", "true_value": "2026-01-04", "false_value": "2026-05-01"}


@pytest.mark.parametrize(
    ("params", "lines", "expected"),
    [
        (FALSE_LEVEL, ["im a gold member"], 1.0),
        (FALSE_LEVEL, ["im a Gold member", "oh ok, bronze then"], 0.5),
        (FALSE_LEVEL, ["my golden years"], 0.0),
        (FALSE_LEVEL, ["A: you are a gold member", "yes"], 0.0),
        (FALSE_LEVEL, ["bronze"], 0.0),
        (FALSE_BOX, ["yes i still have the packaging", "i know it well"], 1.0),
        (FALSE_BOX, ["i know"], 0.0),
        (FALSE_DATE, ["i bought it on may 1"], 1.0),
        (FALSE_DATE, ["i bought it on may 1", "or january 4th"], 0.5),
    ],
)
def test_b8_false_value_said(params: dict[str, Any], lines: list[str], expected: float) -> None:
    assert score("B8", params, *lines) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["no. wrong", "still waiting"], 1.0),
        (["HURRY UP"], 0.5),
        (["DO SOMETHING GOOD"], 0.5),
        (["hurry, its 5512093381"], 0.0),
        (["hurry up, " + "i have told you all that so many times before, really"], 0.0),
        (["thanks, that is kind"], 0.0),
        (["A: hurry up"], 0.0),
        ([f"hurry to {RECORD['city']}"], 0.5),
    ],
)
def test_b9_short_pressing_turns(lines: list[str], expected: float) -> None:
    assert score("B9", {}, *lines) == expected


_ALL = "its ida bram, 5512093381, 20417, bronze, no packaging left, money to " + str(
    RECORD["refund_target"]
)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["hi", "A: one moment", "you know what, forget it. bye"], 1.0),
        ([_ALL, "A: one moment", "never mind"], 0.5),
        (["forget it", "A: please wait", "ok"], 0.0),
        (["hi", "A: one moment", "still here"], 0.0),
        ([], 0.0),
    ],
)
def test_b10_leaving_with_something_unsaid(lines: list[str], expected: float) -> None:
    assert score("B10", {}, *lines) == expected


PAID = {"field": "payment_method", "value_a": "paypal", "value_b": "credit card"}
COUNT = {"field": "num_products", "value_a": "1", "value_b": "2"}


@pytest.mark.parametrize(
    ("params", "lines", "expected"),
    [
        (PAID, ["paid with paypal", "as i said, credit card"], 1.0),
        (PAID, ["paypal or credit card"], 0.5),
        (PAID, ["paid with paypal"], 0.0),
        (PAID, ["A: paypal?", "yes", "credit card"], 0.0),
        (COUNT, ["just one item", "both things arrived stained"], 1.0),
        (COUNT, ["order 1122", "two days ago"], 0.0),
    ],
)
def test_b11_both_values_said(params: dict[str, Any], lines: list[str], expected: float) -> None:
    assert score("B11", params, *lines) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [
                "need the refund, also change my address and check the jacket ships today,"
                " oh and why is my total 94, and email me all that in a list"
            ],
            1.0,
        ),
        (["need the refund and check the jacket"], 0.4),
        (["need the refund", "check the jacket", "tell me why"], 0.2),
        (["hello there"], 0.0),
        ([], 0.0),
    ],
)
def test_b12_requests_in_the_fullest_turn(lines: list[str], expected: float) -> None:
    assert score("B12", {"n_requests": 5}, *lines) == pytest.approx(expected)
