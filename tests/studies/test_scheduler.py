"""The scheduler with real processes: order, failures, resumption, and an end without orphans.

The stages are real ones, `evaluate` with a scripted agent, and a kind that does not exist.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.errors import CallerError, DataError, EnvironmentFault
from mimesim.studies.scheduler import Progress, Reporter, StagePlan, run_stages
from mimesim.studies.stages import main

USERS = ["scripted:cooperative", "scripted:neutral"]


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/cmdline").exists(), reason="orphans are looked for in /proc"
)


def evaluation(out: Path, name: str, **changed: Any) -> StagePlan:
    needs = changed.pop("needs", ())
    settings = {
        "arm": "script",
        "sft": 0,
        "rl": 0,
        "agent": "scripted:patient",
        "users": USERS[:1],
        "tasks": 4,
        "seed": 1,
        **changed,
    }
    return StagePlan(name, "evaluate", out / name, settings, needs)


def nonsense(out: Path, name: str, needs: tuple[str, ...] = ()) -> StagePlan:
    return StagePlan(name, "no-such-kind", out / name, {}, needs)


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for what another process does."""
    last = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < last, "it did not happen"
        time.sleep(0.05)


def pids(folder: Path) -> dict[int, str]:
    """Return the processes that work on stages below `folder`, with their command lines."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue  # it ended meanwhile
        if any(word.startswith(str(folder)) for word in words):
            found[int(entry.parent.name)] = " ".join(words)
    return found


def alive(folder: Path) -> list[str]:
    """Return the command lines of those processes."""
    return list(pids(folder).values())


def test_stages_follow_what_they_need_and_are_not_done_twice(tmp_path: Path) -> None:
    first = evaluation(tmp_path, "first")
    second = evaluation(tmp_path, "second", needs=("first",))
    told: list[Progress] = []
    resumed = run_stages([second, first], logs=tmp_path / "logs", on_progress=told.append)
    assert resumed == []
    states = dict.fromkeys((event.stage, event.state) for event in told)
    assert next(iter(states)) == ("first", "running")
    assert list(states)[-1] == ("second", "done")
    assert len(states) == 4
    assert all(0 <= event.fraction <= 1 for event in told)
    assert any(event.text == USERS[0] for event in told), "a stage's own words come through"
    started = (second.folder / "stage.json").stat().st_mtime
    assert started >= first.result.stat().st_mtime
    result = jsonio.read_json(first.result)
    (cell,) = result["cells"]
    assert (cell["user"], len(cell["success"]), cell["invalid"]) == (USERS[0], 4, 0)
    assert result["stage_wall_s"] >= 0
    assert jsonio.read_json(first.folder / "stage.json")["kind"] == "evaluate"

    told.clear()
    before = first.result.stat().st_mtime_ns
    again = run_stages([second, first], logs=tmp_path / "logs", on_progress=told.append)
    assert again == ["second", "first"]
    assert {event.state for event in told} == {"resumed"}
    assert first.result.stat().st_mtime_ns == before
    assert alive(tmp_path) == []


def test_an_interrupted_study_ends_its_children_and_goes_on_later(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a stage: what its first cell holds is not run again."""
    stage = evaluation(tmp_path, "long", users=USERS, tasks=600)
    seen: list[list[str]] = []

    def interrupt(event: Progress) -> None:
        if event.text == USERS[1]:
            seen.append(alive(tmp_path))
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_stages([stage], logs=tmp_path / "logs", on_progress=interrupt)
    assert len(seen) == 1
    assert len(seen[0]) == 1, "the stage was running"
    assert alive(tmp_path) == []
    assert not stage.done()
    finished = stage.folder / "cooperative" / "episodes.jsonl"
    before = finished.stat().st_mtime_ns
    assert run_stages([stage], logs=tmp_path / "logs") == []
    assert stage.done()
    assert finished.stat().st_mtime_ns == before
    cells = jsonio.read_json(stage.result)["cells"]
    assert [len(cell["success"]) + cell["invalid"] for cell in cells] == [600, 600]


def test_a_killed_study_leaves_no_stage_behind(tmp_path: Path) -> None:
    """kill -9 of the scheduler: its stage ends too, so that a new start has the folder alone."""
    stage = evaluation(tmp_path, "long", users=USERS, tasks=3000)
    script = (
        "import pathlib, sys\n"
        "from mimesim.studies.scheduler import StagePlan, run_stages\n"
        "from mimesim import jsonio\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "stage = StagePlan('long', 'evaluate', folder, jsonio.read_json(sys.argv[2]))\n"
        "run_stages([stage], logs=folder / 'logs')\n"
    )
    given = tmp_path.parent / f"{tmp_path.name}-settings.json"  # not found by `alive`
    jsonio.write_json(given, dict(stage.settings))
    study = subprocess.Popen([sys.executable, "-c", script, str(stage.folder), str(given)])
    working = stage.folder / "cooperative" / "episodes.jsonl"
    until(lambda: working.exists() and working.stat().st_size > 0)
    assert len(alive(tmp_path)) == 2, "the scheduler and its stage"
    study.kill()
    study.wait()
    until(lambda: alive(tmp_path) == [])
    assert not stage.done()


