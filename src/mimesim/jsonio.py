"""JSON on disk: the only reader and writer of JSON and JSON Lines files.

Lines are separated by the line feed only, so U+2028, U+2029 and U+0085 inside text are harmless; they and
lone surrogates are written as escapes. Numbers are finite or null. Appends are one write and a
flush; whole files are replaced atomically.
"""

from __future__ import annotations

import errno
import gzip
import importlib
import json
import math
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from mimesim.errors import DataError, EnvironmentFault

_UNSAFE = re.compile("[\u0085\u2028\u2029\ud800-\udfff]")
_IN_THE_WAY = {
    errno.EEXIST: "a file stands where a folder should be",
    errno.ENOTDIR: "a file stands where a folder should be",
    errno.EISDIR: "a folder stands where a file should be",
}


class Line(NamedTuple):
    """One parsed line of a JSON Lines file; `number` counts from 1."""

    number: int
    value: Any


def finite(value: Any, path: str = "") -> tuple[Any, list[str]]:
    """Return `value` with NaN and infinities replaced by None, and the paths replaced."""
    if isinstance(value, float) and not math.isfinite(value):
        return None, [path or "$"]
    if isinstance(value, dict):
        out: dict[str, Any] = {}
        bad: list[str] = []
        for key, inner in value.items():
            out[key], more = finite(inner, f"{path}.{key}" if path else str(key))
            bad += more
        return out, bad
    if isinstance(value, list | tuple):
        items = [finite(inner, f"{path}[{i}]") for i, inner in enumerate(value)]
        return [inner for inner, _ in items], [p for _, more in items for p in more]
    return value, []


def dumps(
    value: Any, *, sort_keys: bool = False, indent: int | None = None, ascii_only: bool = False
) -> str:
    """Return JSON text: readable non-ASCII, finite numbers, no unsafe separators."""
    clean, _ = finite(value)
    text = json.dumps(
        clean, ensure_ascii=ascii_only, allow_nan=False, sort_keys=sort_keys, indent=indent
    )
    return _UNSAFE.sub(lambda m: f"\\u{ord(m.group()):04x}", text)


def line_of(value: Any) -> bytes:
    """Return one line of a JSON Lines file, with its line feed."""
    return (dumps(value) + "\n").encode("utf-8")


