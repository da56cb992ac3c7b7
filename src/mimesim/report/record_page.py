"""A run record arranged for the page: every number already text, every position in percent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mimesim.dialogue.episode import Episode
from mimesim.report.charts import SERIES, Axis, LineChart, Span, axis, line_chart, span
from mimesim.report.figures import (
    duration,
    measured,
    measured_range,
    percent,
    percent_range,
    plain,
    points,
    points_range,
    words,
)
from mimesim.report.grids import Grid, lost_grid, matrix_grids, p_value
from mimesim.report.gym_tables import GymTable, gym_tables
from mimesim.report.transcripts import Transcript, transcript
from mimesim.results import Difference, Estimate, MatrixRow, MetricRow, RunRecord, UserSample

KINDS = {
    "demo": ("Demo", "a small run: few seeds, one tiny policy"),
    "study": ("Study", ""),
    "quick": ("Plumbing check", "every stage ran, nothing is claimed"),
    "eval": ("Evaluation", ""),
}
HUMAN = "human"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the matrix. `heat` is 0 to 20, one step for 5 percent of success."""

    value: str
    interval: str
    heat: int
    best: bool
    span: Span
    row: MatrixRow


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One arm of the matrix; a cell is None where the arm did not meet the user."""

    arm: str
    series: int
    average: Cell | None
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Arms by users."""

    users: tuple[str, ...]
    rows: tuple[ArmRow, ...]
    has_average: bool


@dataclass(frozen=True, slots=True)
class Contrast:
    """One row of the forest plot. `verdict` is above, below or open."""

    arm: str
    baseline: str
    series: int
    measure: str
    value: str
    interval: str
    verdict: str
    headline: bool
    note: str
    method: str
    span: Span
    seeds: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True, slots=True)
class Forest:
    """All paired differences on one axis, in points."""

    axis: Axis
    zero: float
    rows: tuple[Contrast, ...]


@dataclass(frozen=True, slots=True)
class MetricLine:
    """One metric of the user table: (value, interval, nearest to the human) by subject."""

    name: str
    note: str
    cells: tuple[tuple[str, str, bool] | None, ...]


@dataclass(frozen=True, slots=True)
class MetricTable:
    """Metrics by subject, the human reference last."""

    subjects: tuple[str, ...]
    lines: tuple[MetricLine, ...]


@dataclass(frozen=True, slots=True)
class RecordPage:
    """All that the page shows of a record."""

    record: RunRecord
    kind: str
    kind_note: str
    facts: tuple[tuple[str, str], ...]
    grids: tuple[Grid, ...]
    gyms: tuple[GymTable, ...]
    matrix: Matrix | None
    forest: Forest | None
    distortion: Matrix | None
    charts: tuple[LineChart, ...]
    samples: tuple[UserSample, ...]
    metrics: MetricTable | None
    transcripts: tuple[Transcript, ...]
    identities: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    stages: tuple[tuple[str, str, str, str], ...]


def record_page(record: RunRecord) -> RecordPage:
    """Arrange a record.

    Raises:
        DataError: a conversation of the record is not a valid episode.
    """
    series = _series(record)
    label, note = KINDS[record.kind]
    proof = record.provenance
    gyms = gym_tables(record)
    return RecordPage(
        record=record,
        kind=label,
        kind_note=note,
        facts=_facts(record),
        grids=tuple(g for g in (*matrix_grids(record), lost_grid(record)) if g.rows),
        gyms=gyms,
        matrix=None if gyms else _matrix(record.rows, record.averages, series),
        forest=_forest(record.differences, series),
        distortion=_matrix(record.distortion, (), series),
        charts=tuple(
            line_chart(metric, [c for c in record.curves if c.metric == metric], series)
            for metric in dict.fromkeys(c.metric for c in record.curves)
        ),
        samples=record.user_samples,
        metrics=_metrics(record.user_metrics),
        transcripts=tuple(
            transcript(
                Episode.from_json(shown.episode, where=f"conversations[{i}]"),
                shown.title,
                shown.note,
            )
            for i, shown in enumerate(record.conversations)
        ),
        identities=tuple((words(r), _identity(who)) for r, who in proof.identities.items()),
        settings=_flat(proof.settings),
        stages=tuple(
            (s.name, duration(s.wall_s), duration(s.cpu_s), "resumed" if s.resumed else "")
            for s in proof.stages
        ),
    )


def _series(record: RunRecord) -> dict[str, int]:
    """Give every arm one color through the whole page, in the order of first appearance."""
    seen: list[str] = [r.arm for r in (*record.averages, *record.rows, *record.distortion)]
    for difference in record.differences:
        seen += [difference.baseline, difference.arm]
    seen += [curve.arm for curve in record.curves]
    return {arm: i % SERIES for i, arm in enumerate(dict.fromkeys(seen))}


def _facts(record: RunRecord) -> tuple[tuple[str, str], ...]:
    proof = record.provenance
    facts = [(f"{stage} seeds", plain(seeds)) for stage, seeds in record.seeds.items()]
    if proof.created_at:
        facts.append(("made", proof.created_at))
    if proof.wall_s is not None:
        facts.append(("wall time", duration(proof.wall_s)))
    if proof.cpu_s is not None:
        facts.append(("CPU time", duration(proof.cpu_s)))
    if "mimesim" in proof.versions:
        facts.append(("mimesim", proof.versions["mimesim"]))
    return tuple(facts)


