"""Plain tables, one row per message: CSV or TSV with the names of its columns as options.

    csv:chats.csv   id,role,text                    options: id, role, text, order, user, agent
                    17,customer,"where is it?"

Options name columns (`id`, `role`, `text`, and `order` if rows are not in order) and, separated by
commas, the values of the role column that stand for the person who is learnt (`user`) and for the
other side (`agent`; empty = whoever else). Rows of a conversation stand together unless `order`
is given; then the whole table is read first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from mimesim.corpora.base import CorpusInfo, Format, HumanDialogue, Record, Unfit
from mimesim.corpora.formats.chats import required
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized
from mimesim.errors import ConfigError

INFO = CorpusInfo(
    name="csv",
    license="own data",
    redistributable="no",
    training_allowed="unknown",
    citation="own table of messages",
    moderated=False,
)


_NAMES, _NAME = 20, 40
"""Columns that a message names at most, and characters of each."""


class Columns(NamedTuple):
    """Which column is what, and whose values of the role column are the learnt person's."""

    id: str = "id"
    role: str = "role"
    text: str = "text"
    order: str = ""
    user: tuple[str, ...] = ("user", "customer", "human")
    agent: tuple[str, ...] = ()


def with_options(options: Mapping[str, Any]) -> Format:
    """Return the format for a table with these columns.

    Raises:
        ConfigError: an unknown option, or a value of another type.
    """
    columns = _columns(options)

    def gather(records: Iterator[Record]) -> Iterator[Record]:
        return _gathered(records, columns)

    def convert(value: Any, given: Mapping[str, Any]) -> Iterable[HumanDialogue]:
        if given and _columns(given) != columns:
            raise ConfigError(
                "the columns were not known when the rows were joined",
                where="csv",
                expected="the format of `with_options` for the same options",
            )
        yield _dialogue(value, columns)

    def claims(value: Any) -> bool:
        return (
            isinstance(value, Mapping) and {columns.id, columns.role, columns.text} <= value.keys()
        )

    return Format(
        info=INFO,
        convert=convert,
        claims=claims,
        gather=gather,
        files=(".csv", ".tsv", ".jsonl"),
        options=Columns._fields,
    )


def _columns(options: Mapping[str, Any]) -> Columns:
    unknown = sorted(set(options) - set(Columns._fields))
    if unknown:
        raise ConfigError(
            f"unknown option {unknown[0]!r}", where="csv", expected=", ".join(Columns._fields)
        )
    found: dict[str, Any] = {}
    for name, value in options.items():
        if not isinstance(value, str):
            raise ConfigError(f"{value!r} is not text", where=f"csv, option {name}")
        several = name in ("user", "agent")
        found[name] = tuple(_folded(part) for part in value.split(",")) if several else value
    return Columns(**found)


def _folded(role: str) -> str:
    return role.strip().casefold()


def _gathered(records: Iterator[Record], columns: Columns) -> Iterator[Record]:
    """Join the rows of a conversation."""
    if columns.order:
        grouped: dict[Any, list[Record]] = {}
        for record in records:
            grouped.setdefault(_key(record, columns), []).append(record)
        groups: Iterable[list[Record]] = grouped.values()
    else:
        runs = itertools.groupby(records, key=lambda record: _key(record, columns))
        groups = (list(group) for _, group in runs)
    for group in groups:
        first = group[0]
        if _is_row(first.value, columns):
            table = {"table": first.value[columns.id], "rows": [record.value for record in group]}
            yield Record(first.where, table)
        else:
            yield from group


def _key(record: Record, columns: Columns) -> Any:
    return record.value[columns.id] if _is_row(record.value, columns) else (record.where,)


def _is_row(value: Any, columns: Columns) -> bool:
    return isinstance(value, Mapping) and not is_normalized(value) and columns.id in value


def _dialogue(value: Any, columns: Columns) -> HumanDialogue:
    if is_normalized(value):
        return convert_normalized(value, INFO)
    order = (columns.order,) if columns.order else ()
    if not (isinstance(value, Mapping) and "table" in value):
        _has(value, columns.id, columns.role, columns.text, *order)
    table = required(value, "table", "rows")
    for row in table["rows"]:
        _has(row, columns.role, columns.text, *order)
    rows = (
        sorted(table["rows"], key=lambda row: _place(row, columns))
        if columns.order
        else table["rows"]
    )
    turns = [{"role": _side(row, columns), "text": row[columns.text]} for row in rows]
    return convert_normalized({"id": table["table"], "turns": turns}, INFO)


def _has(row: Any, *names: str) -> None:
    """Make sure that a row has these columns.

    Raises:
        Unfit: naming those that it has.
    """
    try:
        required(row, *names)
    except Unfit as unfit:
        if not isinstance(row, Mapping):
            raise
        there = ", ".join(str(name)[:_NAME] for name in itertools.islice(row, _NAMES))
        raise Unfit(unfit.reason, f"{unfit.detail}; the columns are {there or 'none'}") from unfit


def _place(row: Mapping[str, Any], columns: Columns) -> tuple[int, float, str]:
    """Return where a row comes: by number if the column holds numbers, else by its text."""
    text = str(row[columns.order]).strip()
    try:
        return (0, float(text), "")
    except ValueError:
        return (1, 0.0, text)


def _side(row: Mapping[str, Any], columns: Columns) -> str:
    role = _folded(str(row[columns.role]))
    if role in columns.user:
        return "user"
    if not role:
        raise Unfit("missing_role", f"the column {columns.role!r} is empty")
    if columns.agent and role not in columns.agent:
        raise Unfit("unknown_role", f"the value {role[:40]!r} of the column {columns.role!r}")
    return "agent"


FORMAT = with_options({})
