"""Making a report: from a path to a written page or table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mimesim.errors import ConfigError
from mimesim.jsonio import dumps, write_text
from mimesim.registry import unknown_name
from mimesim.report.episodes_page import summarize
from mimesim.report.html import render
from mimesim.report.latex import latex
from mimesim.report.load import EpisodeFile, default_out, load
from mimesim.report.tables import markdown as tables
from mimesim.results import RunRecord


def _tex(found: RunRecord | EpisodeFile) -> str:
    if isinstance(found, RunRecord):
        return latex(found)
    raise ConfigError(
        "episodes have no LaTeX tables", where=str(found.path), expected="a run record (.json)"
    )


def _json(found: RunRecord | EpisodeFile) -> str:
    return dumps(found.brief() if isinstance(found, RunRecord) else _episodes(found)) + "\n"


class Form(NamedTuple):
    """A format: the ending of its files, and what makes the text."""

    ending: str
    make: Callable[[RunRecord | EpisodeFile], str]


FORMS: Mapping[str, Form] = {
    "html": Form(".html", render),
    "md": Form(".md", tables),
    "latex": Form(".tex", _tex),
    "json": Form(".tables.json", _json),
}
"""The formats by name; all but `html` can be printed as well."""


def form_of(name: str) -> Form:
    """Return a format.

    Raises:
        UnknownNameError: there is none of that name.
    """
    if name not in FORMS:
        raise unknown_name("format", name, list(FORMS))
    return FORMS[name]


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was made; `out` is None when it was not written."""

    found: RunRecord | EpisodeFile
    text: str
    out: Path | None


def write(path: Path, out: Path | None = None, *, form: str = "html", keep: bool = True) -> Report:
    """Make the report of what lies at `path`, and write it.

    Args:
        path: a record, an episode file or a folder of one.
        out: where it goes; None = beside the input.
        form: html, or tables as md, latex or json.
        keep: False = make it, write nothing.

    Raises:
        DataError: nothing to report, or a damaged file.
        ConfigError: the report would replace its own input.
        UnknownNameError: no such format.
        EnvironmentFault: the place is not writable.
    """
    chosen = form_of(form)
    target = out or default_out(path).with_suffix(chosen.ending)
    if target.resolve() == path.resolve():
        raise ConfigError(
            "the report would replace what it is made from", where=str(target), mend="another --out"
        )
    found = load(path)
    text = chosen.make(found)
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
    return {"out": str(report.out), **_episodes(found)}


def _episodes(found: EpisodeFile) -> dict[str, Any]:
    sums = summarize(found.episodes)
    return {
        "kind": "episodes",
        "episodes": sums.total,
        "completed": sums.statuses.get("completed", 0),
        "counted": sums.counted,
        "failures": dict(sums.failures),
        "reward": sums.reward.brief(),
        "success": sums.success.brief(),
        "success_strict": sums.strict,
    }
