"""Composing: shares, splits, determinism, bad input."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio, seeds
from mimesim.errors import ConfigError, UnknownNameError
from mimesim.scenarios import behaviors, procedure
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.behaviors import Situation
from mimesim.scenarios.compose import compose, held_out_cell, split_of
from mimesim.scenarios.types import DENIED, ESCALATED, GRANTED, Row

MANUAL = manuals.load()


def as_bytes(rows: tuple[Row, ...]) -> bytes:
    return "".join(jsonio.dumps(row.to_json()) + "\n" for row in rows).encode()


def test_the_mix_is_what_was_asked_for() -> None:
    result = compose(MANUAL, seed=1, count=900)
    assert len(result.rows) == 900
    assert not result.dropped
    assert sum(row.behavior is None for row in result.rows) == 300
    verdicts = Counter(procedure.verdict(row, MANUAL) for row in result.rows)
    for verdict, share in ((GRANTED, 0.50), (DENIED, 0.35), (ESCALATED, 0.15)):
        assert abs(verdicts[verdict] / 900 - share) < 0.05
    played = Counter(row.behavior for row in result.rows if row.behavior)
    assert set(played) == set(behaviors.ids())
    assert {row.subflow for row in result.rows} == {r.name for r in MANUAL.request_types}


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_the_neutral_share_is_met_exactly(share: float) -> None:
    rows = compose(MANUAL, seed=2, count=40, neutral_share=share).rows
    assert sum(row.behavior is None for row in rows) == 40 * share


def test_rows_do_not_depend_on_how_many_are_composed() -> None:
    few, many = compose(MANUAL, seed=3, count=30).rows, compose(MANUAL, seed=3, count=60).rows
    assert many[:30] == few
    assert compose(MANUAL, seed=4, count=30).rows != few


def test_bytes_are_the_same_in_another_process_with_another_hash_seed() -> None:
    code = (
        "import sys; from mimesim import jsonio; from mimesim.scenarios import manual;"
        "from mimesim.scenarios.compose import compose;"
        "rows = compose(manual.load(), seed=9, count=60).rows;"
        "sys.stdout.write(''.join(jsonio.dumps(r.to_json()) + chr(10) for r in rows))"
    )
    here = as_bytes(compose(MANUAL, seed=9, count=60).rows)
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, check=True
        )
        assert done.stdout == here


def test_splits_share_neither_customer_nor_held_out_request() -> None:
    sets = {
        split: compose(MANUAL, seed=6, count=300, split=split).rows
        for split in ("train", "validation", "test")
    }
    held_out = {r.name for r in MANUAL.request_types if r.held_out}
    assert len(held_out) >= 3
    for split, rows in sets.items():
        assert len(rows) == 300
        assert {row.split for row in rows} == {split}
    seen = {row.subflow for rows in (sets["train"], sets["validation"]) for row in rows}
    assert not seen & held_out
    assert {row.subflow for row in sets["test"]} >= held_out
    names = {split: {r.record["customer_name"] for r in rows} for split, rows in sets.items()}
    assert not names["train"] & names["validation"]
    old = {r.record["customer_name"] for r in sets["test"] if r.subflow not in held_out}
    assert not old & (names["train"] | names["validation"])
    orders = [
        r.record.get("order_id", r.record.get("account_id")) for rs in sets.values() for r in rs
    ]
    keyed = [key for key in orders if key]
    assert len(set(keyed)) == len(keyed)


def test_rows_of_all_splits_carry_their_split() -> None:
    for row in compose(MANUAL, seed=7, count=100).rows:
        request = MANUAL.request(row.subflow)
        assert row.split == split_of(row.record["customer_name"], request, row.behavior)


def test_behaviors_can_be_chosen_and_weighted() -> None:
    chosen = compose(MANUAL, seed=8, count=30, neutral_share=0, behaviors="B3, self_contradiction")
    assert {row.behavior for row in chosen.rows} == {"B3", "B11"}
    weighted = compose(MANUAL, seed=8, count=80, neutral_share=0, behaviors={"B9": 9, "B10": 1})
    counts = Counter(row.behavior for row in weighted.rows)
    assert counts["B9"] > counts["B10"] > 0
    annotated = compose(MANUAL, seed=8, count=300, neutral_share=0, behaviors="annotated")
    assert (
        Counter(r.behavior for r in annotated.rows)["B2"]
        > 3 * Counter(r.behavior for r in annotated.rows)["B13"]
    )


def test_a_behavior_that_fits_nowhere_is_dropped_with_a_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(type(behaviors.get("B9")), "applicable", lambda self, case: False)
    result = compose(MANUAL, seed=1, count=6, neutral_share=0.5, behaviors="B9")
    assert len(result.rows) == 3
    assert result.dropped == {"no behavior applies": 3}


def test_a_broken_invariant_is_dropped_under_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"n_requests": 9}
    monkeypatch.setattr(type(behaviors.get("B12")), "derive_params", lambda *_: dict(broken))
    result = compose(MANUAL, seed=1, count=4, neutral_share=0, behaviors="B12")
    assert not result.rows
    assert result.dropped == {"V7": 4}


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": -1},
        {"neutral_share": 1.5},
        {"split": "dev"},
        {"replay": "all"},
        {"behaviors": {}},
        {"behaviors": {"B1": -1.0, "B2": 2.0}},
        {"behaviors": {"B1": 0.0}},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        compose(MANUAL, **{"seed": 1, "count": 3, **wrong})  # type: ignore[arg-type]


def test_an_unknown_behavior_is_named() -> None:
    with pytest.raises(UnknownNameError, match="'B31'"):
        compose(MANUAL, seed=1, count=1, behaviors="B31")


def test_held_out_cells_are_met_in_the_test_split_only() -> None:
    cells = {(r.name, b) for r in MANUAL.request_types for b in behaviors.builtin_ids()}
    held = {cell for cell in cells if held_out_cell(*cell)}
    assert 0.08 < len(held) / len(cells) < 0.18
    for split in ("train", "validation"):
        rows = compose(MANUAL, seed=6, count=600, split=split, neutral_share=0).rows
        assert not {(row.subflow, row.behavior) for row in rows} & held
    tested = compose(MANUAL, seed=6, count=600, split="test", neutral_share=0).rows
    assert {(row.subflow, row.behavior) for row in tested} & held
    for row in compose(MANUAL, seed=6, count=600, neutral_share=0).rows:
        if (row.subflow, row.behavior) in held:
            assert row.split == "test"


def test_a_matched_neutral_row_differs_in_the_behavior_alone() -> None:
    rows = compose(MANUAL, seed=5, count=90, neutral_share=0.5, matched=True).rows
    twins = [(a, b) for a, b in pairwise(rows) if a.behavior and not b.behavior]
    assert len(twins) >= 40
    for played, neutral in twins:
        assert (played.record, played.env) == (neutral.record, neutral.env)
        assert (neutral.params, neutral.directive) == ({}, "")
        assert played.index != neutral.index


def test_a_budget_that_is_too_short_for_a_behavior_is_dropped_under_v10() -> None:
    result = compose(MANUAL, seed=1, count=6, neutral_share=0, behaviors="B4", turn_budget=2)
    assert result.dropped == {"V10": 6}
    assert compose(MANUAL, seed=1, count=3, turn_budget=4).rows[0].turn_budget == 4


def test_a_replay_takes_what_was_said_out_of_the_game() -> None:
    plain = compose(MANUAL, seed=2, count=80, neutral_share=0, behaviors="B3").rows
    cut = compose(MANUAL, seed=2, count=80, neutral_share=0, behaviors="B3", replay="cut").rows
    after = compose(MANUAL, seed=2, count=80, neutral_share=0, behaviors="B3", replay="identity")
    assert len(plain) == len(cut) == 80
    for row in after.rows:
        case = Situation.of(row, MANUAL)
        assert case.replayed
        assert not {*row.params["withheld_fields"]} & {*case.request.identity}
    assert {f for row in cut for f in row.params["withheld_fields"]} & {"order_id", "zip_code"}


def test_a_manual_without_limits_grants_everything_and_never_plays_b4(tmp_path: Path) -> None:
    raw = manuals.read_toml(manuals.PACKS / "company" / "manual.toml")
    lines = [
        'name = "shop"',
        'company = "Corner Shop"',
        "general = []",
        *_toml("tools", raw["tools"]),
        *_toml("flows", raw["flows"]),
        *_toml("requests", [{**r, "limits": []} for r in raw["requests"][:6]]),
    ]
    path = tmp_path / "manual.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    shop = manuals.load(str(path))
    rows = compose(shop, seed=1, count=120).rows
    assert len(rows) == 120
    assert {procedure.verdict(row, shop) for row in rows} == {GRANTED}
    assert "B4" not in {row.behavior for row in rows}
    nothing = compose(shop, seed=1, count=4, neutral_share=0, behaviors="B4")
    assert nothing.dropped == {"no behavior applies": 4}


def _toml(name: str, tables: list[dict[str, Any]]) -> list[str]:
    """Write tables as TOML; JSON texts, lists and inline tables are TOML, too."""

    def value(thing: Any) -> str:
        if isinstance(thing, dict):
            return "{ " + ", ".join(f"{k} = {value(v)}" for k, v in thing.items()) + " }"
        if isinstance(thing, list):
            return "[" + ", ".join(map(value, thing)) + "]"
        return jsonio.dumps(thing)

    return [
        line
        for table in tables
        for line in (f"[[{name}]]", *(f"{key} = {value(thing)}" for key, thing in table.items()))
    ]


def test_composing_leaves_global_randomness_alone() -> None:
    import random

    before = random.getstate()
    compose(MANUAL, seed=1, count=5)
    assert random.getstate() == before
    assert seeds.derive(1, "x") == seeds.derive(1, "x")
