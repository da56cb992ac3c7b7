"""Rows in the shape of the behavior task, both ways."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim import jsonio
from mimesim.errors import DataError, UnknownNameError
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.compose import compose
from mimesim.scenarios.views import from_view, to_view

ROWS = compose(manuals.load(), seed=17, count=120).rows


@pytest.mark.parametrize("compat", [False, True])
def test_a_row_comes_back_from_its_view_through_a_file(compat: bool) -> None:
    for row in ROWS:
        assert from_view(jsonio.loads(jsonio.dumps(to_view(row, compat=compat))), "f:1") == row


def test_the_view_is_nested_and_lists_its_behaviors() -> None:
    played = next(row for row in ROWS if row.behavior)
    view = to_view(played)
    assert view["scenario"]["personal"]["customer_name"] == played.record["customer_name"]
    assert view["behavior_ids"] == [played.behavior]
    assert view["kwargs"] == [played.params]
    neutral = to_view(next(row for row in ROWS if row.behavior is None))
    assert (neutral["behavior_ids"], neutral["kwargs"]) == ([], [])
    assert isinstance(to_view(played, compat=True)["scenario"], str)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"behavior_ids": ["B1", "B2"]}, "behavior_ids"),
        ({"behavior_ids": "B3]"}, "no JSON text"),
        ({"shoe": 1}, "shoe"),
        ({"scenario": [1]}, "scenario"),
        ({"index": "one"}, "index"),
    ],
)
def test_what_is_no_such_row_is_told(change: dict[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=told):
        from_view({**to_view(ROWS[0]), **change}, "f:1")


def test_an_unknown_behavior_is_named() -> None:
    with pytest.raises(UnknownNameError, match="B77"):
        from_view({**to_view(ROWS[0]), "behavior_ids": ["B77"], "kwargs": [{}]}, "f:1")
