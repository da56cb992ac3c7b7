"""Reports as Markdown tables, e.g. for a pull request; all text of strangers is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mimesim.report.episodes_page import summarize, tiles, verdict
from mimesim.report.figures import (
    UNKNOWN,
    duration,
    measured,
    measured_range,
    percent,
    plain,
    printable,
    words,
)
from mimesim.report.grids import Grid, difference_grid, lost_grid, matrix_grids, success_grid
from mimesim.report.gym_tables import GymTable, gym_tables
from mimesim.report.load import EpisodeFile
from mimesim.results import RunRecord

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def markdown(found: RunRecord | EpisodeFile) -> str:
    """Return the Markdown summary of a record or of the episodes of a run."""
    blocks = _record(found) if isinstance(found, RunRecord) else _episodes(found)
    return printable("\n\n".join(block for block in blocks if block) + "\n")


def escape(text: object) -> str:
    """Return `text` on one line, with nothing in it that Markdown or HTML would act on."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; empty without rows."""
    body = [[escape(cell) for cell in row] for row in rows]
    if not body:
        return ""
    lines = [[escape(cell) for cell in head], ["---", *["---:"] * (len(head) - 1)], *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _record(record: RunRecord) -> list[str]:
    proof = record.provenance
    blocks = [f"# {escape(record.title)}", escape(record.verdict)]
    blocks.append(table(["", "", ""], [(t.label, t.value, t.note) for t in record.tiles]))
    gyms = gym_tables(record)
    for one in gyms:
        blocks += _section(f"Scores, user {one.user}, judge {one.judge}", _gyms(one))
    if not gyms:
        blocks += _section("Success, percent", _grid(success_grid(record.rows, record.averages)))
    for grid in (*matrix_grids(record), difference_grid(record.differences), lost_grid(record)):
        blocks += _section(grid.title, _grid(grid))
    blocks += _section("Difficulty, percent", _grid(success_grid(record.distortion, ())))
    metrics = [
        (m.metric, m.subject, measured(m.value, m.unit), measured_range(m.value, m.unit) or UNKNOWN)
        for m in record.user_metrics
    ]
    blocks += _section("Users", table(["Measure", "User", "Value", "95 % interval"], metrics))
    blocks += _section("Limits", "\n".join(f"- {escape(limit)}" for limit in record.limits))
    facts = [(f"{stage} seeds", plain(seeds)) for stage, seeds in record.seeds.items()]
    facts += [("wall time", duration(proof.wall_s)), ("CPU time", duration(proof.cpu_s))]
    facts += [*proof.machine.items(), *proof.versions.items(), *proof.hashes.items()]
    return [*blocks, *_section("Provenance", table(["", ""], [(k, plain(v)) for k, v in facts]))]


def _section(heading: str, body: str) -> list[str]:
    return [f"## {heading}", body] if body else []


def _gyms(found: GymTable) -> str:
    rows = [
        [line.name, *(f"{c.value} ({c.note})" if c.note else c.value for c in line.cells)]
        for line in found.lines
    ]
    warnings = [f"- {escape(warning)}" for warning in found.warnings]
    return "\n\n".join(filter(None, [table(["Gym", *found.arms], rows), "\n".join(warnings)]))


def _grid(grid: Grid) -> str:
    notes = [f"- {escape(note)}" for note in grid.notes]
    return "\n\n".join(filter(None, [table(grid.head, grid.rows), "\n".join(notes)]))


def _episodes(run: EpisodeFile) -> list[str]:
    found = summarize(run.episodes)
    shares = [
        (words(name), count, percent(count / found.total)) for name, count in found.stops.items()
    ]
    return [
        f"# {escape(run.path.name)}",
        escape(verdict(found)),
        table(["", "", ""], [(t.label, t.value, t.note) for t in tiles(found)]),
        *_section("Stop reasons", table(["Reason", "Episodes", "%"], shares)),
        *_section("Guards", table(["Guard", "Fired"], list(found.guards.items()))),
    ]
