"""V1 to V13 hold on 10,000 composed rows of each manual, and each of them can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.scenarios import behaviors, invariants
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.behaviors import Situation
from mimesim.scenarios.compose import compose
from mimesim.scenarios.types import Row

MANUAL = manuals.load()
COUNT = 10_000


@cache
def composed(name: str, replay: str = "none", count: int = COUNT) -> tuple[Situation, ...]:
    manual = manuals.load(name)
    result = compose(manual, seed=2026, count=count, replay=replay)
    assert len(result.rows) + sum(result.dropped.values()) == count
    assert len(result.rows) >= 0.999 * count
    return tuple(Situation.of(row, manual) for row in result.rows)


@cache
def rows() -> tuple[Row, ...]:
    return tuple(case.row for case in composed("company"))


def playing(behavior: str | None, fits: Callable[[Row], bool] = lambda row: True) -> Row:
    return next(row for row in rows() if row.behavior == behavior and fits(row))


def spoiled(row: Row, **changes: Any) -> Situation:
    """Change parts of a row; the directive follows the parameters, as composing would do it."""
    made = Row(**{**row.to_json(), **changes})
    if made.behavior and "directive" not in changes:
        directive = behaviors.get(made.behavior).directive(made.params)
        made = Row(**{**made.to_json(), "directive": directive})
    return Situation(made, MANUAL)


def with_params(row: Row, **params: Any) -> Situation:
    return spoiled(row, params={**row.params, **params})


def without(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != name}


def problems_of(name: str, cases: tuple[Situation, ...]) -> list[str]:
    return [p for case in cases for p in invariants.ROW_INVARIANTS[name](case)]


@pytest.mark.parametrize("name", list(invariants.ROW_INVARIANTS))
def test_the_invariant_holds_on_all_composed_rows(name: str) -> None:
    assert problems_of(name, composed("company")) == []


@pytest.mark.parametrize("name", list(invariants.ROW_INVARIANTS))
@pytest.mark.parametrize("replay", ["identity", "cut"])
def test_the_invariant_holds_after_a_replayed_identity_check(name: str, replay: str) -> None:
    assert problems_of(name, composed("company", replay, 1500)) == []


@pytest.mark.parametrize("name", list(invariants.ROW_INVARIANTS))
def test_the_invariant_holds_on_all_rows_of_abcd(name: str, test_data: Path) -> None:
    assert problems_of(name, composed(f"abcd:{test_data / 'abcd'}", "identity")) == []


def test_v13_the_same_seed_gives_the_same_bytes_of_abcd(test_data: Path) -> None:
    manual = manuals.load(f"abcd:{test_data / 'abcd'}")
    again = compose(manual, seed=2026, count=COUNT, replay="identity").rows
    first = [case.row for case in composed(f"abcd:{test_data / 'abcd'}", "identity")]
    assert invariants.v13_same_bytes(first, again) == []


def test_every_behavior_is_among_those_of_abcd(test_data: Path) -> None:
    cases = composed(f"abcd:{test_data / 'abcd'}", "identity")
    assert {case.row.behavior for case in cases} == {None, *behaviors.builtin_ids()}


def test_a_compat_manual_is_held_to_all_but_the_first_three(test_data: Path) -> None:
    manual = manuals.load(f"abcd:{test_data / 'abcd'}#compat")
    cases = [
        Situation.of(row, manual)
        for row in compose(manual, seed=1, count=600, replay="identity").rows
    ]
    for name in list(invariants.ROW_INVARIANTS)[3:]:
        assert problems_of(name, tuple(cases)) == []
    broken = {name for name in ("V1", "V2", "V3") if problems_of(name, tuple(cases))}
    assert broken == {"V1", "V2", "V3"}, "that is what is wrong with the original"


def test_every_behavior_is_among_them() -> None:
    assert {row.behavior for row in rows()} == {None, *behaviors.builtin_ids()}


def test_v1_withheld_fields_exist_are_required_and_still_private() -> None:
    row = playing("B3")
    name = row.params["withheld_fields"][0]
    assert invariants.v1_withheld_fields(with_params(row, withheld_fields=["shoe_size"]))
    assert invariants.v1_withheld_fields(with_params(row, withheld_fields=["street_address"]))
    parcel = playing("B3", lambda r: r.subflow == "parcel_missing")
    assert invariants.v1_withheld_fields(with_params(parcel, withheld_fields=["zip_code"]))
    said = (PublicMessage(Role.USER, f"it is {row.record[name]}"),)
    assert invariants.v1_withheld_fields(Situation(row, MANUAL, said))
    unheard = (PublicMessage(Role.AGENT, f"it is {row.record[name]}"),)
    assert not invariants.v1_withheld_fields(Situation(row, MANUAL, unheard))


def test_v2_an_infeasible_request_meets_a_limit_that_stands() -> None:
    row = playing("B4", lambda r: r.params["limit"] == "shipped")
    feasible = {**row.record, "shipping_status": "being packed"}
    assert invariants.v2_infeasible_request(spoiled(row, record=feasible))
    assert invariants.v2_infeasible_request(with_params(row, limit="locked"))
    assert invariants.v2_infeasible_request(with_params(row, blocked_action="a pony"))


def test_v2_the_agent_is_told_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invariants, "policy_lines", lambda manual, subflow: ())
    row = playing("B4")
    assert "not told" in invariants.v2_infeasible_request(Situation(row, MANUAL))[0]


def test_v3_a_false_premise_is_false_and_the_truth_unsaid() -> None:
    row = playing("B8", lambda r: r.params["field"] == "member_level")
    true = row.params["true_value"]
    assert invariants.v3_false_premise(with_params(row, false_value=true.upper()))
    assert invariants.v3_false_premise(with_params(row, true_value="platinum"))
    said = (PublicMessage(Role.USER, f"im a {true} member"),)
    assert invariants.v3_false_premise(Situation(row, MANUAL, said))


def test_v4_a_contradiction_starts_from_the_record() -> None:
    row = playing("B11")
    assert invariants.v4_contradiction(with_params(row, value_a="nothing like it"))
    assert invariants.v4_contradiction(with_params(row, value_b=row.params["value_a"]))
    assert invariants.v4_contradiction(with_params(row, value_b=""))


def test_v5_a_hidden_standard_fits_the_request() -> None:
    row = playing("B1")
    assert invariants.v5_hidden_criterion(with_params(row, field="zip_code"))
    money = playing("B1", lambda r: r.params["field"] == "payment_method")
    assert invariants.v5_hidden_criterion(
        spoiled(money, record=without(money.record, "payment_method"))
    )


def test_v6_a_moved_goal_is_new() -> None:
    shifted = playing("B2", lambda r: r.params["constraint_kind"] == "refund_method")
    same = with_params(shifted, value=shifted.record["refund_target"])
    assert invariants.v6_moved_goal(same)
    priced = playing("B2", lambda r: r.params["constraint_kind"] == "price_ceiling")
    assert invariants.v6_moved_goal(with_params(priced, value=priced.record["amount"]))
    item = playing("B2", lambda r: r.params["constraint_kind"] == "one_more_item")
    assert invariants.v6_moved_goal(with_params(item, value=item.record["product_names"][0]))


def test_v6_another_errand_and_an_omitted_detail_fit() -> None:
    switched = playing("B6", lambda r: "phone" in r.subflow)
    assert invariants.v6_moved_goal(with_params(switched, topic="phone"))
    single = playing("B5", lambda r: str(r.record.get("num_products")) == "1")
    assert invariants.v6_moved_goal(with_params(single, detail="bundle"))


def test_v7_options_come_from_their_lists() -> None:
    assert invariants.v7_options(with_params(playing("B12"), n_requests=7))
    assert invariants.v7_options(with_params(playing("B13"), register="threats"))


def test_v8_the_request_type_exists_and_its_fields_too() -> None:
    row = playing(None)
    request = MANUAL.request(row.subflow)
    assert invariants.v8_grounded(spoiled(row, subflow="status_active"))
    missing = without(row.record, request.required[0])
    assert invariants.v8_grounded(spoiled(row, record=missing))
    other = next(f.name for f in MANUAL.flows if f.name != row.flow)
    assert invariants.v8_grounded(spoiled(row, flow=other))


def test_v9_the_directive_tells_its_parameters_and_nothing_else() -> None:
    row = playing("B8", lambda r: r.params["field"] == "member_level")
    assert invariants.v9_directive(spoiled(row, directive="Be difficult."))
    other = {**row.params, "false_value": "platinum"}
    assert invariants.v9_directive(spoiled(row, params=other, directive=row.directive))


def test_v9_the_true_value_and_env_stay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    row = playing("B8", lambda r: r.params["field"] == "member_level")
    kind = type(behaviors.get("B8"))
    plain = kind.directive
    for secret in (str(row.params["true_value"]), str(row.env["as_of"])):
        monkeypatch.setattr(
            kind, "directive", lambda self, params, s=secret: f"{plain(self, params)} It is {s}."
        )
        assert any("tells" in p for p in invariants.v9_directive(spoiled(row)))


def test_v10_the_budget_leaves_room_for_the_behavior() -> None:
    row = playing("B4")
    needed = behaviors.get("B4").min_turns + 1
    assert invariants.v10_turn_budget(spoiled(row, turn_budget=needed - 1))
    assert not invariants.v10_turn_budget(spoiled(row, turn_budget=needed))


def test_v11_a_neutral_row_is_bare() -> None:
    assert invariants.v11_neutral(spoiled(playing(None), params={"patience": 1}))
    assert invariants.v11_neutral(spoiled(playing(None), directive="Be nice."))


def test_v12_env_stays_on_the_support_side() -> None:
    row = playing(None, lambda r: "oracle" in r.env)
    known = {**row.record, "oracle": row.env["oracle"]}
    assert invariants.v12_env_is_private(spoiled(row, record=known))
    named = {**row.record, "customer_name": f"ida {row.env['as_of']}"}
    assert invariants.v12_env_is_private(spoiled(row, record=named))


def test_v12_what_a_customer_knows_is_allowed() -> None:
    row = playing(None, lambda r: "days" in r.env and "{days}" in MANUAL.request(r.subflow).goal)
    assert not invariants.v12_env_is_private(Situation(row, MANUAL))


def test_v13_the_same_seed_gives_the_same_bytes() -> None:
    again = compose(MANUAL, seed=2026, count=COUNT).rows
    assert invariants.v13_same_bytes(rows(), again) == []
    first = compose(MANUAL, seed=2026, count=200).rows
    assert first == rows()[:200]
    other = compose(MANUAL, seed=2027, count=200).rows
    assert invariants.v13_same_bytes(first, other)
    assert invariants.v13_same_bytes(first, first[:-1])


def test_broken_names_what_broke() -> None:
    row = playing("B12")
    assert invariants.broken(Situation(row, MANUAL)) == {}
    assert list(invariants.broken(with_params(row, n_requests=7))) == ["V7"]
    assert list(invariants.broken(spoiled(row, subflow="gone"))) == ["V8"]
