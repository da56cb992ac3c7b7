"""Cases in the manner of ABCD: composed from its lists and pools, or recorded in its corpus."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.errors import DataError, UnknownNameError
from mimesim.scenarios import worlds
from mimesim.scenarios.abcd.world import AbcdWorld, open_world, sound, stems
from mimesim.scenarios.compose import compose
from mimesim.scenarios.limits import holds
from mimesim.scenarios.procedure import verdict
from mimesim.scenarios.records import Case
from mimesim.scenarios.types import DENIED
from mimesim.seeds import generator
from tests.support import abcd


def world(tmp_path: Path, place: str = "", **replaced: Any) -> AbcdWorld:
    folder = abcd.write_folder(tmp_path, **replaced)
    return open_world(str(folder / place) if place else str(folder))


def draws(made: AbcdWorld, subflow: str, count: int = 200) -> list[Case]:
    request = made.manual.request(subflow)
    drawn = [made.draw(request, generator(n, subflow)) for n in range(count)]
    return [case for case in drawn if case is not None]


def test_a_composed_record_hangs_together(tmp_path: Path) -> None:
    made = world(tmp_path)
    for case in draws(made, "return_stain"):
        record = case.record
        assert case.source == "composed"
        assert record["email"] == f"{record['username']}@email.com"
        assert record["username"].rstrip("0123456789") in stems(record["customer_name"])
        address = (
            f"{record['street_address']}  {record['city']}, {record['state']} {record['zip_code']}"
        )
        assert record["full_address"] == address
        assert re.fullmatch(r"\d{10}", record["order_id"])
        assert int(record["amount"]) == sum(record["product_amounts"])
        assert all(amount in range(49, 100, 5) for amount in record["product_amounts"])
        assert 1 <= int(record["num_products"]) == len(record["product_names"]) <= 3
        assert date.fromisoformat(record["purchase_date"]) < date.fromisoformat(case.env["as_of"])
        assert set(case.env) == {"as_of", "receipt"}
        assert "account_id" not in record


def test_pool_values_are_used_where_they_fit_and_are_sound(tmp_path: Path) -> None:
    made = world(tmp_path)
    assert made.pools["product_defect"]["username"] == ("adaq204", "aquill17", "bmarsh3", "nobody1")
    assert made.pools["product_defect"]["zip_code"] == ("12345", "98765")
    used = {case.record["username"] for case in draws(made, "return_stain")}
    assert used == {"adaq204", "aquill17", "bmarsh3"}
    assert {case.record["pin_number"] for case in draws(made, "recover_password", 40)} == {"123456"}


def test_without_pools_everything_is_made_up(tmp_path: Path) -> None:
    made = world(tmp_path, pools=None)
    cases = draws(made, "return_stain", 100)
    assert len({case.record["username"] for case in cases}) > 60
    assert all(re.fullmatch(r"\d{5}", case.record["zip_code"]) for case in cases)


@pytest.mark.parametrize(
    ("slot", "values", "kept"),
    [
        ("zip_code", ["1234", "12345", "12345"], ("12345",)),
        ("pin_number", ["12345", "123456"], ("123456",)),
        ("username", ["(ab12)", "ab1234567", "b4"], ("ab12",)),
        ("phone", ["(201) 555-0101", "201"], ("(201) 555-0101",)),
    ],
)
def test_pools_are_cleaned(slot: str, values: list[str], kept: tuple[str, ...]) -> None:
    assert sound(slot, values) == kept


def test_seven_days_are_never_waited(tmp_path: Path) -> None:
    days = {int(case.env["days"]) for case in draws(world(tmp_path), "missing", 600)}
    assert 7 not in days
    assert {6, 8} <= days


def test_a_hint_makes_the_limit_stand(tmp_path: Path) -> None:
    made = world(tmp_path)
    request = made.manual.request("return_stain")
    (limit,) = made.manual.limits_of("return_stain")
    for number in range(60):
        for way in limit.when:
            case = made.draw(request, generator(number), way)
            assert case is not None
            assert holds(limit, case.record, case.env)


# ---------------------------------------------------------------------------------- the corpus


@pytest.mark.parametrize("file", ["abcd_v1.1.json", "abcd_v1.1.json.gz"])
def test_records_of_the_corpus_are_taken_and_the_rest_is_counted(tmp_path: Path, file: str) -> None:
    made = world(tmp_path, file)
    assert made.manual.skipped["record lacks email"] == 1
    assert made.manual.skipped["record lacks purchase_date"] == 1
    assert made.manual.skipped["scenario without a procedure"] == 1
    cases = draws(made, "return_stain", 40)
    assert {case.source for case in cases} == {"abcd"}
    assert {case.record["member_level"] for case in cases} == {"silver", "gold"}
    for case in cases:
        assert case.record["order_id"] == "1234567890"
        assert case.record["product_names"] == ["alpine boots"]
        assert case.record["amount"] == "64"
        assert "products" not in case.record
        assert case.record["return_method"]
        assert date.fromisoformat(case.env["as_of"]) > date(2020, 1, 15)
    assert draws(made, "missing", 3) == []


def test_recorded_rows_are_labelled_and_dropped_with_a_reason(tmp_path: Path) -> None:
    folder = abcd.write_folder(tmp_path)
    manual = worlds.open_world(f"abcd:{folder}/abcd_v1.1.json").manual
    result = compose(manual, seed=1, count=60)
    assert result.rows
    assert {row.source for row in result.rows} == {"abcd"}
    assert {row.subflow for row in result.rows} == {"return_stain"}
    assert len(result.rows) + sum(result.dropped.values()) == 60


def test_a_sample_list_and_lines_are_read_too(tmp_path: Path) -> None:
    dialogues = [{"scenario": abcd.scenario()}, {"scenario": abcd.scenario(zip_code=None)}]
    folder = abcd.write_folder(tmp_path, corpus=dialogues)
    assert len(open_world(str(folder / "abcd_v1.1.json")).records or {}) == 1
    lines = folder / "mine.jsonl"
    lines.write_text("".join(jsonio.dumps(d) + "\n" for d in dialogues), encoding="utf-8")
    assert len((open_world(str(lines)).records or {})["return_stain"]) == 2


@pytest.mark.parametrize(
    ("corpus", "told"),
    [({"train": 3}, "train is no list"), ({"train": [{"convo_id": 1}]}, "without a scenario"), (["x"], "without a scenario")],
)  # fmt: skip
def test_a_corpus_of_another_shape_is_refused(tmp_path: Path, corpus: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        world(tmp_path, "abcd_v1.1.json", corpus=corpus)


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    folder = abcd.write_folder(tmp_path)
    packed = folder / "abcd_v1.1.json.gz"
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(DataError, match="cannot read"):
        open_world(str(packed))


@pytest.mark.parametrize(
    ("place", "told"),
    [("nowhere", "no such folder"), (".#original", "means nothing")],
)
def test_a_wrong_place_is_told(tmp_path: Path, place: str, told: str) -> None:
    abcd.write_folder(tmp_path)
    with pytest.raises(DataError, match=told):
        open_world(f"{tmp_path}/{place}")


def test_an_ontology_without_lists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no list of"):
        world(tmp_path, ontology={"values": {}})


def test_an_unknown_reader_is_named() -> None:
    with pytest.raises(UnknownNameError, match="abdc"):
        worlds.open_world("abdc:somewhere")


# ----------------------------------------------------------------------------------- real files


def test_the_real_pools_are_of_the_size_that_is_told(test_data: Path) -> None:
    raw = jsonio.read_json(test_data / "abcd" / "value_pools.json")
    sizes = {
        (flow, slot): len(values) for flow, slots in raw.items() for slot, values in slots.items()
    }
    assert sizes["product_defect", "<username>"] == 906
    assert sizes["product_defect", "<email>"] == 903
    assert sizes["product_defect", "<order_id>"] == 1042
    assert sizes["product_defect", "<street_address>"] == 457
    assert sizes["shipping_issue", "<order_id>"] == 962
    assert sizes["shipping_issue", "<account_id>"] == 558
    assert sizes["account_access", "<pin_number>"] == 210
    usernames = [name for slots in raw.values() for name in slots.get("<username>", ())]
    assert len(usernames) == 2262
    made = open_world(str(test_data / "abcd"))
    fitting = {stem for name in made.lists.names for stem in stems(name)}
    odd = [name for name in usernames if name.rstrip("0123456789") not in fitting]
    assert len(odd) == 1
    zips = [value for slots in raw.values() for value in slots.get("<zip_code>", ())]
    assert sum(len(value) < 5 for value in zips) == 144
    assert all(len(z) == 5 for slots in made.pools.values() for z in slots["zip_code"])


def test_every_subflow_is_composed_from_the_real_files(test_data: Path) -> None:
    manual = worlds.open_world(f"abcd:{test_data / 'abcd'}").manual
    rows = compose(manual, seed=4, count=1500, replay="identity").rows
    assert {row.subflow for row in rows} == {r.name for r in manual.request_types}
    denied = sum(verdict(row, manual) == DENIED for row in rows)
    assert 0.1 < denied / len(rows) < 0.3, "28 of 47 subflows refuse nothing"
    assert {row.source for row in rows} == {"composed"}


def test_the_real_sample_is_read(test_data: Path) -> None:
    made = open_world(str(test_data / "abcd" / "abcd_sample.json"))
    assert made.records is not None
    assert sum(len(found) for found in made.records.values()) >= 1
