"""Runs the stages of a study: dependencies, a few processes side by side, resume, progress.

A stage is a process of its own with one thread of torch. It is done when its result file exists;
whatever it left behind unfinished is its own to take up again. Killing the whole study at any
moment loses at most the work since a stage's last checkpoint: stages end with the scheduler,
however it ended, because each holds the other end of a pipe that closes with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimesim import jsonio
from mimesim.errors import CallerError, DataError, EnvironmentFault, UsageError

_POLL_SECONDS = 0.25
ATTACHED = "--attached"
"""Tells a stage that its stdin is a pipe which closes when the scheduler ends."""


@dataclass(frozen=True, slots=True)
class StagePlan:
    """One stage.

    Attributes:
        name: unique, also the name of its log.
        kind: what `studies.stages` does for it.
        folder: where it works; `folder/result.json` marks it done.
        settings: JSON values handed to it.
        needs: names of stages that must be done before.
    """

    name: str
    kind: str
    folder: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()

    @property
    def result(self) -> Path:
        """The file that marks the stage done."""
        return self.folder / "result.json"

    def done(self) -> bool:
        """Whether the stage has been done, now or before."""
        return self.result.exists()


@dataclass(frozen=True, slots=True)
class Progress:
    """What a stage says about itself: `fraction` in [0, 1] and a short text."""

    stage: str
    state: str
    fraction: float
    text: str


OnProgress = Callable[[Progress], None]


def run_stages(
    stages: Sequence[StagePlan],
    *,
    logs: Path,
    processes: int = 2,
    on_progress: OnProgress | None = None,
) -> list[str]:
    """Run what is not done and return the names of stages taken over from an earlier start.

    Raises:
        EnvironmentFault: a stage failed; the message ends with the last line of its log.
        DataError: the result of a stage that was done before is damaged.
        CallerError: a stage needs one that is not there, or two need each other.
        KeyboardInterrupt: passed on after the running stages were ended.
    """
    tell = on_progress or (lambda _: None)
    resumed = [s.name for s in stages if s.done()]
    for stage in stages:
        if stage.done():
            _check_result(stage.result)
            tell(Progress(stage.name, "resumed", 1.0, "done before"))
    running: dict[str, _Process] = {}
    try:
        while True:
            _reap(running, tell)
            waiting = [s for s in stages if not s.done() and s.name not in running]
            if not waiting and not running:
                return resumed
            done = {s.name for s in stages if s.done()}
            ready = [s for s in waiting if set(s.needs) <= done]
            if not ready and not running:
                stuck = ", ".join(s.name for s in waiting)
                raise CallerError(f"these stages wait for what will never be done: {stuck}")
            for stage in ready[: processes - len(running)]:
                running[stage.name] = _Process(stage, logs)
                tell(Progress(stage.name, "running", 0.0, "starting"))
            _pause()
    finally:
        for process in running.values():
            process.end()


def _check_result(path: Path) -> None:
    try:
        jsonio.read_object(path)
    except DataError as error:
        mend = "remove that file: the stage is then done again"
        raise DataError(
            error.what, where=error.where, expected=error.expected, mend=mend
        ) from error


def _reap(running: dict[str, _Process], tell: OnProgress) -> None:
    for name, process in list(running.items()):
        code = process.poll()
        tell(process.progress())  # a short stage has its last words told, too
        if code is None:
            continue
        del running[name]
        if code != 0 or not process.stage.done():
            ended = f" (ended by signal {-code})" if code < 0 else ""
            raise EnvironmentFault(
                f"stage {name!r} failed: {process.last_line()}{ended}",
                where=str(process.log),
                mend="read the log; start again to go on from here",
            )
        tell(Progress(name, "done", 1.0, "done"))


def _pause() -> None:
    threading.Event().wait(_POLL_SECONDS)


class _Process:
    """One running stage: its process, log and progress file."""

    def __init__(self, stage: StagePlan, logs: Path) -> None:
        self.stage = stage
        self.log = logs / f"{stage.name}.log"
        self._progress = stage.folder / "progress.json"
        self._progress.unlink(missing_ok=True)
        stage.folder.mkdir(parents=True, exist_ok=True)
        logs.mkdir(parents=True, exist_ok=True)
        request = stage.folder / "stage.json"
        jsonio.write_json(
            request, {"kind": stage.kind, "folder": str(stage.folder), **stage.settings}
        )
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "TRL_EXPERIMENTAL_SILENCE": "1",
        }
        self._stream = self.log.open("ab")
        self._child = subprocess.Popen(
            [sys.executable, "-m", "mimesim.studies.stages", str(request), ATTACHED],
            stdout=self._stream,
            stderr=subprocess.STDOUT,
            stdin=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        code = self._child.poll()
        if code is not None:
            self._close()
        return code

    def progress(self) -> Progress:
        """Return what the stage last said."""
        try:
            said = jsonio.read_object(self._progress, "fraction", "text")
            return Progress(self.stage.name, "running", float(said["fraction"]), str(said["text"]))
        except (UsageError, TypeError, ValueError):  # it is only shown
            return Progress(self.stage.name, "running", 0.0, "starting")

    def last_line(self) -> str:
        """Return the last line of the log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().split("\n")
        return lines[-1] if lines[-1] else "no output"

    def end(self) -> None:
        """End the stage and everything it started; its checkpoints stay."""
        if self._child.poll() is None:
            os.killpg(self._child.pid, signal.SIGTERM)
            try:
                self._child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(self._child.pid, signal.SIGKILL)
                self._child.wait()
        self._close()

    def _close(self) -> None:
        self._stream.close()
        if self._child.stdin is not None:
            self._child.stdin.close()


class Reporter:
    """Written by a stage for the scheduler; at most one write in `every` seconds."""

    def __init__(self, folder: Path, every: float = 0.5) -> None:
        self._path = folder / "progress.json"
        self._every = every
        self._last = 0.0

    def say(self, fraction: float, text: str) -> None:
        """Say how far the stage is."""
        now = time.monotonic()
        if now - self._last >= self._every or fraction >= 1:
            self._last = now
            jsonio.write_json(self._path, {"fraction": fraction, "text": text})
