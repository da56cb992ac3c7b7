"""The compact desk's public rules: line grammar, policy, grading, and composing tasks."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.scenarios import compact
from mimesim.scenarios.compact import FinalAction
from mimesim.seeds import generator

POLICY = {"refund": "30", "gold": "60", "exchange": "15", "missing": "60"}
VALUES = {
    "order": "123",
    "method": "card",
    "days": "40",
    "tier": "gold",
    "size": "large",
    "zip": "650",
    "status": "not shipped",
}


@st.composite
def final_actions(draw: st.DrawFn) -> FinalAction:
    kind = draw(st.sampled_from(compact.KINDS))
    order = draw(st.sampled_from(compact.ORDERS))
    field = compact.SLOT.get(kind)
    slot = draw(st.sampled_from(compact.VALUES[field])) if field else None
    return FinalAction(kind, order, slot)


@given(final_actions())
def test_a_final_action_survives_its_line(action: FinalAction) -> None:
    assert compact.parse_final(action.line()) == action


def test_the_lines_of_the_grammar() -> None:
    assert FinalAction("refund", "472", "card").line() == "act refund order 472 to card"
    assert FinalAction("exchange", "123", "huge").line() == "act exchange order 123 size huge"
    assert FinalAction("address", "123", "650").line() == "act address order 123 zip 650"
    assert FinalAction("deny", "123").line() == "act deny order 123"


def test_white_space_does_not_matter() -> None:
    assert compact.parse_final("  act  deny\torder 123\n") == FinalAction("deny", "123")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "act",
        "act refund",
        "act refund order",
        "act refund order 123",  # the slot is missing
        "act refund order 123 size large",  # the slot of another kind
        "act exchange order 123 to card",
        "act deny order 123 to card",  # a kind without a slot
        "act address order 123 to card",
        "act missing order 123",  # a request, not an action
        "act explode order 123",
        "deny order 123",
        "act deny order 123 please",
        "act deny order 12 3",
        "Act deny order 123",
    ],
)
def test_what_is_not_of_the_grammar(line: str) -> None:
    assert compact.parse_final(line) is None


@given(st.permutations(sorted(compact.FIELD_NAMES)), st.integers(1, 8), st.integers(0, 999))
def test_an_ask_is_read_back_in_order(order: list[str], count: int, seed: int) -> None:
    fields = tuple(order[:count])
    line = compact.ask_line(fields, generator(seed, "ask"))
    assert compact.asked_fields(line) == fields
    assert compact.parse_final(line) is None


def test_a_field_named_twice_is_asked_once() -> None:
    assert compact.asked_fields("the zip and the level and the zip") == ("zip", "tier")
    assert compact.asked_fields("hello there") == ()


@given(st.fixed_dictionaries({k: st.sampled_from(compact.WINDOWS) for k in POLICY}))
def test_the_policy_survives_its_line(policy: dict[str, str]) -> None:
    assert compact.read_policy(compact.policy_line(policy)) == policy


def test_the_policy_line() -> None:
    line = "policy refund 30 gold 60 exchange 15 missing 60 cancel not shipped"
    assert compact.policy_line(POLICY) == line


@pytest.mark.parametrize(
    ("intent", "changed", "kind"),
    [
        ("refund", {"days": "40", "tier": "gold"}, "refund"),  # 40 <= 60
        ("refund", {"days": "40", "tier": "basic"}, "deny"),  # 40 > 30
        ("refund", {"days": "25", "tier": "basic"}, "refund"),
        ("refund", {"days": "70", "tier": "gold"}, "deny"),
        ("exchange", {"days": "12"}, "exchange"),
        ("exchange", {"days": "20"}, "deny"),
        ("exchange", {"days": "20", "tier": "gold"}, "deny"),  # gold helps refunds only
        ("cancel", {"status": "not shipped"}, "cancel"),
        ("cancel", {"status": "shipped"}, "deny"),
        ("address", {"days": "98", "status": "shipped"}, "address"),
        ("missing", {"days": "50"}, "wait"),  # the window is not over yet
        ("missing", {"days": "70"}, "escalate"),
    ],
)
def test_the_right_kind(intent: str, changed: dict[str, str], kind: str) -> None:
    assert compact.right_kind(POLICY, intent, {**VALUES, **changed}) == kind


@pytest.mark.parametrize(
    ("intent", "window"),
    [("refund", "gold"), ("exchange", "exchange"), ("missing", "missing")],
)
def test_the_last_day_is_inside_the_window(intent: str, window: str) -> None:
    """Windows and purchase days never coincide in the tasks; the rule is still stated."""
    values = {**VALUES, "days": POLICY[window]}
    kind = compact.right_kind(POLICY, intent, values)
    assert kind == ("wait" if intent == "missing" else intent)


def test_the_right_action_carries_the_slot_of_its_kind() -> None:
    assert compact.right_action(POLICY, "refund", VALUES).line() == "act refund order 123 to card"
    denied = compact.right_action(POLICY, "exchange", VALUES)
    assert denied == FinalAction("deny", "123")  # 40 days > 15: no slot left
    assert compact.right_action(POLICY, "address", VALUES) == FinalAction("address", "123", "650")


@pytest.mark.parametrize(
    ("line", "reward", "parts"),
    [
        ("act refund order 123 to card", 1.0, (True, True, True)),
        ("act refund order 124 to card", 0.4, (True, False, True)),
        ("act refund order 123 to wallet", 0.4, (True, True, False)),
        ("act refund order 124 to wallet", 0.3, (True, False, False)),
        ("act deny order 123", 0.1, (False, True, False)),
        ("act deny order 124", 0.0, (False, False, False)),
        ("act exchange order 123 size large", 0.1, (False, True, False)),
    ],
)
def test_the_grade_of_a_refund(line: str, reward: float, parts: tuple[bool, bool, bool]) -> None:
    action = compact.parse_final(line)
    assert action is not None
    score = compact.grade(POLICY, "refund", VALUES, action)
    assert score.reward == pytest.approx(reward)
    assert (score.kind_ok, score.order_ok, score.slot_ok) == parts
    assert score.success is (reward == 1.0)


@pytest.mark.parametrize(
    ("line", "reward"),
    [
        ("act deny order 123", 1.0),
        ("act deny order 124", 0.4),  # a kind without a slot cannot have a wrong one
        ("act exchange order 123 size large", 0.1),
    ],
)
def test_the_grade_of_a_denial(line: str, reward: float) -> None:
    action = compact.parse_final(line)
    assert action is not None
    assert compact.grade(POLICY, "exchange", VALUES, action).reward == pytest.approx(reward)


@given(final_actions(), st.sampled_from(sorted(compact.REQUIRED)), st.integers(0, 50))
def test_grades_stay_in_bounds_and_only_the_right_action_succeeds(
    action: FinalAction, intent: str, index: int
) -> None:
    scenario = compact.compose_scenario(3, "test", index)
    policy, values = scenario["meta"]["policy"], scenario["facts"]
    gold = compact.right_action(policy, intent, values)
    score = compact.grade(policy, intent, values, action)
    assert 0.0 <= score.reward <= 1.0
    assert score.success is (action == gold)
    assert compact.grade(policy, intent, values, gold).reward == pytest.approx(1.0)


def test_scenarios_are_a_function_of_seed_split_and_index() -> None:
    first = [compact.compose_scenario(5, "train", i) for i in range(20)]
    assert first == [compact.compose_scenario(5, "train", i) for i in range(20)]
    others = [
        compact.compose_scenario(6, "train", 0),
        compact.compose_scenario(5, "test", 0),
        compact.compose_scenario(5, "train", 1),
    ]
    ids = {s["id"] for s in [*first, *others]}
    assert len(ids) == 22  # index 1 of the train split stands there twice
    for other in others:
        assert other["facts"] != first[0]["facts"]
        assert other["meta"]["opening_seed"] != first[0]["meta"]["opening_seed"]


def test_scenarios_draw_from_every_pool() -> None:
    drawn = [compact.compose_scenario(0, "test", i) for i in range(300)]
    for field, pool in compact.VALUES.items():
        seen = {s["facts"][field] for s in drawn}
        assert seen <= set(pool)
        assert len(seen) >= min(len(pool), 60), field
    intents = Counter(s["meta"]["intent"] for s in drawn)
    assert set(intents) == set(compact.REQUIRED)
    assert min(intents.values()) > 30
    kinds = {
        compact.right_kind(s["meta"]["policy"], s["meta"]["intent"], s["facts"]) for s in drawn
    }
    assert kinds == set(compact.KINDS)


def test_values_tell_their_field() -> None:
    """A bare value is never ambiguous: pools are disjoint."""
    every = [value for pool in compact.VALUES.values() for value in pool]
    assert len(every) == len(set(every))
    assert all(len(value.split()) == 1 for value in (*compact.ORDERS, *compact.ZIPS))
