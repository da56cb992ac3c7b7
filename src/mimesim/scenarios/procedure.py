"""What a case calls for: its verdict, the gold steps with values, the fields to get hold of.

Pure functions of a row and the manual; `wish` overrides what the customer has changed their
mind about in mid-conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim.scenarios.limits import holds
from mimesim.scenarios.types import DENIED, ESCALATED, GRANTED, Limit, Manual, Row, Step

GoldStep = tuple[str, dict[str, str]]
"""Tool name and its slot values."""

_WITHOUT_GRANT = ("identity", "check", "record")
"""Kinds of tools that belong to a case that is refused or handed over."""

HANDOVER_TOOL = "notify-team"
HANDOVER_SLOTS = {"team": "care team"}


def limits_holding(row: Row, manual: Manual) -> tuple[Limit, ...]:
    """Return the limits that stand against this very row, refusals first."""
    found = [m for m in manual.limits_of(row.subflow) if holds(m, row.record, row.env)]
    return tuple(sorted(found, key=lambda m: m.outcome != DENIED))


def verdict(row: Row, manual: Manual) -> str:
    """Return granted, denied or escalated; a refusal outranks a hand-over.

    A limit on something beside the errand leaves the errand itself as it is.
    """
    standing = [limit for limit in limits_holding(row, manual) if not limit.aside]
    return standing[0].outcome if standing else GRANTED


def gold(row: Row, manual: Manual, wish: Mapping[str, Any] | None = None) -> tuple[GoldStep, ...]:
    """Return the ordered tool calls of a perfect agent.

    A refused case keeps identity, checks and the recorded reason; one handed over adds the
    message to the team; neither changes anything.
    """
    outcome = verdict(row, manual)
    values = {**row.record, **(wish or {})}
    steps = [
        (step.tool, _slots(step, values))
        for step in manual.request(row.subflow).procedure
        if outcome == GRANTED or manual.tool(step.tool).kind in _WITHOUT_GRANT
    ]
    if outcome == ESCALATED:
        steps.append((HANDOVER_TOOL, dict(HANDOVER_SLOTS)))
    return tuple(steps)


def _slots(step: Step, values: Mapping[str, Any]) -> dict[str, str]:
    return {
        slot: step.fixed[slot] if slot in step.fixed else str(values[step.sources.get(slot, slot)])
        for slot in step.slots
    }


def required_fields(row: Row, manual: Manual) -> tuple[str, ...]:
    """Return the required fields that this row's gold steps use, in the manual's order."""
    request = manual.request(row.subflow)
    outcome = verdict(row, manual)
    used = {
        name
        for step in request.procedure
        if outcome == GRANTED or manual.tool(step.tool).kind in _WITHOUT_GRANT
        for name in step.fields
    }
    return tuple(name for name in request.required if name in used)
