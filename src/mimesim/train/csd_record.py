"""What the record of a run says about its coached self-distillation: one block, in JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mimesim.train.coach import Coach, CoachConfig
from mimesim.train.losses import estimator_of
from mimesim.train.rl import last_means

_COUNTS = ("asked", "written", "none", "failed", "timed_out", "leaked", "cut", "skipped")


def csd_block(
    config: Any,
    curve: Sequence[Mapping[str, float]],
    coach: Coach | None,
    asking: CoachConfig | None,
) -> dict[str, Any]:
    """Return the block `csd` of a finished run; empty where there was none.

    Means are of the last 25 batches, counts of the whole run.

    Args:
        config: the run, its arm applied.
        curve: one dict a batch.
        coach: who wrote the notes.
        asking: what the coach was shown.
    """
    if config.csd.alpha == 0:
        return {}
    estimator = estimator_of(config.csd.estimator)
    probes = [row["csd/null_gap"] for row in curve if "csd/null_gap" in row]
    return {
        **last_means(curve, "csd/"),
        "null_gap": max(probes, default=None),
        "arm": config.arm,
        "alpha": config.csd.alpha,
        "beta": config.csd.beta,
        "estimator": estimator.name,
        "experimental": estimator.experimental,
        "teacher": config.csd.teacher,
        "debias": config.notes.debias and config.notes.arm == "note",
        "placebo_arm": config.notes.arm == "placebo",
        "place": config.notes.place,
        "coach": None if coach is None else coach.name,
        **_asked(asking),
        "notes": _notes(curve),
        "leaks": _leaks(curve, checked=config.notes.leak_check),
    }


def _asked(asking: CoachConfig | None) -> dict[str, Any]:
    if asking is None:
        return {}
    return {
        "style": asking.style,
        "thought": asking.thought,
        "privileged": asking.privileged,
        "channels": asking.channels if asking.privileged else "none",
    }


def _total(curve: Sequence[Mapping[str, float]], key: str) -> int:
    return int(sum(row.get(f"notes/{key}", 0) for row in curve))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _notes(curve: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    counts: dict[str, Any] = {key: _total(curve, key) for key in _COUNTS}
    for key in ("with_thought", "with_reaction"):
        counts[key] = _share(_total(curve, key), counts["asked"])
    return counts


def _leaks(curve: Sequence[Mapping[str, float]], *, checked: bool) -> dict[str, Any]:
    rejected = _total(curve, "leaked")
    return {
        "checked": checked,
        "rejected": rejected,
        "rate": _share(rejected, rejected + _total(curve, "written")),
        "specifics": _total(curve, "leaked_specifics"),
        "copies": _total(curve, "leaked_copies"),
    }
