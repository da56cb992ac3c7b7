"""Last part of a build: the rows of each part as JSON Lines or parquet, counted on the way."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from mimesim import jsonio
from mimesim.corpora.arranging import Arranged
from mimesim.corpora.index import Index
from mimesim.errors import DataError, MissingExtraError

_BATCH = 500
"""Rows of a parquet row group."""

Put = Callable[[dict[str, Any]], object]
CountTokens = Callable[[str], int]
Totals = dict[tuple[int, str], Counter[str]]
"""Counts by (source, part): dialogues, turns, user_turns, words, user_words, tokens, user_tokens."""


def write_parts(
    index: Index,
    arranged: Arranged,
    folder: Path,
    kind: Literal["jsonl", "parquet"],
    tokens: CountTokens | None,
) -> Totals:
    """Write every part, each file appearing only when it is whole.

    Args:
        index: the kept dialogues.
        arranged: which of them go where.
        folder: where the files go.
        kind: their format.
        tokens: counts the tokens of a text; None = tokens stay unknown.

    Raises:
        EnvironmentFault: the disk is full.
        MissingExtraError: parquet without the extra `data`.
    """
    totals: Totals = {}
    for part, order in arranged.orders.items():
        path = folder / f"{part}.{kind}"
        with whole_file(path) as unfinished, _writer(unfinished, kind) as put:
            for number in order:
                source, row = index.row(number)
                row["split"], row["split_key"] = part, f"{arranged.keys[number]:016x}"
                put(row)
                _count(totals.setdefault((source, part), Counter()), row, tokens)
        for other in {"jsonl", "parquet"} - {kind}:
            (folder / f"{part}.{other}").unlink(missing_ok=True)
    return totals


def token_counter(place: str) -> CountTokens:
    """Return what counts tokens with a `tokenizer.json`, or a folder that holds one.

    Raises:
        DataError: there is none, or it cannot be read.
        MissingExtraError: the library `tokenizers` is not installed.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError.for_extra("counting tokens", "data") from error
    path = tokenizer_file(place)
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise DataError(f"not a tokenizer: {error}", where=str(path)) from error
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def tokenizer_file(place: str) -> Path:
    """Return the `tokenizer.json` that a path means.

    Raises:
        DataError: there is none.
    """
    path = Path(place) / "tokenizer.json" if Path(place).is_dir() else Path(place)
    if not path.is_file():
        raise DataError(
            "file not found", where=str(path), expected="a tokenizer.json, or its folder"
        )
    return path


def _count(total: Counter[str], row: Mapping[str, Any], tokens: CountTokens | None) -> None:
    total["dialogues"] += 1
    for turn in row["turns"]:
        mine = turn["role"] == "user"
        words = len(turn["text"].split())
        size = tokens(turn["text"]) if tokens else 0
        total["turns"] += 1
        total["words"] += words
        total["tokens"] += size
        total["user_turns"] += mine
        total["user_words"] += mine * words
        total["user_tokens"] += mine * size


def write_table(rows: list[dict[str, Any]], kinds: Mapping[str, type], path: Path) -> None:
    """Write flat rows as one parquet file whose columns have one type, whatever the rows hold.

    Args:
        rows: values by column; None = unknown.
        kinds: column -> str, int or float, in order.
        path: the file; what is there is replaced.

    Raises:
        MissingExtraError: the extra `data` is not installed.
        EnvironmentFault: the place is not writable.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError.for_extra("writing parquet", "data") from error
    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in kinds.items()])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise jsonio.disk_fault(path, error) from error
    with whole_file(path) as unfinished:
        parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema), unfinished)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a name for the unfinished file, and rename it once it is whole.

    Raises:
        EnvironmentFault: the disk is full.
    """
    unfinished = path.with_name(f"{path.name}.part")
    try:
        yield unfinished
        with unfinished.open("rb+") as stream:
            os.fsync(stream.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise jsonio.disk_fault(path, error) from error


@contextmanager
def _writer(path: Path, kind: str) -> Iterator[Put]:
    if kind == "parquet":
        with _parquet_writer(path) as put:
            yield put
        return
    with path.open("wb") as stream:
        yield lambda row: stream.write(jsonio.line_of(row))


@contextmanager
def _parquet_writer(path: Path) -> Iterator[Put]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError.for_extra("writing parquet", "data") from error
    schema = _schema(pyarrow)
    waiting: list[dict[str, Any]] = []

    def flush() -> None:
        if waiting:
            file.write_table(pyarrow.Table.from_pylist(waiting, schema=schema))
            waiting.clear()

    def put(row: dict[str, Any]) -> None:
        waiting.append(row)
        if len(waiting) == _BATCH:
            flush()

    with parquet.ParquetWriter(path, schema) as file:
        yield put
        flush()


def _schema(pyarrow: Any) -> Any:
    text = pyarrow.string()
    turn = pyarrow.struct([(name, text) for name in ("role", "text", "thought", "reaction")])
    other = {"moderated": pyarrow.bool_(), "flags": pyarrow.list_(text)}
    names = (
        "schema", "id", "source", "license", "redistributable", "training_allowed", "moderated",
        "split", "split_key", "topic", "goal", "context", "earlier", "user_key", "language",
        "flags", "turns", "hidden", "outcome",
    )  # fmt: skip
    other["turns"] = pyarrow.list_(turn)
    return pyarrow.schema([(name, other.get(name, text)) for name in names])
