"""A study claims its folder: one study a folder, one process at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from mimesim import jsonio
from mimesim.errors import EnvironmentFault, UsageError
from mimesim.studies.embedded import run_study, study_config
from mimesim.studies.plan import plan_stages, settings


def test_two_processes_do_not_work_in_one_folder(tmp_path: Path) -> None:
    with (
        jsonio.open_locked(tmp_path / ".study.lock"),
        pytest.raises(EnvironmentFault, match="another process is writing here"),
    ):
        run_study(study_config("quick"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".study.lock"]


def test_a_folder_keeps_to_its_study(tmp_path: Path) -> None:
    jsonio.write_json(tmp_path / "study.json", dict(settings(study_config("quick", seed=1))))
    with pytest.raises(UsageError, match="other settings: seed"):
        run_study(study_config("quick", seed=2), tmp_path)
    assert not any(stage.folder.exists() for stage in plan_stages(study_config("quick"), tmp_path))


def test_an_unknown_size_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="quick"):
        study_config("quik")
