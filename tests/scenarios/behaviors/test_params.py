"""Parameters of each behavior: when it applies, what it draws."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.scenarios import behaviors
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.behaviors import Situation
from mimesim.scenarios.compose import compose
from mimesim.scenarios.limits import holds
from mimesim.scenarios.procedure import limits_holding
from mimesim.scenarios.types import DENIED
from mimesim.seeds import generator

MANUAL = manuals.load()
CASES = [
    Situation(row, MANUAL) for row in compose(MANUAL, seed=33, count=300, neutral_share=1).rows
]


def draws(name: str) -> list[tuple[Situation, dict[str, Any]]]:
    behavior = behaviors.get(name)
    return [
        (case, behavior.derive_params(case, generator(i, name)))
        for i, case in enumerate(CASES)
        if behavior.applicable(case)
    ]


def test_b1_the_standard_can_be_met_or_missed() -> None:
    for case, params in draws("B1"):
        assert params["field"] in case.row.record
        assert str(case.row.record[params["field"]]) in params["criterion"]
        if params["field"] != "member_level":
            assert {"refund", "return"} & set(case.request.traits)
    assert not all(behaviors.get("B1").applicable(case) for case in CASES)


def test_b2_moves_a_wish_only_where_there_is_one() -> None:
    moved = 0
    for case, params in draws("B2"):
        assert params["value"] in params["constraint"]
        if params["field"]:
            moved += 1
            assert params["field"] in case.request.wishes
            assert case.row.record[params["field"]] != params["value"]
    assert moved > 20


def test_b3_withholds_one_or_two_required_fields() -> None:
    counts = set()
    for case, params in draws("B3"):
        counts.add(len(params["withheld_fields"]))
        assert set(params["withheld_fields"]) <= set(case.required)
        assert params["patience"] in (1, 2)
    assert counts == {1, 2}


def test_b3_counts_fields_after_the_replayed_identity_check() -> None:
    case = next(c for c in CASES if c.row.subflow == "order_cancel")
    replay = tuple(
        PublicMessage(Role.USER, str(case.row.record[name]))
        for name in ("customer_name", "order_id", "email")
    )
    assert behaviors.get("B3").applicable(case)
    assert not behaviors.get("B3").applicable(Situation(case.row, MANUAL, replay))


def test_b4_needs_a_refusing_limit_that_stands() -> None:
    for case in CASES:
        standing = [m for m in limits_holding(case.row, MANUAL) if m.outcome == DENIED]
        assert behaviors.get("B4").applicable(case) is bool(standing)
    for case, params in draws("B4"):
        limit = MANUAL.limit(params["limit"])
        assert holds(limit, case.row.record, case.row.env)
        assert params["blocked_action"] == limit.request


def test_b5_never_contradicts_the_record() -> None:
    for case, params in draws("B5"):
        if params["detail"] == "bundle":
            assert int(case.row.record["num_products"]) > 1
        if params["detail"] == "gift":
            assert "product_names" in case.row.record


@pytest.mark.parametrize(
    ("subflow", "excluded"),
    [
        ("account_reset_password", "password"),
        ("account_change_phone", "phone"),
        ("billing_promo_expired", "promo"),
        ("subscription_extension", "crate_charge"),
        ("parcel_missing", "delivery_days"),
    ],
)
def test_b6_another_topic_is_another_topic(subflow: str, excluded: str) -> None:
    case = next(c for c in CASES if c.row.subflow == subflow)
    fitting = behaviors.get("B6").fitting(case)
    assert excluded not in fitting
    assert len(fitting) == 4


def test_b8_false_values_are_of_the_fields_own_kind() -> None:
    seen = set()
    for case, params in draws("B8"):
        field, false, true = params["field"], params["false_value"], params["true_value"]
        seen.add(field)
        assert true == str(case.row.record[field])
        assert false != true
        if field == "order_id":
            assert false[:-1] == true[:-1]
            assert int(false[-1]) == (int(true[-1]) + 1) % 10
        if field == "purchase_date":
            today = date.fromisoformat(case.row.env["as_of"])
            assert date.fromisoformat(false) < today
    assert seen >= {"member_level", "order_id", "purchase_date", "packaging"}


def test_b8_a_false_date_changes_what_the_window_says() -> None:
    window = MANUAL.limit("return_window")
    for case, params in draws("B8"):
        if params["field"] == "purchase_date" and "return_window" in case.request.limits:
            claimed = {**case.row.record, "purchase_date": params["false_value"]}
            truth = holds(window, case.row.record, case.row.env)
            assert holds(window, claimed, case.row.env) is not truth


def test_b8_leaves_out_what_the_replay_told() -> None:
    case = next(c for c in CASES if c.row.subflow == "order_cancel")
    replay = (PublicMessage(Role.USER, f"order {case.row.record['order_id']}"),)
    assert "order_id" in behaviors.get("B8").fitting(case)
    assert "order_id" not in behaviors.get("B8").fitting(Situation(case.row, MANUAL, replay))


def test_b11_starts_from_the_record() -> None:
    for case, params in draws("B11"):
        assert params["value_a"] == str(case.row.record[params["field"]]) != params["value_b"]


def test_b12_and_b13_draw_from_their_lists() -> None:
    assert {p["n_requests"] for _, p in draws("B12")} == {3, 4, 5}
    assert {p["register"] for _, p in draws("B13")} == set(behaviors.get("B13").options.values())


@pytest.mark.parametrize("name", ["B7", "B9", "B10"])
def test_some_behaviors_need_no_parameters(name: str) -> None:
    assert all(params == {} for _, params in draws(name))