def _matrix(
    rows: Sequence[MatrixRow], averages: Sequence[MatrixRow], series: Mapping[str, int]
) -> Matrix | None:
    if not rows and not averages:
        return None
    users = tuple(dict.fromkeys(row.user for row in rows))
    arms = dict.fromkeys(row.arm for row in (*averages, *rows))
    at = {(row.arm, row.user): row for row in rows}
    mean = {row.arm: row for row in averages}
    best = {user: _top(row for row in rows if row.user == user) for user in users}
    top = _top(averages)
    table = [
        ArmRow(
            arm=arm,
            series=series.get(arm, 0),
            average=_cell(mean.get(arm), top),
            cells=tuple(_cell(at.get((arm, user)), best[user]) for user in users),
        )
        for arm in arms
    ]
    return Matrix(users, tuple(table), bool(averages))


def _top(rows: Iterable[MatrixRow]) -> float | None:
    """Return the highest success, if there is something to compare."""
    values = [row.success.value for row in rows if row.success.value is not None]
    return max(values) if len(values) > 1 else None


def _cell(row: MatrixRow | None, best: float | None) -> Cell | None:
    if row is None:
        return None
    value = row.success.value
    return Cell(
        value=percent(value),
        interval=percent_range(row.success),
        heat=0 if value is None else min(20, max(0, round(20 * value))),
        best=value is not None and value == best,
        span=span(row.success, Axis(0.0, 1.0, ())),
        row=row,
    )


def _forest(differences: Sequence[Difference], series: Mapping[str, int]) -> Forest | None:
    if not differences:
        return None
    shown = [0.0]
    for d in differences:
        bounds = (d.value.value, d.value.low, d.value.high, *d.per_seed.values())
        shown += [100 * v for v in bounds if v is not None]
    scale = axis(min(shown), max(shown), 6)
    rows = tuple(_contrast(d, scale, series) for d in differences)
    return Forest(scale, scale.at(0.0), rows)


def _contrast(d: Difference, scale: Axis, series: Mapping[str, int]) -> Contrast:
    return Contrast(
        arm=d.arm,
        baseline=d.baseline,
        series=series.get(d.arm, 0),
        measure=d.measure,
        value=points(d.value.value),
        interval=points_range(d.value),
        verdict=_verdict(d.value),
        headline=d.headline,
        note=d.note,
        method=_method(d),
        span=span(d.value, scale, 100),
        seeds=tuple((name, points(v), scale.at(100 * v)) for name, v in d.per_seed.items()),
    )


def _method(d: Difference) -> str:
    parts = [f"n = {d.value.n}, {d.value.method}"] if d.value.method else []
    if d.p is not None:
        parts.append(f"p {_equals(d.p)} by flipped signs")
    if d.p_holm is not None:
        parts.append(f"p {_equals(d.p_holm)} after Holm")
    if d.over_seeds.value is not None:
        seeds = points_range(d.over_seeds) or "no interval"
        parts.append(f"over seeds {points(d.over_seeds.value)} ({seeds}), {d.over_seeds.method}")
    return "; ".join(parts)


def _equals(p: float) -> str:
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _verdict(value: Estimate) -> str:
    if not value.resolved:
        return "open"
    return "above" if (value.low or 0) > 0 else "below"


def _metrics(rows: Sequence[MetricRow]) -> MetricTable | None:
    if not rows:
        return None
    subjects = list(dict.fromkeys(row.subject for row in rows))
    subjects.sort(key=lambda name: name == HUMAN)
    lines = []
    for metric in dict.fromkeys(row.metric for row in rows):
        mine = {row.subject: row for row in rows if row.metric == metric}
        winner = _winner(mine)
        cells = [
            (measured(r.value, r.unit), measured_range(r.value, r.unit), subject == winner)
            if (r := mine.get(subject))
            else None
            for subject in subjects
        ]
        first = next(iter(mine.values()))
        unit = f" ({first.unit})" if first.unit not in ("", "%") else ""
        lines.append(MetricLine(metric + unit, first.note, tuple(cells)))
    return MetricTable(tuple(subjects), tuple(lines))


def _winner(rows: Mapping[str, MetricRow]) -> str | None:
    """Return the subject that is best, or nearest to people, among at least two others."""
    known = {
        subject: row.value.value
        for subject, row in rows.items()
        if subject != HUMAN and row.value.value is not None
    }
    if len(known) < 2:
        return None
    direction = next(iter(rows.values())).direction
    if direction != "nearer":
        return (max if direction == "higher" else min)(known, key=lambda s: known[s])
    human = rows[HUMAN].value.value if HUMAN in rows else None
    return None if human is None else min(known, key=lambda s: abs(known[s] - human))


def _identity(who: Mapping[str, object]) -> str:
    name = str(who.get("name", ""))
    extra = [f"{words(k)} {plain(v)}" for k, v in who.items() if k != "name" and v]
    return f"{name} ({', '.join(extra)})" if extra else name


def _flat(settings: Mapping[str, object], prefix: str = "") -> tuple[tuple[str, str], ...]:
    out: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            out += _flat(value, f"{prefix}{key}.")
        else:
            out.append((f"{prefix}{key}", plain(value)))
    return tuple(out)
