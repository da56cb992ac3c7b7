"""Hard limits, each at its edge."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.errors import UnknownNameError
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.limits import PREDICATES, days_since_purchase, holds
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
    assert tried == {(name, way) for name in PREDICATES for way in (True, False)}
    assert {limit.name for limit in MANUAL.limits} == set(PREDICATES)


def test_days_are_counted_between_dates() -> None:
    assert days_since_purchase({"purchase_date": "2024-02-28"}, {"as_of": "2024-03-01"}) == 2


def test_a_limit_without_a_predicate_is_named() -> None:
    with pytest.raises(UnknownNameError, match=r"'shiped'.*'shipped'"):
        holds(Limit("shiped", "denied", "x", "y", ()), {}, {})
