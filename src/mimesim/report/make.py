"""Making a report: from a path to a written page or table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimesim.errors import ConfigError
from mimesim.jsonio import write_text
from mimesim.report.episodes_page import summarize
from mimesim.report.html import render
from mimesim.report.load import EpisodeFile, default_out, load
from mimesim.report.tables import markdown as tables
from mimesim.results import RunRecord


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was made; `out` is None when it was not written."""

    found: RunRecord | EpisodeFile
    text: str
    out: Path | None


def write(
    path: Path, out: Path | None = None, *, markdown: bool = False, keep: bool = True
) -> Report:
    """Make the report of what lies at `path`, and write it.

    Args:
        path: a record, an episode file or a folder of one.
        out: where it goes; None = beside the input.
        markdown: tables instead of a page.
        keep: False = make it, write nothing.

    Raises:
        DataError: nothing to report, or a damaged file.
        ConfigError: the report would replace its own input.
        EnvironmentFault: the place is not writable.
    """
    target = out or default_out(path).with_suffix(".md" if markdown else ".html")
    if target.resolve() == path.resolve():
        raise ConfigError(
            "the report would replace what it is made from", where=str(target), mend="another --out"
        )
    found = load(path)
    text = tables(found) if markdown else render(found)
    if not keep:
        return Report(found, text, None)
    write_text(target, text)
    return Report(found, text, target)


def brief(report: Report) -> dict[str, Any]:
    """Return what `--json` prints about a report."""
    found = report.found
    if isinstance(found, RunRecord):
        about = {"kind": found.kind, "title": found.title, "verdict": found.verdict}
        return {"out": str(report.out), **about, "rows": len(found.rows)}
    sums = summarize(found.episodes)
    return {
        "out": str(report.out),
        "kind": "episodes",
        "episodes": sums.total,
        "completed": sums.statuses.get("completed", 0),
        "counted": sums.counted,
        "failures": dict(sums.failures),
        "reward": sums.reward.brief(),
        "success": sums.success.brief(),
        "success_strict": sums.strict,
    }
