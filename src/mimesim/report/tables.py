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
    percent_range,
    plain,
    points,
    points_range,
    printable,
    words,
)
from mimesim.report.gym_tables import GymTable, gym_tables
from mimesim.report.load import EpisodeFile
from mimesim.results import Estimate, MatrixRow, RunRecord

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
        blocks += _section("Success, percent", _matrix(record.rows, record.averages))
    differences = [
        (
            f"{d.arm} against {d.baseline}",
            d.measure,
            points(d.value.value),
            points_range(d.value) or UNKNOWN,
            "yes" if d.value.resolved else "not resolved",
            d.value.n,
        )
        for d in record.differences
    ]
    head = ["Difference", "Measure", "Points", "95 % interval", "Resolved", "n"]
    blocks += _section("Paired differences", table(head, differences))
    blocks += _section("Difficulty, percent", _matrix(record.distortion, ()))
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


def _matrix(rows: Sequence[MatrixRow], averages: Sequence[MatrixRow]) -> str:
    users = list(dict.fromkeys(row.user for row in rows))
    arms = dict.fromkeys(row.arm for row in (*averages, *rows))
    at = {(row.arm, row.user): row.success for row in rows}
    mean = {row.arm: row.success for row in averages}
    head = ["Arm", *(["All held-out"] if averages else []), *users]
    body = []
    for arm in arms:
        cells = [at.get((arm, user)) for user in users]
        body.append([arm, *map(_cell, ([mean.get(arm)] if averages else []) + cells)])
    return table(head, body)


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return UNKNOWN
    bounds = percent_range(estimate)
    return f"{percent(estimate.value)} ({bounds})" if bounds else percent(estimate.value)


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
