"""Rows and scenarios, both ways."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mimesim import jsonio
from mimesim.errors import DataError
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.compose import compose
from mimesim.scenarios.rows import fill, row_to_scenario, scenario_to_row
from mimesim.scenarios.types import Scenario

MANUAL = manuals.load()
ROWS = compose(MANUAL, seed=11, count=120).rows


def test_a_row_comes_back_from_its_scenario_through_a_file() -> None:
    for row in ROWS:
        text = jsonio.dumps(row_to_scenario(row, MANUAL).to_json())
        scenario = Scenario.from_json(jsonio.loads(text), "f:1")
        assert scenario_to_row(scenario, "f:1") == row


def test_the_goal_has_no_open_slot_and_withholding_follows_the_behavior() -> None:
    for row in ROWS:
        scenario = row_to_scenario(row, MANUAL)
        assert "{" not in scenario.goal
        withheld = [w.fact for w in scenario.withhold]
        expected = row.params["withheld_fields"] if row.behavior == "B3" else []
        assert withheld == expected
        assert [b.id for b in scenario.behavior] == ([row.behavior] if row.behavior else [])


def test_ids_are_unique() -> None:
    ids = [row_to_scenario(row, MANUAL).id for row in ROWS]
    assert len(set(ids)) == len(ids)


def test_a_scenario_that_was_not_composed_has_no_row() -> None:
    with pytest.raises(DataError, match="no composed row"):
        scenario_to_row(Scenario("a", "b"), "f:1")


def test_fill_never_parses_a_value() -> None:
    assert fill("{a} and {b}", {"a": "{b}", "b": ["x", "y"]}) == "{b} and x, y"


def test_a_row_that_lacks_what_its_request_needs_is_told() -> None:
    row = ROWS[0]
    for broken in (replace(row, record={}), replace(row, env={})):
        with pytest.raises(DataError, match=f"row {row.index}: the row does not fit"):
            row_to_scenario(broken, MANUAL)
