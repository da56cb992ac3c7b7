"""The shipped manual holds together, and a manual that does not is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mimesim.errors import DataError, UnknownNameError
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.compose import compose
from mimesim.scenarios.fields import PHRASED
from mimesim.scenarios.manual import PACKS, parse, policy_lines, read_toml
from mimesim.scenarios.procedure import verdict
from mimesim.scenarios.types import DENIED, ESCALATED, GRANTED

MANUAL = manuals.load()
RAW = read_toml(PACKS / "company" / "manual.toml")


def test_the_pack_is_broad_enough() -> None:
    assert len(MANUAL.request_types) >= 40
    assert len({r.flow for r in MANUAL.request_types}) == len(MANUAL.flows) >= 8
    assert sum(r.held_out for r in MANUAL.request_types) >= 3
    assert len(MANUAL.limits) >= 30
    for request in MANUAL.request_types:
        outcomes = {limit.outcome for limit in MANUAL.limits_of(request.name)}
        assert outcomes == {DENIED, ESCALATED}, request.name


def test_agents_have_words_for_everything_they_need() -> None:
    for request in MANUAL.request_types:
        assert set(request.required) <= PHRASED, request.name


def test_state_changing_tools_are_the_five_of_the_specification() -> None:
    changing = {tool.name for tool in MANUAL.tools if tool.state_changing}
    expected = {"offer-refund", "make-purchase", "update-order", "update-account", "promo-code"}
    assert changing == expected


@pytest.mark.parametrize("request_type", MANUAL.request_types, ids=lambda r: r.name)
def test_the_policy_words_every_fixed_value_and_every_limit(request_type: Any) -> None:
    policy = "\n".join(policy_lines(MANUAL, request_type.name))
    for step in request_type.procedure:
        for value in step.fixed.values():
            assert f"`{value}`" in policy
    for limit in MANUAL.limits_of(request_type.name):
        assert limit.text in policy


def test_an_unknown_pack_names_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="company"):
        manuals.load("compnay")


def spoil(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    raw = copy.deepcopy(RAW)
    change(raw)
    return raw


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda r: r.update(colour="red"), "colour"),
        (lambda r: r["requests"][0].update(flow="retruns"), "retruns"),
        (
            lambda r: r["requests"][0]["procedure"][0].update(tool="pull-up"),
            "m.toml: return_wrong_size: tool 'pull-up'",
        ),
        (lambda r: r["requests"][0]["procedure"][0].update(slots=["shoe_size"]), "shoe_size"),
        (lambda r: r["requests"][0].update(limits=["return_windw"]), "return_windw"),
        (lambda r: r["requests"][0].update(required=["zip_code"]), "too thin"),
        (lambda r: r["requests"][0]["identity"].append("phone"), "phone"),
        (lambda r: r["requests"][0]["required"].append("new_phone"), "new_phone"),
        (lambda r: r["limits"][0].update(name="unwritten"), "unwritten"),
        (lambda r: r["limits"][0].update(outcome="granted"), "outcome"),
        (lambda r: r["limits"][0].update(when=[]), "when is []"),
        (lambda r: r["limits"][0].update(when=[{"days": "7 or so"}]), "no comparison"),
        (lambda r: r["limits"][0].update(when=[{"days": 7}]), "days is 7"),
        (lambda r: r["limits"][0].update(when=["days > 7"]), "when is 'days > 7'"),
        (lambda r: r["tools"].append(r["tools"][0]), "twice"),
        (lambda r: r["tools"][0].update(kind="magic"), "m.toml: tool 'pull-up-account': kind"),
        (lambda r: r["requests"][0].update(held_out="true"), "held_out is 'true'"),
        (lambda r: r["limits"][0].update(aside=1), "aside is 1"),
        (lambda r: r["tools"][0].update(identifies="yes"), "identifies is 'yes'"),
        (lambda r: r.update(requests=[]), "m.toml: no request type"),
        (lambda r: r["general"].append("Say ###STOP### at the end."), "end marker"),
    ],
)
def test_a_manual_that_does_not_hold_together_is_refused(change: Any, told: str) -> None:
    with pytest.raises((DataError, UnknownNameError)) as caught:
        parse(spoil(change), "m.toml")
    assert told in str(caught.value)


def test_request_types_of_the_first_version_are_as_they_were() -> None:
    kept = {
        *("return_wrong_size", "return_damaged", "return_change_of_mind", "order_cancel"),
        *("order_change_address", "order_add_item", "order_faster_delivery", "parcel_missing"),
        *("parcel_late_credit", "parcel_wrong_item", "account_change_phone"),
        *("account_recover_username", "account_reset_password", "billing_unknown_fee"),
        *("billing_double_charge", "billing_promo_expired", "subscription_extension"),
        "subscription_refund_month",
    }
    assert kept <= {r.name for r in MANUAL.request_types}
    cancel = MANUAL.request("order_cancel")
    assert cancel.required == ("customer_name", "order_id", "email", "refund_target")
    assert cancel.limits == ("shipped", "high_value")


def test_every_limit_is_used_and_no_condition_reads_a_stranger() -> None:
    assert {m.name for m in MANUAL.limits} == {n for r in MANUAL.request_types for n in r.limits}
    for request in MANUAL.request_types:
        returned = {n for s in request.procedure for n in MANUAL.tool(s.tool).returns}
        known = {*request.required, *returned, "as_of"}
        for limit in MANUAL.limits_of(request.name):
            assert set(limit.reads) <= known, f"{request.name}: {limit.name}"


def test_a_file_of_any_name_is_the_one_that_is_read(tmp_path: Path) -> None:
    text = (PACKS / "company" / "manual.toml").read_text("utf-8")
    for name in ("manual", "mine"):
        named = text.replace('name = "company"', f'name = "{name}"', 1)
        (tmp_path / f"{name}.toml").write_text(named, "utf-8")
    assert manuals.load(str(tmp_path / "mine.toml")).name == "mine"
    with pytest.raises(DataError, match=r"absent\.toml: file not found"):
        manuals.load(str(tmp_path / "absent.toml"))


def test_the_whole_manual_of_the_docs_is_sound_and_names_every_key(
    tmp_path: Path, repository: Path
) -> None:
    page = (repository / "docs" / "manuals.md").read_text("utf-8")
    path = tmp_path / "shop.toml"
    path.write_text(page.partition("```toml\n")[2].partition("```")[0], "utf-8")
    shop = manuals.load(str(path))
    rows = compose(shop, seed=2, count=40, replay="identity").rows
    assert len(rows) == 40
    assert {verdict(row, shop) for row in rows} == {GRANTED, DENIED}
    keys = {key for entry in RAW["requests"] + RAW["limits"] + RAW["tools"] for key in entry}
    told = page.replace("[[", "").replace("]]", "")
    assert [key for key in sorted({*keys, *RAW}) if f"`{key}`" not in told] == []


def test_a_damaged_file_is_one_clear_line(tmp_path: Any) -> None:
    path = tmp_path / "manual.toml"
    path.write_text("name = ", encoding="utf-8")
    with pytest.raises(DataError, match="not valid TOML"):
        manuals.load(str(path))
