"""Composed records hang together."""

from __future__ import annotations

from datetime import date

import pytest

from mimesim.scenarios import manual as manuals
from mimesim.scenarios.manual import ENV_KEYS
from mimesim.scenarios.records import Case, draw_case, load_pools, needed_fields
from mimesim.seeds import generator

MANUAL = manuals.load()
POOLS = load_pools()


def cases(request: str, count: int = 150) -> list[Case]:
    kind = MANUAL.request(request)
    return [draw_case(kind, MANUAL, POOLS, generator(i, request)) for i in range(count)]


@pytest.mark.parametrize("name", [r.name for r in MANUAL.request_types])
def test_a_record_holds_what_its_request_needs_and_no_more(name: str) -> None:
    needed = needed_fields(MANUAL.request(name), MANUAL)
    for case in cases(name, 20):
        assert set(case.record) | set(case.env) == needed
        assert set(case.env) <= set(ENV_KEYS)
        assert not set(case.record) & set(ENV_KEYS)


def test_the_parts_of_a_record_agree() -> None:
    for case in cases("return_wrong_size"):
        record = case.record
        assert record["full_address"].endswith(f"{record['state']} {record['zip_code']}")
        assert record["full_address"].startswith(record["street_address"])
        assert record["email"].split("@")[0] == record["username"]
        assert len(record["product_names"]) == len(set(record["product_names"]))
        assert int(record["num_products"]) == len(record["product_names"])
        assert int(record["amount"]) == sum(record["product_amounts"])
        assert len(record["order_id"]) == 10
        assert record["order_id"].isdigit()
        assert len(record["zip_code"]) == 5
        assert date.fromisoformat(record["purchase_date"]) < date.fromisoformat(case.env["as_of"])


def test_a_parcel_is_not_under_way_for_longer_than_the_purchase_is_old() -> None:
    for case in cases("parcel_missing"):
        bought = date.fromisoformat(case.record["purchase_date"])
        age = (date.fromisoformat(case.env["as_of"]) - bought).days
        assert age >= int(case.env["days"])
        assert case.record["shipping_status"] in ("in transit", "out for delivery")


def test_records_are_many() -> None:
    drawn = cases("order_cancel", 2000)
    assert len({c.record["order_id"] for c in drawn}) == 2000
    assert len({c.record["customer_name"] for c in drawn}) > 1000


def test_the_same_generator_gives_the_same_case() -> None:
    assert cases("order_cancel", 5) == cases("order_cancel", 5)
