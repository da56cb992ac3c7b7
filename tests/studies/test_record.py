"""The record of a study: what it claims follows from the intervals in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mimesim import jsonio
from mimesim.results import RunRecord
from mimesim.studies.plan import HELD_OUT, SIZES, WARM, StudyConfig, plan_stages
from mimesim.studies.record import build_record
from mimesim.studies.scheduler import StagePlan

TASKS = 40
SOLVED = {
    WARM: 0.1,
    "cooperative user": 0.1,
    "easy user": 0.4,
    "realistic user": 0.6,
    "realistic user + CSD": 0.6,
    "script (ceiling)": 1.0,
}
COST = {"stage_wall_s": 2.0, "stage_cpu_s": 1.0}


def cells(stage: StagePlan, solved: Callable[[str, int], bool]) -> list[dict[str, object]]:
    arm = str(stage.settings["arm"])
    found = []
    for user in stage.settings["users"]:
        keys = [[user, f"t{i}", 0] for i in range(TASKS)]
        success = [[*key, float(solved(arm, i))] for i, key in enumerate(keys)]
        found.append(
            {
                "user": user,
                "success": success,
                "reward": success,
                "ends": {"case_closed": TASKS},
                "invalid": 0,
            }
        )
    return found


def finish(config: StudyConfig, out: Path, solved: Callable[[str, int], bool]) -> None:
    """Write what the stages would have written."""
    for stage in plan_stages(config, out):
        result: dict[str, object] = dict(COST)
        if stage.kind == "evaluate":
            label = int(stage.settings["sft"]) * 100 + int(stage.settings["rl"])
            result |= {"arm": stage.settings["arm"], "seed": label, "agent": "policy"}
            result["cells"] = cells(stage, solved)
            for user in ("heldout-4", "heldout-5"):
                folder = stage.folder / user
                folder.mkdir(parents=True)
                with jsonio.Appender(folder / "episodes.jsonl") as file:
                    for i in range(3):
                        file.append(
                            {
                                "task": {"id": f"t{i}"},
                                "agent": {"name": "policy:/somewhere/private"},
                                "outcome": {"success": solved(str(stage.settings["arm"]), i)},
                            }
                        )
        elif stage.kind == "rl":
            row = {"batch": 1, "episode/success": 0.5, "episode/turns": 2.0}
            result["curve"] = [row, {**row, "batch": 2}]
        elif stage.kind == "user-training":
            nll = {"nll": 3.9, "n_tokens": 10, "n_conversations": 2}
            result |= {"before": nll, "after": {**nll, "nll": 3.5}, "tokens_trained": 100}
        elif stage.kind == "user-talk":
            result |= {"metrics": [], "samples": [], "counted": {"trained user": COUNTED}}
        jsonio.write_json(stage.result, result)


COUNTED = {"all": 2, "counted": 1}


def by_share(arm: str, task: int) -> bool:
    return task < SOLVED[arm] * TASKS


def record(config: StudyConfig, out: Path) -> RunRecord:
    finish(config, out, by_share)
    return build_record(config, out)


def test_the_demo_claims_what_its_intervals_carry(tmp_path: Path) -> None:
    made = record(SIZES["demo"], tmp_path)
    first, second = made.differences[:2]
    assert (first.arm, first.baseline) == ("realistic user", WARM)
    assert (second.arm, second.baseline) == ("realistic user", "cooperative user")
    assert first.value.value == pytest.approx(0.5)
    assert first.value.low is not None
    assert first.value.low > 0
    assert "+50.0 points against its warm start [" in made.verdict
    assert "Adding CSD: +0.0 [+0.0, +0.0], not resolved." in made.verdict


def test_an_unresolved_headline_says_so(tmp_path: Path) -> None:
    finish(SIZES["demo"], tmp_path, lambda arm, task: (task + len(arm)) % 2 == 0)
    made = build_record(SIZES["demo"], tmp_path)
    assert "not resolved against its warm start" in made.verdict
    assert " points against" not in made.verdict


def test_a_quick_run_claims_nothing(tmp_path: Path) -> None:
    made = record(SIZES["quick"], tmp_path)
    assert made.kind == "quick"
    assert "supports no claim" in made.verdict


def test_the_study_resamples_seeds_and_shows_each(tmp_path: Path) -> None:
    config = replace(SIZES["study"], rl_seeds=(0, 1, 2))
    made = record(config, tmp_path)
    assert set(made.differences[0].per_seed) == {
        f"SFT {sft}, RL {rl}" for sft in (0, 1) for rl in (0, 1, 2)
    }
    assert made.seeds == {"warm start": (0, 1), "RL": (0, 1, 2)}


def test_the_ceiling_is_told_and_is_no_arm(tmp_path: Path) -> None:
    made = record(SIZES["demo"], tmp_path)
    assert "script (ceiling)" not in {row.arm for row in (*made.rows, *made.averages)}
    assert "heldout-3 100 %" in made.notes["rows"]
    assert {row.user for row in made.rows} == {u.removeprefix("scripted:") for u in HELD_OUT}


def test_no_path_and_both_sides_of_a_contrast(tmp_path: Path) -> None:
    made = record(SIZES["demo"], tmp_path)
    assert "somewhere" not in jsonio.dumps(made.to_json())
    assert str(tmp_path) not in jsonio.dumps(made.to_json())
    titles = [c.title for c in made.conversations]
    assert titles[:2] == ["warm start, user heldout-4", "realistic user, user heldout-4"]


def test_the_record_survives_its_file(tmp_path: Path) -> None:
    made = record(SIZES["demo"], tmp_path)
    made.write(tmp_path / "record.json")
    assert RunRecord.read(tmp_path / "record.json").verdict == made.verdict
