"""Score records: round trip, tolerant reading, honest errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim.errors import DataError
from mimesim.jsonio import write_json
from mimesim.results import SCHEMA, Curve, Estimate, MatrixRow, RunRecord, Score, Unscored
from mimesim.stats import mean_ci, wilson
from tests.report import samples


def test_a_full_record_survives_the_disk(tmp_path: Path) -> None:
    record = samples.record()
    record.write(tmp_path / "record.json")
    assert RunRecord.read(tmp_path / "record.json") == record


def test_title_and_verdict_are_enough() -> None:
    record = RunRecord("t", "v")
    assert RunRecord.from_json(record.to_json()) == record
    assert record.to_json()["schema"] == SCHEMA


def test_numbers_that_are_none_come_back_unknown(tmp_path: Path) -> None:
    curve = Curve("arm", 0, "loss", (0.0, 1.0), (float("nan"), 2.0))
    RunRecord("t", "v", curves=(curve,)).write(tmp_path / "r.json")
    assert RunRecord.read(tmp_path / "r.json").curves[0].y == (None, 2.0)


def test_unknown_keys_are_ignored_and_wrong_values_named() -> None:
    value = RunRecord("t", "v", rows=(MatrixRow("a", "u", Estimate(0.5)),)).to_json()
    value["later"] = 1
    value["rows"][0]["later"] = 1
    assert RunRecord.from_json(value).rows[0].arm == "a"
    value["rows"][0]["success"]["n"] = "many"
    with pytest.raises(DataError, match=r"record: rows\.0\.success\.n: .*integer"):
        RunRecord.from_json(value)


@pytest.mark.parametrize("value", [[], {}, {"schema": "mimesim.record/2"}])
def test_another_file_is_refused(value: object, tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", value)
    with pytest.raises(
        DataError, match=r"x\.json: not a run record: .*expected 'mimesim.record/1'"
    ):
        RunRecord.read(tmp_path / "x.json")


def test_intervals_become_estimates() -> None:
    found = Estimate.of(wilson(30, 40))
    assert (found.value, found.n, found.method) == (0.75, 40, "Wilson")
    assert found.resolved
    assert not Estimate.of(mean_ci([-1.0, 1.0])).resolved
    assert not Estimate(0.5).resolved
    assert found.brief() == {"mean": 0.75, "ci95": [found.low, found.high], "n": 40}
    assert Estimate(None).brief() == {"mean": None, "ci95": None, "n": 0}


def test_a_matrix_row_has_the_shape_of_the_command_line() -> None:
    row = MatrixRow("a", "u", Estimate(0.5, 0.4, 0.6, 10), seeds=(1, 2), n=10)
    assert row.brief()["success"] == {"mean": 0.5, "ci95": [0.4, 0.6], "n": 10}
    wanted = "arm agent user judge gym profile n seeds reward success success_strict invalid_rate"
    assert list(row.brief()) == wanted.split()


def test_a_missing_verdict_is_not_a_number() -> None:
    assert not isinstance(Unscored("judge was silent", raw="?"), Score)
    assert Unscored("x").state == "failed"
