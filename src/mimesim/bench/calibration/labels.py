"""The behaviors that show in the conversations of both sides, by a labeler; kept, and not asked twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from mimesim.bench.calibration.causes import Labeled
from mimesim.bench.suites.sessions import Session, SessionSet
from mimesim.judges.annotate import Dialogue
from mimesim.judges.labeling import labels_of, work_on
from mimesim.judges.stored import Stored, ask_judges

_WHO = ("simulated", "people")

Sides = tuple[SessionSet, SessionSet]
"""Simulated conversations, and those of people."""


def label(sides: Sides, labeler: str, file: Path, *, seed: int, concurrency: int) -> list[Stored]:
    """Ask a labeler about every conversation with a known end; labels in `file` are taken over.

    Raises:
        UsageError: a labeler that cannot be reached.
    """
    dialogues = [
        Dialogue(_item(who, one), one.turns)
        for who, side in zip(_WHO, sides, strict=True)
        for one in side.sessions
        if one.success is not None
    ]
    asking = ask_judges(
        [labeler], lambda judge: work_on(dialogues, judge, seed=seed), file, concurrency=concurrency
    )
    return asyncio.run(asking)[labeler]


def labeled(sides: Sides, stored: Sequence[Stored]) -> tuple[list[Labeled], list[Labeled]]:
    """Return the conversations of each side that have a verdict."""
    shown = {one.item: names for one in stored if (names := labels_of(one)) is not None}
    ours, theirs = (
        [
            Labeled(one.task or one.id, one.success, shown[_item(who, one)])
            for one in side.sessions
            if one.success is not None and _item(who, one) in shown
        ]
        for who, side in zip(_WHO, sides, strict=True)
    )
    return ours, theirs


def _item(who: str, one: Session) -> str:
    """Return what a conversation's labels are kept under: two files may use the same ids."""
    return f"{who}/{one.id}"
