"""Runs the embedded study of a given size and writes its record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mimesim import jsonio
from mimesim.errors import UsageError
from mimesim.registry import unknown_name
from mimesim.results import RunRecord
from mimesim.studies.plan import SIZES, StudyConfig, plan_stages, settings
from mimesim.studies.record import build_record
from mimesim.studies.scheduler import OnProgress, run_stages


def study_config(size: str, seed: int = 0) -> StudyConfig:
    """Return the configuration of a size, all streams under `seed`.

    Raises:
        UnknownNameError: no such size.
    """
    if size not in SIZES:
        raise unknown_name("size", size, list(SIZES))
    return replace(SIZES[size], seed=seed)


def run_study(
    config: StudyConfig, out: Path, *, processes: int = 2, on_progress: OnProgress | None = None
) -> RunRecord:
    """Run what is not done of a study in `out`, write `out/record.json` and return the record.

    Raises:
        UsageError: `out` holds a study with other settings.
        EnvironmentFault: a stage failed, or another process works there; what is done is kept.
    """
    with jsonio.locked(out / ".study.lock"):
        _claim(config, out)
        stages = plan_stages(config, out)
        resumed = run_stages(stages, logs=out / "log", processes=processes, on_progress=on_progress)
        record = build_record(config, out, resumed)
        record.write(out / "record.json")
    return record


def _claim(config: StudyConfig, out: Path) -> None:
    """Make sure that `out` is this study's, before anything is run."""
    path = out / "study.json"
    wanted = jsonio.loads(jsonio.dumps(settings(config)))
    if path.exists():
        stored = jsonio.read_object(path)
        differing = sorted(k for k in wanted | stored if wanted.get(k) != stored.get(k))
        if differing:
            raise UsageError(
                f"this folder holds a study with other settings: {', '.join(differing)}",
                where=str(out),
                expected="the same settings, to go on with it",
                mend="choose another --out, or remove the folder",
            )
    else:
        jsonio.write_json(path, wanted)
