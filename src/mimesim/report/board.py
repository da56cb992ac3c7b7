"""A leaderboard as text: Markdown, CSV, JSON, and the page, each from the same tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mimesim.jsonio import dumps
from mimesim.registry import unknown_name
from mimesim.report.figures import UNKNOWN, measured, measured_range, plain, printable, words
from mimesim.report.html import page_of
from mimesim.report.tables import escape
from mimesim.report.tables import table as markdown_table
from mimesim.results.leaderboard import SHARED, Leaderboard, Row, Table
from mimesim.results.suite import FloorRow, Metric

BETTER = {"higher": "higher is better", "lower": "lower is better", "nearer": "near people's"}


@dataclass(frozen=True, slots=True)
class BoardLine:
    """One metric of a table, as text: its name, its unit and direction, and a cell per row."""

    name: str
    about: str
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class BoardTable:
    """One suite as text: metrics down, users across.

    Attributes:
        shared: mode, agent, judge and people of all rows, as far as they are the same.
        head: one (name, note) per column of a user.
        floors: what a perfect or worthless user would get: (metric, name, value, interval).
        published: (subject, figures, source).
        notes: exclusions and warnings.
    """

    suite: str
    shared: tuple[tuple[str, str], ...]
    head: tuple[tuple[str, str], ...]
    lines: tuple[BoardLine, ...]
    floors: tuple[tuple[str, str, str, str], ...]
    published: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]


def board_tables(board: Leaderboard) -> list[BoardTable]:
    """Return the tables of a leaderboard as text."""
    return [_arranged(one) for one in board.tables]


def _arranged(found: Table) -> BoardTable:
    common = found.rows[0].shared if found.rows else {}
    lines = tuple(
        BoardLine(
            words(column.name),
            ", ".join(filter(None, (column.unit, BETTER.get(column.direction, "")))),
            tuple(_cell(row.metric(column.name)) for row in found.rows),
        )
        for column in found.columns
    )
    return BoardTable(
        suite=found.suite,
        shared=tuple(
            (key, value) for key, value in common.items() if value and key not in found.mixed
        ),
        head=tuple((row.user or row.name, _beside(row, found.mixed)) for row in found.rows),
        lines=lines,
        floors=tuple(_floors(found)),
        published=tuple(
            (row.subject, plain(row.values), "; ".join(filter(None, (row.source, row.scale))))
            for row in found.references
        ),
        notes=tuple(_notes(found)),
    )


def _beside(row: Row, mixed: tuple[str, ...]) -> str:
    parts = [row.name, *(f"{key} {row.shared.get(key) or 'none'}" for key in mixed)]
    if row.seeds:
        parts.append(f"seed{'s' * (len(row.seeds) > 1)} {plain(row.seeds)}")
    return ", ".join(parts)


def _cell(metric: Metric | None) -> tuple[str, str]:
    if metric is None:
        return (UNKNOWN, "")
    note = ", ".join(
        filter(None, (measured_range(metric.value), f"n {metric.value.n}", metric.note))
    )
    return (measured(metric.value), note)


def _floors(found: Table) -> list[tuple[str, str, str, str]]:
    seen: dict[tuple[str, str, str], FloorRow] = {}
    for row in found.rows:
        for floor in row.floors:
            seen.setdefault((floor.metric, floor.name, measured(floor.value)), floor)
    return [
        (words(metric), name, value, f"{told} ({floor.covers})" if told else "")
        for (metric, name, value), floor in seen.items()
        for told in [measured_range(floor.value)]
    ]


def _notes(found: Table) -> list[str]:
    told = list(found.warnings)
    if found.mixed:
        told.insert(0, f"mixed: the rows differ in {' and '.join(found.mixed)}")
    told += [
        f"{row.name}: left out, never scored: {plain(row.excluded)}"
        for row in found.rows
        if row.excluded
    ]
    bearers: dict[str, list[str]] = {}
    for row in found.rows:
        for warning in row.warnings:
            bearers.setdefault(warning, []).append(row.name)
    for warning, names in bearers.items():
        everybody = len(names) == len(found.rows)
        told.append(warning if everybody else f"{', '.join(names)}: {warning}")
    return told


def _html(board: Leaderboard) -> str:
    return page_of("board.html.jinja", tables=board_tables(board))


def _markdown(board: Leaderboard) -> str:
    blocks = []
    for one in board_tables(board):
        blocks.append(f"## {escape(one.suite)}")
        blocks.append(escape(", ".join(f"{key} {value}" for key, value in one.shared)))
        head = ["metric", "", *(f"{name} ({note})" for name, note in one.head)]
        body = [
            [line.name, line.about, *(f"{v} [{note}]" if note else v for v, note in line.cells)]
            for line in one.lines
        ]
        blocks.append(markdown_table(head, body))
        blocks.append(markdown_table(["floor of", "", "value", "range"], one.floors))
        blocks.append(markdown_table(["published", "values", "source and scale"], one.published))
        blocks.append("\n".join(f"- {escape(note)}" for note in one.notes))
    return printable("\n\n".join(block for block in blocks if block) + "\n")


def _csv(board: Leaderboard) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = ("suite", "row", "user", *SHARED, "metric", "unit")
    writer.writerow((*head, "value", "low", "high", "n", "note"))
    for one in board.tables:
        for row in one.rows:
            about = (row.name, row.user, *(row.shared.get(key, "") for key in SHARED))
            for m in row.metrics:
                numbers = (m.value.value, m.value.low, m.value.high, m.value.n)
                writer.writerow((one.suite, *about, m.name, m.unit, *numbers, m.note))
        for published in one.references:
            for name, value in published.values.items():
                told = (published.subject, "", "published", "", "", "", name, "")
                writer.writerow((one.suite, *told, value, "", "", "", published.scale))
    return out.getvalue()


def _json(board: Leaderboard) -> str:
    return dumps(board.to_json(), indent=1) + "\n"


FORMS: Mapping[str, Callable[[Leaderboard], str]] = {
    "md": _markdown,
    "json": _json,
    "csv": _csv,
    "html": _html,
}
"""The formats by name; `json` is the leaderboard file itself."""


def board_text(board: Leaderboard, form: str) -> str:
    """Return a leaderboard in a format.

    Raises:
        UnknownNameError: there is none of that name.
    """
    if form not in FORMS:
        raise unknown_name("format", form, list(FORMS))
    return FORMS[form](board)
