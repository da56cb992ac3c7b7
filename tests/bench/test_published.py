"""The published rows: the averages follow from the cells, and the warnings from the protocol."""

from __future__ import annotations

import pytest

from mimesim.bench import averages
from mimesim.bench.published import published, warnings
from mimesim.results import Estimate, GymAverages
from mimesim.users.presets import presets

ROWS = {row.arm: row for row in published()}
GOLDEN = {
    "base agent": (18.493, 39.169),
    "GRPO, GPT-5.5 user": (26.102, 44.912),
    "GRPO, MIMESIS-9B user": (29.535, 51.904),
    "CSD, MIMESIS-9B user": (31.094, 52.259),
}
NINE = tuple(f"preset:{name}" for name in list(presets())[:9])


@pytest.mark.parametrize("arm", GOLDEN)
def test_the_averages_follow_from_the_cells(arm: str) -> None:
    row = ROWS[arm]
    found = averages.averages(dict(row.gyms))
    weighted, unweighted = GOLDEN[arm]
    assert found["weighted"].value == pytest.approx(weighted, abs=6e-4)
    assert found["unweighted"].value == pytest.approx(unweighted, abs=6e-4)
    assert row.weighted == pytest.approx(weighted, abs=7e-3)
    assert row.unweighted == pytest.approx(unweighted, abs=7e-3)


def test_users_of_the_rows_are_presets_and_every_part_is_tagged() -> None:
    assert len(published()) == 5
    for row in published():
        assert set(row.users) <= set(NINE)
        assert len(row.users) in (0, 6)
        assert {"weighted"} <= set(row.tags)
        assert set(row.gyms) in (set(), set(averages.WEIGHTS))


def arm(**changes: object) -> GymAverages:
    alike = {"judge_mode": "self", "search": "closed", "tasks": 1010, "users": NINE}
    return GymAverages("a", "x", "u", "j", Estimate(0.3), Estimate(0.4), **{**alike, **changes})  # type: ignore[arg-type]


def test_a_run_made_alike_is_warned_of_scale_and_failures_only() -> None:
    assert [text.partition(":")[0] for text in warnings([arm()], [16])] == ["failures", "scale"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"judge_mode": "fixed"}, "judge: theirs is each user itself, here fixed"),
        ({"search": "static"}, "search: theirs closed (inferred), here static"),
        ({"tasks": 64}, "here 64 in 8 of them"),
        ({"missing": ("tau",)}, "in 7 of them"),
        ({"users": NINE[:3]}, "users: theirs nine named models, here 3"),
        ({"users": tuple(f"scripted:{n}" for n in range(9))}, "here 9"),
    ],
)
def test_what_differs_is_said(changes: dict[str, object], words: str) -> None:
    assert words in "; ".join(warnings([arm(**changes)], [16]))


def test_other_limits_are_said() -> None:
    assert "steps: theirs at most 16, here 8, 16" in "; ".join(warnings([arm()], [16, 8]))
