"""The folder of a training: whose it is, that nobody else writes there, and what a disk can do.

All stages work inside `training_folder`, so a folder holds one training only, two processes cannot
spoil one another's checkpoints, and a full disk is told in one line, whichever library met it.
"""

from __future__ import annotations

import errno
import re
import shutil
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from mimesim import jsonio
from mimesim.errors import DataError, EnvironmentFault, UsageError
from mimesim.train import launch

_CLAIM = "training.json"
_LOCK = ".training.lock"
_WRITTEN = ("README.md", "config.json", "mimesim.json", "tokenizer*.json", "*.safetensors")
"""Patterns of what a training leaves for good."""
_BEGUN = {"frozen.json", "trainer", "tracking"}
"""What a training makes before it has learnt anything; `trainer` holds its checkpoints later."""
_TIGHT = 2**20
"""Free bytes below which a failed write is taken for a full disk."""
_DISK_ERRORS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.ENOTDIR,
    errno.EISDIR,
)
_WRITE_TROUBLE = re.compile(
    r"no space left|storagefull|file too large|quota|i/o error|ioerror|read-only"
    r"|failed writing|file write failed|unexpected pos",
    re.IGNORECASE,
)


@contextmanager
def training_folder(
    out: Path, settings: Mapping[str, Any], *, fresh: bool = False
) -> Iterator[None]:
    """Hold `out` for a training with `settings`; the first process of a run holds it for all.

    Args:
        out: the folder; made if need be.
        settings: JSON values of all that decides the result, paths and the like left out.
        fresh: start over: what another training left there is given up.

    Raises:
        UsageError: the folder belongs to a training with other settings, or holds another model.
        EnvironmentFault: it cannot be written, or another process trains there.
    """
    if not launch.is_first():
        yield
        return
    made = not out.exists()
    try:
        with jsonio.locked(out / _LOCK), _writing(out):
            own = (out / _CLAIM).exists()
            before = () if own else tuple(path.name for path in out.iterdir())
            _claim(out / _CLAIM, settings, fresh=fresh)
            try:
                yield
            except UsageError:
                _take_back(out, before)
                raise
    except UsageError:
        if made:
            with suppress(OSError):  # what is not empty stays
                out.rmdir()
        raise


def _take_back(out: Path, before: Collection[str]) -> None:
    """Give a folder free whose training came to nothing: no checkpoint, no measurement.

    Args:
        out: the folder.
        before: names that stood there before any training did; they stay.
    """
    names = {path.name for path in out.iterdir()} - {_CLAIM, _LOCK} - set(before)
    if names - _BEGUN or any((out / "trainer").glob("checkpoint-*")):
        return
    for name in names:
        shutil.rmtree(out / name) if (out / name).is_dir() else (out / name).unlink()
    (out / _CLAIM).unlink()


def newest_checkpoint(trainer: Path, mark: str) -> Path | None:
    """Return the newest checkpoint of a trainer that was written to its end.

    Args:
        trainer: folder of the checkpoints.
        mark: the JSON file that is written last; without it a checkpoint is unfinished.

    Raises:
        EnvironmentFault: a finished checkpoint is damaged.
    """
    finished = [path.parent for path in trainer.glob(f"checkpoint-*/{mark}") if _is_json(path)]
    newest = max(finished, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    if newest is not None:
        _refuse_damaged(newest)
    return newest


def _claim(path: Path, settings: Mapping[str, Any], *, fresh: bool) -> None:
    if not path.exists():
        _check_free(path.parent)
    wanted = jsonio.loads(jsonio.dumps(settings))
    if path.exists() and not fresh:
        stored = jsonio.read_object(path)
        differing = sorted(k for k in wanted | stored if wanted.get(k) != stored.get(k))
        if differing:
            key = differing[0]
            was, now = stored.get(key), wanted.get(key)
            if isinstance(was, dict) and isinstance(now, dict):
                inner = next(k for k in was | now if was.get(k) != now.get(k))
                key, was, now = f"{key}.{inner}", was.get(inner), now.get(inner)
            more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
            raise UsageError(
                f"this folder holds a training with other settings: {key} was {was!r}, "
                f"is {now!r}{more}",
                where=str(path.parent),
                expected="the same settings, to go on with it",
                mend="choose another --out, or remove the folder",
            )
    jsonio.write_json(path, wanted)


def _check_free(out: Path) -> None:
    """Refuse a folder with files that no training has written there, but this one would."""
    found = sorted(path.name for pattern in _WRITTEN for path in out.glob(pattern))
    if found:
        raise UsageError(
            f"{found[0]!r} stands here already, and no training has written it",
            where=str(out),
            expected="a new folder, or one of a training",
            mend="choose another --out",
        )


def _is_json(path: Path) -> bool:
    try:
        jsonio.read_object(path)
    except DataError:  # the writer was killed in the middle of it
        return False
    return True


def _refuse_damaged(checkpoint: Path) -> None:
    for path in sorted(checkpoint.iterdir()):
        try:
            if path.suffix == ".safetensors":
                with safe_open(path, "pt") as weights:
                    weights.keys()
            elif path.suffix in (".pt", ".pth", ".bin"):
                zipfile.ZipFile(path).close()
        except (OSError, SafetensorError, zipfile.BadZipFile) as error:
            raise EnvironmentFault(
                f"a checkpoint is damaged: {error}",
                where=str(path),
                expected="the file as the trainer wrote it",
                mend=f"remove {checkpoint}; the training goes on from the checkpoint before it, "
                "or from the start",
            ) from error


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    """Tell a full or broken disk in one line: each library has its own error for it."""
    try:
        yield
    except UsageError:
        raise
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        raise jsonio.disk_fault(error.filename or out, error) from error
    except (RuntimeError, SafetensorError) as error:
        told = _WRITE_TROUBLE.search(str(error))
        tight = shutil.disk_usage(out).free < _TIGHT
        if not told and not tight:
            raise
        words = "no space left" if tight or not told else told.group()
        raise jsonio.disk_fault(out, OSError(0, words)) from error
