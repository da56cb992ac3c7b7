"""Entries of one JSON document: of a list, of an object of splits, of an object of objects.

A document of up to 16 MiB is parsed at once, a larger one streamed; what stands before a damage is
kept. Memory is that of one entry.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedIOBase
from typing import Any

from mimesim import jsonio
from mimesim.corpora import raw
from mimesim.corpora.base import Record
from mimesim.corpora.raw import BOM, DAMAGE, OnReject, Source
from mimesim.errors import MissingExtraError

PARTS = frozenset({"train", "dev", "val", "valid", "validation", "test"})
"""Names under which one document holds the lists of its splits."""

_Problem = tuple[str, str, str]
_WHOLE = 1 << 24  # bytes of a document that is parsed at once
_FIRST_LINE = 1 << 24  # longest first line by which lines of JSON are known
_DEEPEST = 1000  # levels of a document that is streamed


def document(source: Source, on_reject: OnReject, *, splits_lists: bool) -> Iterator[Record]:
    """Yield the entries of one JSON document, or the document itself.

    Entries are those of a list, of an object of lists that are named as splits (`file#train/3`),
    and of an object of objects (`file#key`); any other object is one value. A file of JSON Lines
    that is called `.json` is read by its lines.
    """
    try:
        with source.open() as stream:
            head = stream.read(_WHOLE + 1)
            if len(head) > _WHOLE and not splits_lists:
                head += stream.read()
    except DAMAGE as error:
        yield from _rescued(source, (source.name, "truncated", str(error)), on_reject, splits_lists)
        return
    if _is_lines(head):
        yield from raw.lines(source, on_reject)
    elif len(head) > _WHOLE and splits_lists:
        yield from _streamed(source, on_reject)
    else:
        yield from _at_once(source, head, on_reject, splits_lists)


def _is_lines(head: bytes) -> bool:
    """Tell lines of JSON from one document: the first line is a whole object, and more follow."""
    first, _, rest = head.removeprefix(BOM).lstrip().partition(b"\n")
    if not rest.strip() or not first.startswith(b"{") or len(first) > _FIRST_LINE:
        return False
    try:
        return isinstance(jsonio.loads(first.decode("utf-8", "replace")), dict)
    except ValueError:
        return False


def _at_once(source: Source, content: bytes, on_reject: OnReject, split: Any) -> Iterator[Record]:
    problems: list[_Problem] = []
    found = list(
        raw.parse(content.removeprefix(BOM), source.name, lambda *problem: problems.append(problem))
    )
    for record in found:
        yield from _entries(source.name, record.value) if split else [record]
    for problem in problems:
        yield from _rescued(source, problem, on_reject, split)


def _rescued(
    source: Source, problem: _Problem, on_reject: OnReject, split: Any
) -> Iterator[Record]:
    """Yield the entries before the damage, where entries can be told apart."""
    if split and importlib.util.find_spec("ijson"):
        yield from _streamed(source, on_reject, known=problem[1])
    else:
        on_reject(*problem)


def _entries(name: str, value: Any) -> Iterator[Record]:
    if isinstance(value, list):
        for number, entry in enumerate(value, start=1):
            yield Record(f"{name}#{number}", entry)
    elif _holds_parts(value, list):
        for part, entries in value.items():
            for number, entry in enumerate(entries, start=1):
                yield Record(f"{name}#{part}/{number}", entry)
    elif _holds(value, dict):
        for key, entry in value.items():
            yield Record(f"{name}#{key}", entry)
    else:
        yield Record(name, value)


def _holds_parts(value: Any, kind: type | str) -> bool:
    """Tell whether an object holds lists that are named as splits; `kind` marks a list."""
    return _holds(value, kind) and value.keys() <= PARTS


def _holds(value: Any, kind: type | str) -> bool:
    """Tell whether an object has values of one type, or of one kind in a table of kinds."""
    if not isinstance(value, Mapping) or not value:
        return False
    return all(v == kind if isinstance(kind, str) else isinstance(v, kind) for v in value.values())


def _streamed(source: Source, on_reject: OnReject, *, known: str = "") -> Iterator[Record]:
    """Yield the entries of a large document one by one, with one pass before for its shape.

    A lone surrogate comes out as a question mark here. `known` is what is wrong with the document,
    where that was found out before.

    Raises:
        MissingExtraError: ijson is not installed.
    """
    try:
        import ijson
    except ImportError as error:
        raise MissingExtraError.for_extra(
            f"reading a large or damaged JSON document ({source.name})", "data"
        ) from error
    where = source.name
    try:
        with source.open() as stream:
            shape = _shape(ijson.basic_parse(_Unmarked(stream), use_float=True), ijson.JSONError)
        if shape is None:
            on_reject(where, "bad_json", f"nested more than {_DEEPEST} times")
            return
        for where, entry in _walk(source, shape, ijson):
            yield Record(where, entry)
    except (ijson.JSONError, *DAMAGE) as error:
        cut = isinstance(error, DAMAGE) or "premature EOF" in str(error)
        wrong = "bad_encoding" if known == "bad_encoding" or "UTF8" in str(error) else "bad_json"
        reason = "truncated" if cut and wrong == "bad_json" else wrong
        on_reject(f"{where}", reason, f"what follows this entry is lost: {raw.on_one_line(error)}")


def _shape(
    events: Iterable[tuple[str, Any]], fault: type[Exception]
) -> str | dict[str, str] | None:
    """Return "list", "value", or the kind of value under each key of an object.

    None = nested so deeply that the second pass, which names the path of every value, would take
    memory without bound. A `fault` in a list is left to that pass: what stands before it counts.
    """
    kinds: dict[str, str] = {}
    depth, key, single = 0, "", ""
    try:
        for event, value in events:
            if depth == 0 and event not in ("start_map", "end_map", "end_array"):
                single = "list" if event == "start_array" else "value"
            if depth == 1 and event == "map_key":
                key = value
            elif depth == 1 and not event.startswith("end_"):
                kinds[key] = event
            depth += event.startswith("start_") - event.startswith("end_")
            if depth > _DEEPEST:
                return None
    except (fault, *DAMAGE):
        if single != "list":
            raise
    return single or kinds


def _walk(source: Source, shape: str | dict[str, str], ijson: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(shape, dict) and _holds_parts(shape, "start_array"):
        for part in shape:
            with source.open() as stream:
                entries = ijson.items(_Unmarked(stream), f"{part}.item", use_float=True)
                for number, entry in enumerate(entries, start=1):
                    yield f"{source.name}#{part}/{number}", entry
        return
    with source.open() as stream:
        content = _Unmarked(stream)
        if isinstance(shape, dict) and _holds(shape, "start_map"):
            for key, entry in ijson.kvitems(content, "", use_float=True):
                yield f"{source.name}#{key}", entry
        elif shape == "list":
            for number, entry in enumerate(ijson.items(content, "item", use_float=True), start=1):
                yield f"{source.name}#{number}", entry
        else:
            yield from ((source.name, entry) for entry in ijson.items(content, "", use_float=True))


class _Unmarked:
    """A stream without the byte-order mark at its start, read so that no byte before a cut is lost."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self._stream = stream
        self._first = True

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read1(size)
        if self._first and size:
            self._first = False
            return chunk.removeprefix(BOM)
        return chunk
