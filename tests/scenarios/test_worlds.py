"""Worlds: ours, and those of manuals of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim.errors import DataError, UnknownNameError
from mimesim.scenarios import manual as manuals
from mimesim.scenarios import worlds
from mimesim.scenarios.compose import compose
from mimesim.scenarios.rows import row_to_scenario
from mimesim.seeds import generator

PACK = manuals.PACKS / "company"


def write_shop(
    folder: Path, *, manual: dict[str, str] | None = None, pools: dict[str, str] | None = None
) -> str:
    """Write a shop that differs from the company's manual and pools by replaced texts."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, changes in (("manual.toml", manual or {}), ("pools.toml", pools)):
        if changes is None:
            continue
        text = (PACK / file).read_text("utf-8")
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        (folder / file).write_text(text, "utf-8")
    return str(folder / "manual.toml")


def test_levels_are_in_rank_and_values_are_listed() -> None:
    world = worlds.of(manuals.load())
    assert world.values("member_level") == ("guest", "bronze", "silver", "gold")
    assert "paypal" in world.values("payment_method")
    assert world.values("order_id") == ()
    assert world.address(generator(1))["full_address"].count(",") == 2
    assert worlds.open_world("company") is world


def test_a_shop_of_ones_own_uses_our_pools_or_its_own(tmp_path: Path) -> None:
    ours = manuals.load(write_shop(tmp_path / "a", manual={'name = "company"': 'name = "shop"'}))
    assert len(compose(ours, seed=1, count=30).rows) == 30
    paid = '["credit card", "debit card", "paypal"]'
    other = manuals.load(write_shop(tmp_path / "b", pools={paid: '["barter", "coins"]'}))
    rows = compose(other, seed=1, count=60).rows
    methods = {row.record.get("payment_method") for row in rows} - {None}
    assert methods == {"barter", "coins"}


def test_a_scenario_names_the_manual_that_it_can_be_loaded_from(tmp_path: Path) -> None:
    place = write_shop(tmp_path)
    shop = manuals.load(place)
    scenario = row_to_scenario(compose(shop, seed=1, count=1).rows[0], shop)
    assert manuals.load(scenario.meta["manual"]) is shop
    assert place not in scenario.id


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"manual": {"days = \"<10\"": "dys = \"<10\""}}, "no record holds 'dys'"),
        ({"pools": {"streets = [": "strets = ["}}, "strets"),
        ({"pools": {'["credit card", "debit card", "paypal"]': "[]"}}, "no values for payment_methods"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_told_at_once(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    shop = manuals.load(write_shop(tmp_path, **changes))
    with pytest.raises(DataError, match=told):
        compose(shop, seed=1, count=1)


def test_a_missing_manual_is_named() -> None:
    with pytest.raises(DataError, match=r"nowhere/manual\.toml: file not found"):
        manuals.load("nowhere/manual.toml")
    with pytest.raises(UnknownNameError, match="company"):
        worlds.open_world("compny")
