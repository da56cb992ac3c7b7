"""Progress of a study: one bar a stage on a terminal, one line a change elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mimesim.cli.output import stderr

_PLAIN_STEP = 0.25


class StageBars:
    """Shows what `studies.scheduler` tells; use it as a context."""

    def __init__(self, names: Sequence[str], *, quiet: bool) -> None:
        self._console = stderr()
        self._live = self._console.is_terminal and not quiet
        self._quiet = quiet
        self._told: dict[str, tuple[str, float]] = {}
        self._bars = Progress(
            TextColumn("{task.fields[mark]} {task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[text]}", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._live,
        )
        width = max(map(len, names))
        self._tasks = {
            name: self._bars.add_task(name.ljust(width), total=1.0, start=False, mark=" ", text="")
            for name in names
        }

    def update(self, said: Any) -> None:
        """Take one `studies.scheduler.Progress`."""
        if self._live:
            task = self._tasks[said.stage]
            if said.state == "running":
                self._bars.start_task(task)
            mark = {"done": "✓", "resumed": "✓"}.get(said.state, "·")
            self._bars.update(task, completed=said.fraction, text=said.text, mark=mark)
            if said.state == "done":
                self._bars.stop_task(task)
        elif not self._quiet:
            self._line(said)

    def _line(self, said: Any) -> None:
        state, fraction = self._told.get(said.stage, ("", -1.0))
        if said.state != state or said.fraction >= fraction + _PLAIN_STEP:
            self._told[said.stage] = (said.state, said.fraction)
            more = f", {said.text}" if said.state == "running" else ""
            self._console.print(f"{said.stage}: {said.state}{more}")

    def __enter__(self) -> StageBars:
        """Start the bars."""
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the bars."""
        self._bars.stop()
