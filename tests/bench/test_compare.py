"""Report rows and differences over users, gyms and training seeds, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.bench.averages import Played
from mimesim.bench.compare import compare
from mimesim.bench.config import Arm, EvaluationConfig, GymsConfig
from mimesim.bench.record import EVERYBODY, build_record
from mimesim.bench.rows import NOBODY, GymCell
from mimesim.results import LostCell, RunRecord

TASKS = ("t1", "t2", "t3", "t4")


def cell(
    arm: str, gym: str, user: str, scores: list[float | None], seed: int = 0, **more: Any
) -> GymCell:
    played = [
        Played(
            task, value, None if value is None else value >= 1, "" if value is not None else "user"
        )
        for task, value in zip(TASKS, scores, strict=True)
    ]
    return GymCell(
        gym=gym,
        arm=arm,
        seed=seed,
        agent=f"policy:{arm}",
        user=user,
        judge="rule",
        judge_mode="rule",
        episodes=tuple(played),
        clusters={task: task for task in TASKS},
        attainable=dict.fromkeys(TASKS, 1.0),
        known_null={},
        settings={"max_steps": 16, "trials": 1, "profiles": ["default"], "seed": 0},
        **more,
    )


def config(*arms: Arm, **more: Any) -> EvaluationConfig:
    return EvaluationConfig(
        arms=arms,
        users=more.pop("users", ("u", "v")),
        gyms=GymsConfig(names=("tau", "function")),
        **more,
    )


OLD, NEW, NEW1 = (
    Arm(label="old", agent="policy:old"),
    Arm(label="new", agent="policy:new"),
    Arm(label="new", agent="policy:new1", seed=1),
)
CELLS = [
    cell("old", "tau", "u", [0, 0, 0, 1]),
    cell("old", "tau", "v", [0, 0, 0, 0]),
    cell("old", "function", NOBODY, [0, 0, 0, 0]),
    cell("new", "tau", "u", [1, 1, 0, 1]),
    cell("new", "tau", "v", [0, 0, 0, 0]),
    cell("new", "function", NOBODY, [1, 1, 1, 1]),
    cell("new", "tau", "u", [1, 1, 1, 1], 1),
    cell("new", "tau", "v", [1, 0, 0, None], 1),
    cell("new", "function", NOBODY, [1, 1, 0, 0], 1),
]
TAU, FUNCTION = 165 / 243, 78 / 243


def record(cells: list[GymCell] = CELLS, lost: tuple[LostCell, ...] = ()) -> RunRecord:
    return build_record(config(OLD, NEW, NEW1), cells, lost)


def test_the_report_row_is_the_mean_over_users_and_seeds() -> None:
    old, new = record().arm_averages
    assert (old.user, new.users, new.seeds, old.seeds) == (EVERYBODY, ("u", "v"), (0, 1), (0,))
    assert old.gyms == {"tau": 0.125, "function": 0.0}
    tau = (0.75 + 0 + 1 + 1 / 3) / 4
    assert new.gyms == pytest.approx({"tau": tau, "function": 0.75})
    assert new.weighted.value == pytest.approx(TAU * tau + FUNCTION * 0.75)
    assert new.unweighted.value == pytest.approx((tau + 0.75) / 2)
    assert new.user_gyms == pytest.approx(tau)
    assert new.weighted_strict == pytest.approx(TAU * (0.75 + 0 + 1 + 0.25) / 4 + FUNCTION * 0.75)
    assert (new.n, new.episodes, new.tasks) == (23, 24, 8)
    assert new.invalid_rate == pytest.approx(1 / 24)
    first, second = TAU * 0.375 + FUNCTION, TAU * 2 / 3 + FUNCTION / 2
    assert new.per_seed == pytest.approx({"seed 0": first, "seed 1": second})
    assert new.over_seeds.value == pytest.approx((first + second) / 2)
    assert new.over_seeds.low is not None
    assert "1 degrees" in new.over_seeds.method
    assert old.over_seeds.low is None
    assert new.weighted.low is not None


def test_rows_put_seeds_together_and_users_apart() -> None:
    rows = {(row.arm, row.gym, row.user): row for row in record().rows}
    assert len(rows) == 6
    assert rows["new", "tau", "u"].seeds == (0, 1)
    assert rows["new", "tau", "u"].reward.value == pytest.approx(0.875)
    assert rows["new", "tau", "v"].n == 7


def test_differences_are_paired_by_user_and_task() -> None:
    (weighted, unweighted) = record().differences
    assert (weighted.arm, weighted.baseline, weighted.measure) == ("new", "old", "weighted average")
    # u: 1, 1, .5, 1 less 0, 0, 0, 1; v: .5, 0, 0, 0 (seed 0 alone) less 0; function: 1, 1, .5, .5
    tau = ((1 + 1 + 0.5 + 0) / 4 + 0.5 / 4) / 2
    assert weighted.value.value == pytest.approx(TAU * tau + FUNCTION * 0.75)
    assert unweighted.value.value == pytest.approx((tau + 0.75) / 2)
    assert weighted.headline
    assert not unweighted.headline
    assert set(weighted.per_seed) == {"seed 0", "seed 1"}
    assert weighted.over_seeds.n == 2
    assert set(weighted.per_user) == {"u", "v"}
    assert weighted.p is not None
    assert weighted.p_holm == weighted.p
    assert "2 training seeds only" in weighted.note
    assert "above 0 under 2 of 2 users" in weighted.note


def test_every_pair_is_compared_unless_a_baseline_is_named() -> None:
    third = [cell("third", "tau", "u", [0, 1, 0, 1]), cell("third", "tau", "v", [0, 0, 1, 1])]
    cells = [c for c in CELLS if c.gym == "tau"] + third
    labels = ["old", "new", "third"]
    found = compare(cells, labels, "")
    assert [(d.arm, d.baseline) for d in found] == [
        ("new", "old"),
        ("third", "old"),
        ("third", "new"),
    ]
    assert {d.measure for d in found} == {"score in tau"}
    assert all(d.p is not None and d.p_holm is not None and d.p_holm >= d.p for d in found)
    assert [(d.arm, d.baseline) for d in compare(cells, labels, "old")] == [
        ("new", "old"),
        ("third", "old"),
    ]


def test_limits_say_what_users_and_seeds_share() -> None:
    said = " ".join(record().limits)
    assert "not so many independent trials" in said
    assert "Training seeds per arm: old 1, new 2; fewer than 3" in said


def test_a_lost_cell_is_told_and_its_user_is_left_out_of_the_difference() -> None:
    lost = LostCell("new", 0, "v", "tau", "the endpoint is gone")
    held = [c for c in CELLS if not (c.arm == "new" and c.gym == "tau" and c.user == "v")]
    found = record(held, (lost,))
    (_, new) = found.arm_averages
    assert new.incomplete == ("tau",)
    assert "cells are missing: tau" in new.warnings
    assert found.lost == (lost,)
    weighted = found.differences[0]
    assert weighted.value.value == pytest.approx(TAU * 2.5 / 4 + FUNCTION * 0.75)
    assert RunRecord.from_json(found.to_json()) == found


def test_a_matrix_with_nothing_counted_is_unknown() -> None:
    found = build_record(
        config(OLD, users=("u",)), [cell("old", "tau", "u", [None, None, None, None])]
    )
    (row,) = found.arm_averages
    assert (row.weighted.value, row.n, row.invalid_rate) == (None, 0, 1.0)
    assert found.verdict == "Nothing was counted."
