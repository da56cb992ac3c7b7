"""Where the numbers of a run go while it trains: TensorBoard, Weights & Biases, Trackio.

None of them is needed. `auto` means TensorBoard where it is installed, else nothing; the curve of
the result holds the same numbers either way.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from mimesim.errors import EnvironmentFault, MissingExtraError
from mimesim.registry import unknown_name

AUTO = "auto"
_FOLDER = "tracking"


class Tracker(Protocol):
    """Takes the numbers of a run, batch by batch."""

    def log(self, batch: int, values: Mapping[str, float]) -> None:
        """Take the numbers of one batch."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class TensorBoard:
    """Event files in `<out>/tracking`; `tensorboard --logdir` shows them.

    Args:
        out: folder of the run.
        settings: of the run, shown as text.
        first: batch that comes next; what an interrupted run wrote from it on is taken back.
    """

    def __init__(self, out: Path, settings: Mapping[str, Any], first: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(out / _FOLDER), purge_step=first if first > 1 else None)
        if first == 1:
            lines = [f"    {key} = {value!r}" for key, value in settings.items()]
            self._writer.add_text("settings", "\n".join(lines))

    def log(self, batch: int, values: Mapping[str, float]) -> None:
        """Take the numbers of one batch."""
        for key, value in values.items():
            self._writer.add_scalar(key, value, batch)
        self._writer.flush()

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()


class Service:
    """A tracker with wandb's functions `init`, `log` and `finish`; Trackio has them too.

    Args:
        module: the imported package.
        out: folder of the run; its name is the name of the run.
        settings: of the run.
        more: further arguments of `init`.
    """

    def __init__(
        self, module: Any, out: Path, settings: Mapping[str, Any], more: Mapping[str, Any]
    ) -> None:
        self._module = module
        try:
            module.init(project="mimesim", name=out.name, config=dict(settings), **more)
        except Exception as error:  # keys, networks and disks each raise their own kinds
            words = str(error).strip().partition("\n")[0]
            raise EnvironmentFault(
                f"{module.__name__} cannot start: {words or type(error).__name__}",
                where="trackers",
                mend=f"log in to {module.__name__}, or leave it out of 'trackers'",
            ) from error

    def log(self, batch: int, values: Mapping[str, float]) -> None:
        """Take the numbers of one batch."""
        self._module.log(dict(values), step=batch)

    def close(self) -> None:
        """Write what is left."""
        self._module.finish()


def _wandb(out: Path, settings: Mapping[str, Any], first: int) -> Tracker:
    # One run on the service for one run here, however often it is interrupted.
    more = {"dir": str(out), "id": out.name, "resume": "allow" if first > 1 else None}
    return Service(importlib.import_module("wandb"), out, settings, more)


def _trackio(out: Path, settings: Mapping[str, Any], first: int) -> Tracker:
    more = {"resume": "allow" if first > 1 else "never"}
    return Service(importlib.import_module("trackio"), out, settings, more)


_KINDS: Mapping[str, Callable[[Path, Mapping[str, Any], int], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": _wandb,
    "trackio": _trackio,
}
NAMES = (AUTO, *_KINDS)


def check_trackers(names: Sequence[str]) -> None:
    """Refuse trackers that are not known or not installed, before anything runs.

    Raises:
        UnknownNameError: no such tracker.
        MissingExtraError: its package is not installed.
    """
    for name in names:
        if name not in NAMES:
            raise unknown_name("tracker", name, list(NAMES))
        if name != AUTO and not _installed(name):
            package = '"mimesim[trackers]"' if name == "tensorboard" else name
            raise MissingExtraError(
                f"the tracker {name!r} is not installed",
                where="trackers",
                expected="an installed package, or a list without it",
                mend=f"pip install {package}",
            )


def note(names: Sequence[str]) -> str:
    """Return what to tell about trackers that are left out; empty = nothing."""
    if AUTO in names and not _installed("tensorboard"):
        return (
            'no tracker: tensorboard is not installed (pip install "mimesim[trackers]"); the curve '
            "is in the result all the same"
        )
    return ""


def open_trackers(
    names: Sequence[str], out: Path, settings: Mapping[str, Any], *, first: int
) -> list[Tracker]:
    """Open the trackers of a run.

    Args:
        names: `auto`, `tensorboard`, `wandb`, `trackio`.
        out: folder of the run.
        settings: of the run, flat.
        first: batch that comes next, 1 at the start.

    Raises:
        EnvironmentFault: one of them cannot start.
    """
    wanted = ["tensorboard" if name == AUTO else name for name in names]
    found = [n for n in dict.fromkeys(wanted) if n != "tensorboard" or _installed(n)]
    return [_KINDS[name](out, settings, first) for name in found]


def _installed(name: str) -> bool:
    return find_spec(name) is not None