def loads(text: str) -> Any:
    """Parse strict JSON from our own files (text of models goes through `models.structured`).

    Raises:
        ValueError: not JSON, nested beyond all reason, or it holds NaN or Infinity.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def canonical(value: Any) -> str:
    """Return the one text form used for hashing: sorted keys, no blanks."""
    clean, _ = finite(value)
    return json.dumps(clean, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def read_json(path: Path | str) -> Any:
    """Read one JSON document.

    Raises:
        DataError: missing or damaged file.
    """
    path = Path(path)
    try:
        return loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError as error:
        raise _missing(path) from error
    except (ValueError, OSError) as error:
        raise DataError(f"not a JSON document: {error}", where=str(path)) from error


def _missing(path: Path | str) -> DataError:
    return DataError(
        "file not found", where=str(path), expected="a file to read", mend="check the path"
    )


def read_object(path: Path | str, *keys: str) -> dict[str, Any]:
    """Read a JSON document that must be an object with `keys`.

    Raises:
        DataError: missing or damaged file, something else than an object, or a key is missing.
    """
    value = read_json(path)
    expected = "a JSON object" + (f" with {', '.join(map(repr, keys))}" if keys else "")
    if not isinstance(value, dict):
        raise DataError("not a JSON object", where=str(path), expected=expected)
    missing = [key for key in keys if key not in value]
    if missing:
        raise DataError(f"the key {missing[0]!r} is missing", where=str(path), expected=expected)
    return value


def write_json(path: Path | str, value: Any) -> None:
    """Replace `path` atomically with `value`, indented, parents created."""
    write_text(path, dumps(value, indent=1) + "\n")


def write_text(path: Path | str, text: str) -> None:
    """Replace `path` atomically with `text` in UTF-8, parents created.

    Raises:
        EnvironmentFault: the disk is full or the place is not writable; the old file stays.
    """
    path = Path(path)
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)  # mkstemp makes 0600; keep the user's own default
        Path(temporary).replace(path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise disk_fault(path, error) from error


def disk_fault(path: Path | str, error: OSError) -> EnvironmentFault:
    """Return the one line that tells of a place that cannot be written."""
    in_the_way = _IN_THE_WAY.get(error.errno or 0)
    if in_the_way:
        return EnvironmentFault(
            f"cannot write: {in_the_way}",
            where=str(error.filename or path),
            mend="choose another --out",
        )
    return EnvironmentFault(
        f"cannot write: {error.strerror or error}",
        where=str(path),
        expected="a writable place with free space",
        mend="free space or choose another --out; everything written before is kept",
    )


def read_jsonl(path: Path | str, *, growing: bool = False) -> Iterator[Line]:
    """Yield the lines of a JSON Lines file (`.gz` accepted), blank lines skipped.

    Args:
        path: the file.
        growing: whether a writer may be at work, or was killed: an unterminated last line that
            is no whole value yet is left out.

    Raises:
        DataError: missing file or a damaged line, with its number.
    """
    path = Path(path)
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            for number, raw in enumerate(stream, start=1):  # binary mode splits on \n only
                if not raw.strip():
                    continue
                try:
                    value = parse_line(raw, path, number)
                except DataError:
                    if growing and not raw.endswith(b"\n"):
                        return
                    raise
                yield Line(number, value)
    except FileNotFoundError as error:
        raise _missing(path) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read: {error}", where=str(path)) from error


def parse_line(raw: bytes, path: Path, number: int) -> Any:
    """Parse one line of a JSON Lines file.

    Raises:
        DataError: naming file and line.
    """
    try:
        return loads(raw.decode("utf-8"))
    except ValueError as error:
        raise DataError(
            f"not valid JSON: {error}",
            where=f"{path}:{number}",
            expected="one JSON object per line",
            mend="restore or delete that line; the lines before it are intact",
        ) from error


def cut_torn_tail(path: Path | str) -> int:
    """Cut an unterminated last line (a killed writer's) and return the bytes removed.

    Raises:
        EnvironmentFault: the file cannot be written.
    """
    path = Path(path)
    try:
        return _cut_torn_tail(path)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise disk_fault(path, error) from error


def _cut_torn_tail(path: Path) -> int:
    with path.open("rb+") as stream:
        size = stream.seek(0, os.SEEK_END)
        position = size
        while position > 0:
            step = min(65536, position)
            stream.seek(position - step)
            found = stream.read(step).rfind(b"\n")
            if found >= 0:
                position = position - step + found + 1
                break
            position -= step
        if position < size:
            stream.truncate(position)
    return size - position


class Appender:
    """Append-only JSON Lines writer: one buffered write and flush per value.

    A write that fails half-way (full disk) is taken back, so the file always ends on a whole line.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.path.open("ab", buffering=0)
        except OSError as error:
            raise disk_fault(self.path, error) from error

    def append(self, value: Any) -> None:
        """Write one value as one line.

        Raises:
            EnvironmentFault: the disk is full or gone; nothing of this value stays.
        """
        raw = line_of(value)
        start = os.fstat(self._stream.fileno()).st_size
        try:
            written = self._stream.write(raw) or 0
            while written < len(raw):
                written += self._stream.write(raw[written:]) or 0
        except OSError as error:
            with suppress(OSError):  # a device has no length to go back to
                os.ftruncate(self._stream.fileno(), start)
            raise disk_fault(self.path, error) from error

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        self._stream.close()

    def __enter__(self) -> Appender:
        """Return self."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the file."""
        self.close()


_TRIES = 10
"""How often a file is opened anew that another process has just removed."""


def open_locked(path: Path | str) -> TextIO:
    """Open a text file for appending and hold it: no other process can until it is closed.

    The folders are made. Where the system knows no such locks, the file is only opened.

    Raises:
        EnvironmentFault: not writable, or another process holds it.
    """
    path = Path(path)
    stream = _held(path)
    for _ in range(_TRIES):
        if _is_at(path, stream):
            break
        stream.close()  # whoever held it has removed it in between, see `locked`
        stream = _held(path)
    return stream


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Hold a file that is there for nothing else, and remove it in the end.

    Raises:
        EnvironmentFault: not writable, or another process holds it.
    """
    stream = open_locked(path)
    try:
        yield
    finally:
        with suppress(OSError):  # some systems do not remove what is open
            Path(path).unlink()
        stream.close()


def _is_at(path: Path, stream: TextIO) -> bool:
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except OSError:
        return False


def _held(path: Path) -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a", encoding="utf-8", newline="\n", errors="backslashreplace")
    except OSError as error:
        raise disk_fault(path, error) from error
    try:
        fcntl = importlib.import_module("fcntl")
    except ImportError:  # no such locks on this system
        return stream
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        stream.close()
        raise EnvironmentFault(
            "another process is writing here",
            where=str(path.parent),
            mend="wait for it, or choose another --out",
        ) from error
    return stream
