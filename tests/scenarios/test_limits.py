"""Hard limits, each at its edge."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.errors import DataError
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.limits import bounds, days_since_purchase, holds, reads_of
from mimesim.scenarios.types import Limit

MANUAL = manuals.load()

CASES: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    (
        "return_window",
        {"member_level": "guest", "purchase_date": "2026-01-01"},
        {"as_of": "2026-01-15"},
        False,
    ),
    (
        "return_window",
        {"member_level": "guest", "purchase_date": "2026-01-01"},
        {"as_of": "2026-01-16"},
        True,
    ),
    (
        "return_window",
        {"member_level": "gold", "purchase_date": "2026-01-01"},
        {"as_of": "2026-05-01"},
        False,
    ),
    (
        "return_window",
        {"member_level": "silver", "purchase_date": "2026-01-01"},
        {"as_of": "2026-05-01"},
        True,
    ),
    ("no_packaging", {"packaging": "no", "member_level": "bronze"}, {}, True),
    ("no_packaging", {"packaging": "no", "member_level": "silver"}, {}, False),
    ("no_packaging", {"packaging": "yes", "member_level": "guest"}, {}, False),
    ("no_receipt", {"member_level": "silver"}, {"receipt": "no"}, True),
    ("no_receipt", {"member_level": "gold"}, {"receipt": "no"}, False),
    ("final_sale", {}, {"clearance": "yes"}, True),
    ("final_sale", {}, {"clearance": "no"}, False),
    ("high_value", {"amount": "180"}, {}, True),
    ("high_value", {"amount": "179"}, {}, False),
    ("shipped", {"shipping_status": "in transit"}, {}, True),
    ("shipped", {"shipping_status": "being packed"}, {}, False),
    ("too_early", {}, {"days": "9"}, True),
    ("too_early", {}, {"days": "10"}, False),
    ("long_gone", {}, {"days": "46"}, True),
    ("long_gone", {}, {"days": "45"}, False),
    ("charge_confirmed", {"member_level": "silver"}, {"oracle": "no"}, True),
    ("charge_confirmed", {"member_level": "gold"}, {"oracle": "no"}, False),
    ("charge_confirmed", {"member_level": "guest"}, {"oracle": "yes"}, False),
    ("large_dispute", {"fee": "40"}, {}, True),
    ("large_dispute", {"fee": "39"}, {}, False),
    ("old_code", {"member_level": "bronze"}, {"days": "21"}, True),
    ("old_code", {"member_level": "bronze"}, {"days": "20"}, False),
    ("old_code", {"member_level": "silver"}, {"days": "50"}, False),
    ("level_without_extension", {"member_level": "guest"}, {}, True),
    ("level_without_extension", {"member_level": "silver"}, {}, False),
    ("very_late", {}, {"days": "26"}, True),
    ("very_late", {}, {"days": "25"}, False),
    ("recent_change", {}, {"days": "11"}, True),
    ("recent_change", {}, {"days": "12"}, False),
    ("locked", {}, {"locked": "yes"}, True),
    ("locked", {}, {"locked": "no"}, False),
    ("flagged", {}, {"flag": "yes"}, True),
    ("flagged", {}, {"flag": "no"}, False),
    ("out_of_stock", {}, {"oracle": "no"}, True),
    ("out_of_stock", {}, {"oracle": "yes"}, False),
    ("papers_archived", {"purchase_date": "2026-03-03"}, {"as_of": "2026-06-01"}, False),
    ("papers_archived", {"purchase_date": "2026-03-02"}, {"as_of": "2026-06-01"}, True),
    ("out_already", {"shipping_status": "in transit"}, {}, False),
    ("out_already", {"shipping_status": "out for delivery"}, {}, True),
    ("open_payment", {"fee": "29"}, {}, False),
    ("open_payment", {"fee": "30"}, {}, True),
    ("code_used", {}, {"oracle": "no"}, False),
    ("code_used", {}, {"oracle": "yes"}, True),
    ("refund_pending", {}, {"days": "14"}, False),
    ("refund_pending", {}, {"days": "13"}, True),
    ("crate_packed", {}, {"oracle": "no"}, False),
    ("crate_packed", {}, {"oracle": "yes"}, True),
    ("minimum_term", {}, {"days": "30"}, False),
    ("minimum_term", {}, {"days": "29"}, True),
    (
        "warranty_over",
        {"member_level": "silver", "purchase_date": "2026-03-03"},
        {"as_of": "2026-06-01"},
        False,
    ),
    (
        "warranty_over",
        {"member_level": "silver", "purchase_date": "2026-03-02"},
        {"as_of": "2026-06-01"},
        True,
    ),
    (
        "warranty_over",
        {"member_level": "gold", "purchase_date": "2026-01-02"},
        {"as_of": "2026-06-01"},
        False,
    ),
    (
        "warranty_over",
        {"member_level": "gold", "purchase_date": "2026-01-01"},
        {"as_of": "2026-06-01"},
        True,
    ),
    ("part_gone", {}, {"oracle": "yes"}, False),
    ("part_gone", {}, {"oracle": "no"}, True),
    ("not_recalled", {}, {"oracle": "yes"}, False),
    ("not_recalled", {}, {"oracle": "no"}, True),
    ("no_proof", {}, {"receipt": "yes"}, False),
    ("no_proof", {}, {"receipt": "no"}, True),
    ("card_used", {}, {"oracle": "no"}, False),
    ("card_used", {}, {"oracle": "yes"}, True),
    ("card_old", {"member_level": "bronze"}, {"days": "30"}, False),
    ("card_old", {"member_level": "bronze"}, {"days": "31"}, True),
    ("card_old", {"member_level": "silver"}, {"days": "60"}, False),
    ("large_card", {"fee": "39"}, {}, False),
    ("large_card", {"fee": "40"}, {}, True),
    ("guest_points", {"member_level": "bronze"}, {}, False),
    ("guest_points", {"member_level": "guest"}, {}, True),
]


@pytest.mark.parametrize(("name", "record", "env", "expected"), CASES)
def test_a_limit_stands_exactly_when_its_policy_says(
    name: str, record: dict[str, Any], env: dict[str, Any], expected: bool
) -> None:
    limit = MANUAL.limit(name)
    assert holds(limit, record, env) is expected
    assert set(record) | set(env) == set(limit.reads), "the limit declares what it reads"


def test_every_limit_is_tried_both_ways() -> None:
    tried = {(name, expected) for name, _, _, expected in CASES}
    assert tried == {(limit.name, way) for limit in MANUAL.limits for way in (True, False)}


def test_days_are_counted_between_dates() -> None:
    assert days_since_purchase({"purchase_date": "2024-02-28"}, {"as_of": "2024-03-01"}) == 2


def test_a_way_needs_all_its_conditions_and_a_limit_any_of_its_ways() -> None:
    when = ({"fee": ">5", "days": "<=3"}, {"oracle": ("yes",)})
    limit = Limit("x", "denied", "y", "z", reads_of(when), when)
    assert limit.reads == ("fee", "days", "oracle")
    assert holds(limit, {"fee": "6"}, {"days": "3", "oracle": "no"})
    assert not holds(limit, {"fee": "6"}, {"days": "4", "oracle": "no"})
    assert holds(limit, {"fee": "1"}, {"days": "4", "oracle": "yes"})
    assert not holds(Limit("x", "denied", "y", "z", ()), {}, {})
    assert holds(Limit("x", "denied", "y", "z", (), ({},)), {}, {}), "an empty way always stands"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(">7", (8, 10**9)), (">=7", (7, 10**9)), ("<7", (0, 6)), ("<= 7", (0, 7))],
)
def test_comparisons_have_bounds(text: str, expected: tuple[int, int]) -> None:
    assert bounds(text) == expected


@pytest.mark.parametrize("text", ["7", "> x", "==7", "", "gold"])
def test_what_is_no_comparison_is_told(text: str) -> None:
    with pytest.raises(DataError, match="no comparison"):
        bounds(text)
