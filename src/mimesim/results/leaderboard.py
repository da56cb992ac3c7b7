"""Several score records in one table per suite, and the rules for what may stand side by side.

A table holds one suite under one mode, with one agent, one judge and the same people to compare with;
anything else is refused unless it is asked for, and then the table says so. `leaderboard.json` holds all tables; the page is made from
it, and reads nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from mimesim.errors import UsageError
from mimesim.jsonio import read_json, write_json
from mimesim.results.reading import read_record
from mimesim.results.suite import FloorRow, Metric, ReferenceRow, SuiteScore

SCHEMA = "mimesim.leaderboard/1"
SHARED = ("mode", "agent", "judge", "people")
"""What all rows of a table have in common."""


@dataclass(frozen=True, slots=True)
class Column:
    """A metric of a table."""

    name: str
    unit: str = ""
    direction: Literal["higher", "lower", "nearer", "none"] = "none"


@dataclass(frozen=True, slots=True)
class Row:
    """One record.

    Attributes:
        name: of the file or folder, where users alone do not tell rows apart.
        user: who was measured. shared: mode, agent, judge and people of this row.
        metrics: as in the record.
        source: file of the record, as it was named.
    """

    name: str
    user: str
    shared: Mapping[str, str]
    metrics: tuple[Metric, ...]
    floors: tuple[FloorRow, ...] = ()
    seeds: tuple[int, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    source: str = ""

    def metric(self, name: str) -> Metric | None:
        """Return a metric of this row; None = the record has none of that name."""
        return next((one for one in self.metrics if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Table:
    """All records of one suite.

    Attributes:
        mixed: which of what should be the same differ between the rows; told above the table.
        references: published rows, apart from ours.
        warnings: of the table as a whole.
    """

    suite: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    mixed: tuple[str, ...] = ()
    references: tuple[ReferenceRow, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Tables, one per suite."""

    tables: tuple[Table, ...]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, `schema` first."""
        return {"schema": SCHEMA, **asdict(self)}

    def write(self, path: Path | str) -> None:
        """Replace the file `path` atomically."""
        write_json(path, self.to_json())

    @classmethod
    def read(cls, path: Path | str) -> Leaderboard:
        """Read a file made by `write`.

        Raises:
            DataError: missing, damaged or another kind of file.
        """
        return read_record(cls, read_json(path), SCHEMA, what="leaderboard", where=str(path))


def is_leaderboard(path: Path) -> bool:
    """Tell whether a file is one, by its schema."""
    if not path.is_file():
        return False
    value = read_json(path)
    return isinstance(value, dict) and value.get("schema") == SCHEMA


def leaderboard(
    records: Mapping[str, SuiteScore], *, mixed: bool = False, references: bool = False
) -> Leaderboard:
    """Set records side by side, one table per suite.

    Args:
        records: where each was read -> record.
        mixed: whether modes, agents, judges and people may differ inside a table.
        references: whether the published rows of the records are set beside them.

    Raises:
        UsageError: they differ, and that was not asked for.
    """
    by_suite: dict[str, dict[str, SuiteScore]] = {}
    for place, record in records.items():
        by_suite.setdefault(record.suite, {})[place] = record
    return Leaderboard(
        tuple(_table(own, mixed=mixed, references=references) for own in by_suite.values())
    )


def shared(record: SuiteScore) -> dict[str, str]:
    """Return what records must have in common to be compared."""
    return {
        "mode": record.mode,
        "agent": record.roles.get("agent", ""),
        "judge": record.roles.get("judge", ""),
        "people": record.roles.get("people", ""),
    }


def differing(records: Mapping[str, SuiteScore], *, mixed: bool = False) -> tuple[str, ...]:
    """Return which of mode, agent, judge and people differ between records of one suite.

    Raises:
        UsageError: some do, and `mixed` was not asked for.
    """
    told = {place: shared(record) for place, record in records.items()}
    found = tuple(key for key in SHARED if len({one[key] for one in told.values()}) > 1)
    if found and not mixed:
        key = found[0]
        seen: dict[str, str] = {}
        for place, one in told.items():
            seen.setdefault(one[key] or "none", place)
        suite = next(iter(records.values())).suite
        listed = ", ".join(f"{value!r} in {place}" for value, place in list(seen.items())[:3])
        raise UsageError(
            f"{key} differs between these {suite} scores: {listed}",
            expected=f"the same {key} in a table, for the numbers do not compare otherwise",
            mend="score them alike, or set them side by side by --mixed, which labels them",
        )
    return found


def _table(records: Mapping[str, SuiteScore], *, mixed: bool, references: bool) -> Table:
    unlike = differing(records, mixed=mixed)
    first = next(iter(records.values()))
    columns: dict[str, Column] = {}
    for record in records.values():
        for one in record.metrics:
            columns.setdefault(one.name, Column(one.name, one.unit, one.direction))
    published = first.references if references else ()
    rows = sorted(
        (_row(place, record) for place, record in records.items()),
        key=lambda row: _rank(row, next(iter(columns.values()), None)),
    )
    return Table(
        first.suite,
        tuple(columns.values()),
        tuple(rows),
        unlike,
        published,
        (
            *_order_told(rows),
            *_table_warnings(records, published),
            *_unpublished(first, asked=references),
        ),
    )


def _row(place: str, record: SuiteScore) -> Row:
    return Row(
        name=_short(place),
        user=record.roles.get("user", ""),
        shared=shared(record),
        metrics=record.metrics,
        floors=record.floors,
        seeds=record.seeds,
        excluded=record.excluded,
        warnings=record.warnings,
        source=place,
    )


def _short(place: str) -> str:
    """Return the run's name: `a` of `out/a/scores/lexical.json`."""
    path = Path(place)
    return path.parent.parent.name if path.parent.name == "scores" else path.stem


def _rank(row: Row, column: Column | None) -> tuple[int, float, str]:
    """Return a sort key: the best of the first metric first, where one direction is better."""
    found = row.metric(column.name) if column else None
    value = found.value.value if found else None
    if column is None or value is None or column.direction in ("nearer", "none"):
        return (1, 0.0, row.name)
    return (0, -value if column.direction == "higher" else value, row.name)


def _order_told(rows: Sequence[Row]) -> list[str]:
    """Return by what the rows are ordered: every suite has an order of its own."""
    if len(rows) < 2:
        return []
    first = rows[0].metrics[0] if rows[0].metrics else None
    ranked = first is not None and _rank(rows[0], Column(first.name, "", first.direction))[0] == 0
    return [
        f"users are ordered by {first.name}, the best first"
        if first and ranked
        else "users are ordered by the name of their run"
    ]


def _unpublished(record: SuiteScore, *, asked: bool) -> list[str]:
    return (
        [f"no published rows stand beside {record.suite}"]
        if asked and not record.references
        else []
    )


def _table_warnings(
    records: Mapping[str, SuiteScore], published: Sequence[ReferenceRow]
) -> list[str]:
    told = []
    fixed = any(record.mode == "fixed" for record in records.values())
    if published and fixed:
        told.append(
            "published rows were made with the original's flaws: compare them with scores of "
            "--mode compat only"
        )
    scales = list(dict.fromkeys(row.scale for row in published if row.scale))
    if scales:
        told.append("published rows are on scales of their own: " + "; ".join(scales))
    judges = sorted({record.roles.get("judge", "") for record in records.values()} - {""})
    if published and judges:
        told.append(f"our judge is {', '.join(judges)}; a published row had its own")
    return told