def test_a_failing_stage_is_named_with_its_last_words(tmp_path: Path) -> None:
    stage = evaluation(tmp_path, "doomed", users=["scripted:nobody"])
    with pytest.raises(EnvironmentFault) as caught:
        run_stages([stage], logs=tmp_path / "logs")
    told = str(caught.value)
    assert "stage 'doomed' failed" in told
    assert "unknown scripted user 'nobody'" in told
    assert str(tmp_path / "logs" / "doomed.log") in told
    assert "\n" not in told
    assert not stage.done()


def test_a_failure_ends_the_other_stages_and_starts_no_more(tmp_path: Path) -> None:
    stages = [
        evaluation(tmp_path, "slow", tasks=200),
        nonsense(tmp_path, "broken"),
        nonsense(tmp_path, "later", needs=("broken",)),
    ]
    with pytest.raises(EnvironmentFault, match="KeyError: 'no-such-kind'"):
        run_stages(stages, logs=tmp_path / "logs")
    assert alive(tmp_path) == []
    assert not stages[0].done()
    assert not (tmp_path / "later").exists()
    log = (tmp_path / "logs" / "broken.log").read_text("utf-8")
    assert "Traceback" in log


def test_no_more_processes_than_allowed(tmp_path: Path) -> None:
    stages = [nonsense(tmp_path, name) for name in "ab"]
    told: list[Progress] = []
    with pytest.raises(EnvironmentFault, match="stage 'a' failed"):
        run_stages(stages, logs=tmp_path / "logs", processes=1, on_progress=told.append)
    assert {event.stage for event in told} == {"a"}
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("needs", [("nobody",), ("a",)])
def test_stages_that_can_never_run_are_told(tmp_path: Path, needs: tuple[str, ...]) -> None:
    with pytest.raises(CallerError, match="never be done: a"):
        run_stages([nonsense(tmp_path, "a", needs)], logs=tmp_path / "logs")


@pytest.mark.parametrize("text", ["", '{"cells": [', "[]"])
def test_a_damaged_result_is_told_before_anything_runs(tmp_path: Path, text: str) -> None:
    done, more = evaluation(tmp_path, "done"), nonsense(tmp_path, "more")
    done.folder.mkdir()
    done.result.write_text(text)
    with pytest.raises(DataError) as caught:
        run_stages([done, more], logs=tmp_path / "logs")
    assert str(done.result) in str(caught.value)
    assert "remove that file" in str(caught.value)
    assert not more.folder.exists()


def test_a_stage_that_is_killed_and_one_that_says_nonsense(tmp_path: Path) -> None:
    stage = evaluation(tmp_path, "long", users=USERS, tasks=2000)

    def meddle(event: Progress) -> None:
        if event.text == USERS[0]:
            (stage.folder / "progress.json").write_text('{"fraction": "half", "text": 3}')
            for pid in pids(stage.folder):
                os.kill(pid, signal.SIGKILL)

    with pytest.raises(EnvironmentFault, match=r"stage 'long' failed: .*ended by signal 9"):
        run_stages([stage], logs=tmp_path / "logs", on_progress=meddle)


def test_nothing_to_do_is_done(tmp_path: Path) -> None:
    assert run_stages([], logs=tmp_path / "logs") == []


def test_a_stage_with_wrong_settings_exits_with_2_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = evaluation(tmp_path, "doomed", users=["scripted:nobody"])
    request = tmp_path / "stage.json"
    settings = {"kind": stage.kind, "folder": str(stage.folder), **stage.settings}
    jsonio.write_json(request, settings)
    stage.folder.mkdir()
    assert main(request) == 2
    told = capsys.readouterr().err
    assert told.startswith("unknown scripted user 'nobody'")
    assert told.count("\n") == 1
    assert not stage.done()


def test_a_stage_speaks_seldom_but_its_end_is_always_heard(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path, every=0.2)
    reporter.say(0.1, "one")
    reporter.say(0.2, "two")
    assert jsonio.read_json(tmp_path / "progress.json") == {"fraction": 0.1, "text": "one"}
    reporter.say(1.0, "end")
    assert jsonio.read_json(tmp_path / "progress.json") == {"fraction": 1.0, "text": "end"}
    time.sleep(0.21)
    reporter.say(0.3, "three")
    assert jsonio.read_json(tmp_path / "progress.json")["text"] == "three"
