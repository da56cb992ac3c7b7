"""Raw values of one file: lines of JSON, rows of a table.

Nothing here knows what a conversation is. Damage is told to `on_reject` and passed by: a damaged
line or row costs that line, a cut file its rest. Memory is that of one value. JSON documents are
read by `raw_documents`.
"""

from __future__ import annotations

import csv
import gzip
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple, cast

from mimesim import jsonio
from mimesim.corpora.base import Record
from mimesim.errors import DataError, MissingExtraError

OnReject = Callable[[str, str, str], None]
"""Takes where, reason and detail. Reasons: bad_json, bad_encoding, bad_table, truncated."""

BOM = b"\xef\xbb\xbf"
DAMAGE = (EOFError, OSError, zlib.error, zipfile.BadZipFile)
"""What reading a cut or damaged file raises."""
_LOCKED = RuntimeError  # what an archive raises on a member it cannot unpack

_FIELD = 1 << 26  # longest field of a CSV table
_BAD_BYTES = re.compile("[\udc80-\udcff]")  # `surrogateescape` makes them of what is not UTF-8


class Source(NamedTuple):
    """One file, or one member of an archive; `name` is what messages call it."""

    name: str
    path: Path
    member: str = ""

    @property
    def kind(self) -> str:
        """The ending that tells how the content is read."""
        return Path(plain(self.member or self.name)).suffix.lower()

    @contextmanager
    def open(self) -> Iterator[BufferedIOBase]:
        """Open the content for reading, unpacked.

        Raises:
            DataError: the file may not be read.
        """
        with ExitStack() as stack:
            stream: BufferedIOBase
            try:
                if self.member:
                    archive = stack.enter_context(zipfile.ZipFile(self.path))
                    member = stack.enter_context(archive.open(self.member))
                    stream = cast("BufferedIOBase", member)
                elif self.path.suffix.lower() == ".gz":
                    stream = stack.enter_context(gzip.open(self.path, "rb"))
                else:
                    stream = stack.enter_context(self.path.open("rb"))
            except (OSError, zipfile.BadZipFile, _LOCKED) as error:
                raise DataError(f"cannot read: {error}", where=self.name) from error
            yield stream


def plain(name: str) -> str:
    """Return a file name without its `.gz`."""
    return name[:-3] if name.lower().endswith(".gz") else name


def lines(source: Source, on_reject: OnReject) -> Iterator[Record]:
    """Yield the values of a file of JSON Lines; blank lines are skipped."""
    number = 0
    try:
        with source.open() as stream:
            for number, raw in enumerate(stream, start=1):  # binary mode splits on \n only
                where = f"{source.name}:{number}"
                told = on_reject if raw.endswith(b"\n") else _as_torn(on_reject)
                yield from parse(raw.removeprefix(BOM) if number == 1 else raw, where, told)
    except DAMAGE as error:
        on_reject(f"{source.name}:{number + 1}", "truncated", f"the rest is lost: {error}")


def _as_torn(on_reject: OnReject) -> OnReject:
    """Return a listener for a last line without its end: what is no JSON there was cut off."""

    def told(where: str, reason: str, detail: str) -> None:
        on_reject(where, "truncated" if reason == "bad_json" else reason, detail)

    return told


def table(source: Source, on_reject: OnReject) -> Iterator[Record]:
    """Yield the rows of a CSV or TSV file with a header line, as objects of texts."""
    previous = csv.field_size_limit(_FIELD)
    try:
        with source.open() as stream:
            texts = (
                (raw.removeprefix(BOM) if not at else raw).decode("utf-8", "surrogateescape")
                for at, raw in enumerate(stream)
            )
            yield from _rows(source, texts, on_reject)
    except DAMAGE as error:
        on_reject(source.name, "truncated", f"the rest is lost: {error}")
    finally:
        csv.field_size_limit(previous)


def parquet(source: Source, on_reject: OnReject) -> Iterator[Record]:
    """Yield the rows of a parquet file, batch by batch.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError.for_extra("reading parquet", "data") from error
    number = 0
    try:
        with pq.ParquetFile(source.path) as stream:
            for batch in stream.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield Record(f"{source.name}#{number}", row)
    except (pa.ArrowException, *DAMAGE) as error:
        lost = f"the rest is lost: {on_one_line(error)}"
        on_reject(f"{source.name}#{number + 1}", "truncated", lost)


def parse(raw: bytes, where: str, on_reject: OnReject) -> Iterator[Record]:
    """Yield the value of one piece of JSON text; nothing for a blank or a damaged one."""
    if not raw.strip():
        return
    if b"\0" in raw:  # never part of JSON, and half of the bytes of UTF-16
        on_reject(where, "bad_encoding", "zero bytes, so not UTF-8 (UTF-16?)")
        return
    try:
        value = jsonio.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        on_reject(where, "bad_encoding", f"not UTF-8 at byte {error.start}")
    except ValueError as error:
        on_reject(where, "bad_json", str(error))
    else:
        yield Record(where, value)


def _rows(source: Source, texts: Iterable[str], on_reject: OnReject) -> Iterator[Record]:
    reader = csv.reader(
        texts, dialect="excel-tab" if source.kind == ".tsv" else "excel", strict=True
    )
    header: list[str] | None = None
    while True:
        where = f"{source.name}:{reader.line_num + 1}"
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            on_reject(where, "bad_table", str(error))
            continue
        if not row:
            continue
        damaged = any(_BAD_BYTES.search(field) for field in row)
        if damaged:
            on_reject(where, "bad_encoding", "not UTF-8" if header else "the header is not UTF-8")
            if header is None:
                return
        elif header is None:
            header = row
        elif len(row) != len(header):
            on_reject(where, "bad_table", f"{len(row)} fields, the header has {len(header)}")
        else:
            yield Record(where, dict(zip(header, row, strict=True)))


def on_one_line(error: Exception) -> str:
    """Return a library's message on one line, without the text that it quotes."""
    return str(error).strip().partition("\n")[0].strip().removeprefix("b'")[:200]
