"""ABCD's guidelines as a manual: the map of names, policies, fields, limits; damaged copies."""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from mimesim.errors import DataError
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.abcd.manual import build, read_guidelines, tables
from mimesim.scenarios.fields import FIELD_NAMES
from mimesim.scenarios.limits import holds
from mimesim.scenarios.manual import TOOL_KINDS, policy_lines
from mimesim.scenarios.types import Manual
from tests.support import abcd


def manual(folder: Path, **replaced: Any) -> Manual:
    return build(read_guidelines(abcd.write_folder(folder, **replaced)), "abcd:x")


# ---------------------------------------------------------------------------------- our tables


def test_the_map_names_all_55_subflows_once() -> None:
    assert len(tables()["subflows"]) == 47
    assert len(tables()["faq"]) == 8
    titles = [entry["title"] for entry in tables()["subflows"].values()] + [
        *tables()["faq"].values()
    ]
    assert len(set(titles)) == 55
    regular = {
        n for n, e in tables()["subflows"].items() if e["title"] == n.replace("_", " ").title()
    }
    assert len(regular) == 47 - 17, "17 titles do not follow from the name"


def test_the_tables_speak_of_known_things_only() -> None:
    subflows = tables()["subflows"]
    for entry in tables()["limits"]:
        assert set(entry["subflows"]) <= set(subflows)
    assert set(tables()["kinds"].values()) <= set(TOOL_KINDS)
    assert set(tables()["actions"]) == set(tables()["kinds"]) == set(tables()["compat_actions"])
    for name, entry in subflows.items():
        assert entry["flow"] in tables()["flows"], name
        for fields in entry.get("asks", {}).values():
            assert set(fields) <= set(FIELD_NAMES), name
        assert set(entry.get("asks", {})) <= set(tables()["actions"]), name


def test_the_original_task_is_kept_as_it_was() -> None:
    assert tables()["compat"]["left_out"] == ["status_active"]
    assert len(tables()["compat"]["infeasible"]) == 15


# ------------------------------------------------------------------------------- a small folder


def test_policies_are_numbered_and_free_of_surveys(tmp_path: Path) -> None:
    made = manual(tmp_path)
    assert policy_lines(made, "return_stain") == (
        "The boots are stained.",
        "Be kind.",
        "1. [Pull up Account] Ask who it is",
        "2. [Validate Purchase] Check it",
        "- Three things",
        "3. [Membership Privileges] Look at the level",
        "- Whoever cannot return is told so",
        "4. Tell them",
    )
    assert policy_lines(made, "recover_password")[0] == "Say sorry if it fails."


def test_required_fields_come_from_the_table_in_the_order_of_the_actions(tmp_path: Path) -> None:
    made = manual(tmp_path)
    returned = made.request("return_stain")
    checked = ("customer_name", "username", "email", "order_id")
    assert returned.required == (*checked, "member_level", "full_address", "return_method")
    assert returned.identity == checked
    compat = build(read_guidelines(tmp_path), "abcd:x", compat=True)
    assert compat.request("return_stain").required == (*checked, "member_level", "full_address")
    assert compat.compat
    assert compat.infeasible


def test_a_limit_is_worded_by_the_guideline(tmp_path: Path) -> None:
    made = manual(tmp_path)
    (limit,) = made.limits_of("return_stain")
    assert limit.text == "- Whoever cannot return is told so"
    assert limit.text in policy_lines(made, "return_stain")
    record = {"member_level": "bronze", "purchase_date": "2020-01-01", "packaging": "no"}
    assert holds(limit, record, {"as_of": "2020-04-02", "receipt": "no"})
    assert not holds(limit, record, {"as_of": "2020-03-31", "receipt": "no"})
    assert not holds(limit, record, {"as_of": "2020-04-02", "receipt": "yes"})
    assert not holds(
        limit, {**record, "member_level": "gold"}, {"as_of": "2029-01-01", "receipt": "no"}
    )
    (password,) = made.limits_of("recover_password")
    assert password.aside
    assert holds(password, {}, {})


