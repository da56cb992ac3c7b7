"""The progress of a run: a bar on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress

from mimesim.cli.output import note, stderr
from mimesim.dialogue.types import Usage
from mimesim.rollout.events import (
    EpisodeFinished,
    EpisodeStarted,
    Event,
    RunStarted,
    total_usage,
    used_tokens,
)

_EVERY_S = 5.0
"""Seconds between two plain lines."""


class Progress:
    """Shows done and total, success, not counted, tokens, cost and the time left."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._total = self._done = self._running = self._resumed = 0
        self._successes = self._scored = self._counted = 0
        self._usage = Usage()
        self._bar: RichProgress | None = None
        self._task = None
        self._started = self._told = time.monotonic()

    def __enter__(self) -> Progress:
        """Start the bar on a terminal."""
        if not self._quiet and sys.stderr.isatty():
            self._bar = RichProgress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[state]}", markup=False),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=stderr(),
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the bar."""
        if self._bar is not None:
            self._bar.stop()

    def tell(self, event: Event) -> None:
        """Take note of an event and show it."""
        if isinstance(event, RunStarted):
            self._total, self._resumed = event.total, event.resumed
            self._start()
        elif isinstance(event, EpisodeStarted):
            self._running += 1 if event.attempt == 0 else 0
        elif isinstance(event, EpisodeFinished):
            episode = event.episode
            self._running -= 1
            self._done += 1
            self._counted += episode.counted
            self._successes += bool(episode.counted and episode.outcome.success)
            self._scored += episode.counted and episode.outcome.success is not None
            self._usage = self._usage + total_usage(episode.usage)
            self._show()

    def _start(self) -> None:
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.add_task(
                "episodes", total=self._total, completed=self._resumed, state=self._state()
            )
        elif self._resumed:
            note(f"{self._resumed} of {self._total} episodes are on disk already")

    def _show(self) -> None:
        if self._bar is not None:
            for task in self._bar.task_ids:
                self._bar.update(task, completed=self._resumed + self._done, state=self._state())
            return
        now = time.monotonic()
        if not self._quiet and now - self._told >= _EVERY_S:
            self._told = now
            left = self._total - self._resumed - self._done
            seconds = (now - self._started) / self._done * left
            note(
                f"{self._resumed + self._done}/{self._total} episodes, {self._state()}, "
                f"about {seconds:.0f} s left"
            )

    def _state(self) -> str:
        used = used_tokens(self._usage)
        parts = [f"success {self._successes}/{self._scored}"] if self._scored else []
        parts += [
            f"not counted {self._done - self._counted}",
            f"running {self._running}",
        ]
        if used is not None:
            parts.append(f"{used} tokens")
        if self._usage.cost is not None:
            least = "at least " if self._usage.unknown_cost_calls else ""
            parts.append(f"{least}${self._usage.cost:.4f}")
        return ", ".join(parts)
