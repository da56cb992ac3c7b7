"""What came of a simulation: the episodes, success with its interval and both denominators, files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from mimesim import jsonio
from mimesim.dialogue.episode import Episode, Turn
from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import Role
from mimesim.errors import UsageError
from mimesim.report.make import write
from mimesim.rollout.engine import RunSummary
from mimesim.rollout.events import Counts
from mimesim.rollout.grading import FUNCTION
from mimesim.rollout.summary import summarize

_SLACK = 1e-9
_RESULT = 200
"""Characters of the result of a tool that a transcript shows."""


@dataclass(frozen=True, slots=True)
class Success:
    """How often it went well; true where the rate reaches `needed`.

    Attributes:
        value: the rate over the scored episodes; None = there is none.
        ci95: its 95 % interval, clustered by scenario; None = not known.
        k: how many went well. scored: of how many that is known. counted: of how many that could
            tell. total: of all.
        needed: the rate that is a pass.
        share: the mean reward of the scored; beside `value` only where a verdict was a share of 1,
            of which nothing below 1 is a success.
        open: conversations that nothing decided on, though they could have told.
    """

    value: float | None
    ci95: tuple[float, float] | None
    k: int
    scored: int
    counted: int
    total: int
    needed: float = 1.0
    share: float | None = None

    @property
    def open(self) -> int:
        """Counted conversations without a verdict."""
        return self.counted - self.scored

    def __bool__(self) -> bool:
        """Tell whether the rate reaches what is needed; nothing scored is never a pass.

        Raises:
            UsageError: the conversations went through, and nothing says what success is.
        """
        __tracebackhide__ = True  # pytest shows the line of the test alone
        if self.counted and not self.scored:
            raise UsageError(
                f"nothing decided on the success of {self.counted} conversations",
                expected="success=<function of an episode>, or scenarios with success.checks, "
                "or success.criteria and a judge",
            )
        return self._reached

    @property
    def _reached(self) -> bool:
        return self.value is not None and self.value >= self.needed - _SLACK

    @property
    def passed(self) -> bool | None:
        """Whether the rate reaches what is needed; None = nothing says what success is."""
        return None if self.counted and not self.scored else self._reached

    def __repr__(self) -> str:
        """Say it in one line, which is what a failed assertion shows."""
        text = f"success {self.k}/{self.counted} counted, {self.k}/{self.total} all"
        if self.open:
            text += f", {self.open} unscored"
        if self.ci95 is not None:
            text += f" (95 % CI {self.ci95[0]:.0%} to {self.ci95[1]:.0%})"
        if self.share is not None:
            text += f", mean share {self.share:.0%} (a success is a whole 1)"
        return f"<{text}; needed {self.needed:.0%}>"


@dataclass(frozen=True, slots=True)
class Results:
    """The episodes of one simulation, in the order of scenarios and trials.

    Attributes:
        seed: the run seed: the same again gives the same conversations, models aside.
        out: the run folder or file, where one was named.
        needed: rate of success that is a pass.
    """

    summary: RunSummary
    seed: int
    out: Path | None = None
    needed: float = 1.0

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """All episodes, the not counted ones too."""
        return self.summary.episodes

    @property
    def counts(self) -> Counts:
        """What became of them: statuses, stop reasons, guards, usage."""
        return self.summary.counts

    @property
    def not_counted(self) -> dict[str, int]:
        """Failures that say nothing about the agent: status -> n."""
        return self.counts.not_counted

    @property
    def success(self) -> Success:
        """How often it went well; `assert result.success` holds where it was often enough."""
        told, counts = self._summary(), self.counts
        mean = told["success"]
        low_high = mean["ci95"]
        parts = any(
            FUNCTION in e.outcome.scores and e.outcome.reward not in (None, 0, 1)
            for e in self.episodes
            if e.counted
        )
        return Success(
            value=mean["mean"],
            ci95=None if low_high is None else (low_high[0], low_high[1]),
            k=counts.successes,
            scored=mean["n"],
            counted=counts.counted,
            total=counts.all,
            needed=self.needed,
            share=told["reward"]["mean"] if parts else None,
        )

    def __iter__(self) -> Iterator[Episode]:
        """Go through the episodes."""
        return iter(self.episodes)

    def __len__(self) -> int:
        """Return how many episodes there are."""
        return len(self.episodes)

    def __repr__(self) -> str:
        """Say it in one line."""
        failed = ", ".join(f"{n} {kind}" for kind, n in self.not_counted.items())
        return f"<{len(self)} conversations, seed {self.seed}; not counted: {failed or 'none'}>"

    def to_json(self) -> dict[str, Any]:
        """Return what `mimesim run --json` prints, with `seed`, `min_success` and `passed`.

        `passed` is null where nothing says what success is.
        """
        own = {"seed": self.seed, "min_success": self.needed, "passed": self.success.passed}
        return {**self._summary(), **own}

    def _summary(self) -> dict[str, Any]:
        return summarize(self.summary, out="" if self.out is None else str(self.out))

    def to_jsonl(self, path: Path | str) -> Path:
        """Write the episodes, replacing what is there, and return the path.

        Raises:
            EnvironmentFault: the place is not writable.
        """
        return _write_lines(self.episodes, Path(path))

    def report(self, path: Path | str) -> Path:
        """Write the page that `mimesim report` makes, and return its path.

        Raises:
            EnvironmentFault: the place is not writable.
        """
        return write_page(self.episodes, Path(path))

    def transcript(self, *, failed_only: bool = False) -> str:
        """Return the public words of the conversations with their ends, to be read by people."""
        chosen = [e for e in self.episodes if not (failed_only and e.outcome.success)]
        return "\n\n".join(map(told, chosen))


def write_page(episodes: Sequence[Episode], path: Path) -> Path:
    """Write the page that `mimesim report` makes of these episodes, and return its path."""
    with tempfile.TemporaryDirectory() as folder:
        write(_write_lines(episodes, Path(folder) / "episodes.jsonl"), path)
    return path


def _write_lines(episodes: Sequence[Episode], path: Path) -> Path:
    lines = [jsonio.line_of(episode.to_json()).decode("utf-8") for episode in episodes]
    jsonio.write_text(path, "".join(lines))
    return path


def _spoken(turn: Turn) -> list[str]:
    """Return the lines of a turn: its words, then its calls; the result of a call is cut short."""
    if turn.role is Role.TOOL:
        return [f"  {turn.name or 'tool'} -> {shorten(turn.content, _RESULT, placeholder=' ...')}"]
    calls = [f"  {turn.role.value} calls {c.name}({c.arguments})" for c in turn.tool_calls]
    silent = is_blank(turn.content) and calls
    return [*([] if silent else [f"  {turn.role.value}: {turn.content}"]), *calls]


def told(episode: Episode) -> str:
    """Return one conversation as text: public words, calls of tools, the stop, what was not met."""
    stop = episode.stop
    lines = [f"{episode.task.id}, trial {episode.trial}, seed {episode.seed}"]
    lines += [line for turn in episode.turns if turn.delivered for line in _spoken(turn)]
    detail = f" ({stop.detail})" if stop.detail else ""
    lines.append(
        f"  -> {episode.outcome.status.value}: {stop.reason.value} by {stop.by.value}{detail}"
    )
    unmet = [
        name
        for name, score in episode.outcome.scores.items()
        if isinstance(score, Mapping) and score.get("value") == 0
    ]
    lines += [f"  not met: {name}" for name in unmet]
    lines += [f"  error: {e.get('type')}: {e.get('message')}" for e in episode.errors]
    return "\n".join(lines)