def test_what_cannot_be_used_is_counted(tmp_path: Path) -> None:
    made = manual(tmp_path)
    assert {r.name for r in made.request_types} == {"return_stain", "recover_password", "missing"}
    assert made.skipped == {
        "question of fact, no procedure": 1,
        "subflow without guideline or procedure": 44,
    }
    softened = json.loads(
        json.dumps(abcd.GUIDELINES)
        .replace("cannot return", "may not")
        .replace("cannot get", "lost")
    )
    kinder = manual(tmp_path / "b", guidelines=softened)
    assert kinder.skipped["limit that the guideline does not word"] == 2
    assert {limit.name for limit in kinder.limits} == {"missing"}


def test_a_manual_without_limits_still_is_one(tmp_path: Path) -> None:
    bare = json.loads(
        json.dumps(abcd.GUIDELINES).replace("cannot", "can").replace("less than", "within")
    )
    made = manual(tmp_path, guidelines=bare)
    assert made.limits == ()
    assert made.skipped["limit that the guideline does not word"] == 3


@pytest.mark.parametrize(
    ("replaced", "told"),
    [
        ({"kb": None}, "kb.json: file not found"),
        ({"guidelines": []}, "list at the top"),
        ({"kb": {**abcd.KB, "missing": ["pull-up-account", "conjure"]}}, "unknown action 'conjure'"),
        ({"guidelines": {"Shipping Issue": {"subflows": {"Missing Item": {"actions": 3}}}}}, "actions is no list"),
        ({"guidelines": {"Shipping Issue": {"subflows": {"Missing Item": {"instructions": "x"}}}}}, "instructions is no list of texts"),
    ],
)  # fmt: skip
def test_a_damaged_copy_is_one_clear_line(
    tmp_path: Path, replaced: dict[str, Any], told: str
) -> None:
    with pytest.raises(DataError) as caught:
        manual(tmp_path, **replaced)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


# ----------------------------------------------------------------------------------- real files


def test_every_subflow_of_the_real_files_is_mapped(test_data: Path) -> None:
    folder = test_data / "abcd"
    made = manuals.load(f"abcd:{folder}")
    assert len(made.request_types) == 47
    assert made.skipped == {"question of fact, no procedure": 8}
    raw = read_guidelines(folder)
    assert set(raw.procedures) == {*tables()["subflows"], *tables()["faq"]}
    told = {(flow, title) for flow, entry in raw.guidelines.items() for title in entry["subflows"]}
    flows, faq = tables()["flows"], set(tables()["faq"].values())
    mapped = {(flows[e["flow"]]["title"], e["title"]) for e in tables()["subflows"].values()}
    assert mapped == {pair for pair in told if pair[1] not in faq}
    assert {title for _, title in told} - {title for _, title in mapped} == faq
    assert len(told) == 55
    listed = {s: f for f, names in raw.ontology["intents"]["subflows"].items() for s in names}
    assert {name: e["flow"] for name, e in tables()["subflows"].items()}.items() <= listed.items()
    assert len(manuals.load(f"abcd:{folder}#compat").request_types) == 46


def test_every_limit_of_the_table_is_worded_by_the_real_guidelines(test_data: Path) -> None:
    made = manuals.load(f"abcd:{test_data / 'abcd'}")
    named = [name for entry in tables()["limits"] for name in entry["subflows"]]
    assert sorted(limit.name for limit in made.limits) == sorted(named)
    assert len(named) == 19
    for request in made.request_types:
        assert not any("survey" in line.lower() for line in request.instructions), request.name


def test_the_figures_about_the_original_table_are_reproduced(test_data: Path) -> None:
    """42 of 46 checks disclose the name; 42 of 47 subflows keep one field back, 30 keep two."""
    procedures = read_guidelines(test_data / "abcd").procedures
    asked = tables()["compat_actions"]
    disclosing, kept = {}, {}
    for name in tables()["subflows"]:
        head = takewhile(tables()["identity_check"].__contains__, procedures[name])
        told = {field for action in head for field in asked[action]}
        required = dict.fromkeys(field for action in procedures[name] for field in asked[action])
        disclosing[name], kept[name] = "customer_name" in told, len(set(required) - told)
    assert sum(v for name, v in disclosing.items() if name != "status_active") == 42
    assert sum(count >= 1 for count in kept.values()) == 42
    assert sum(count >= 2 for count in kept.values()) == 30
