"""Rows and scenarios, both ways: the flat composed case and the private scenario of its user.

The scenario holds only what a real customer would know; the whole row rides along in
`meta["row"]`, which nobody in the conversation is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mimesim.errors import DataError
from mimesim.scenarios.fields import value_text
from mimesim.scenarios.procedure import gold, required_fields, verdict
from mimesim.scenarios.records import GOAL_FIELD
from mimesim.scenarios.replay import replayed
from mimesim.scenarios.types import BehaviorUse, Manual, Row, Scenario, Withhold

CUSTOMER_KNOWS = ("days", "receipt", "disputed_amount", "info_source")
"""Keys of `env` that a real customer knows too."""


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Replace `{name}` in `template` by values; lists become `a, b`.

    Raises:
        KeyError: a name without a value.
    """
    return GOAL_FIELD.sub(lambda slot: value_text(values, slot[1]), template)


def customer_facts(row: Row) -> dict[str, Any]:
    """Return what the customer of this row knows."""
    facts = dict(row.record)
    facts.update({key: row.env[key] for key in CUSTOMER_KNOWS if key in row.env})
    return facts


def row_to_scenario(row: Row, manual: Manual) -> Scenario:
    """Build the private scenario of the row's customer.

    Raises:
        DataError: the row lacks what its request type needs.
    """
    try:
        return _scenario(row, manual)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"the row does not fit {row.subflow!r}: {type(error).__name__}: {error}",
            where=f"row {row.index}",
            expected="record and env as compose writes them",
        ) from error


def _scenario(row: Row, manual: Manual) -> Scenario:
    request = manual.request(row.subflow)
    facts = customer_facts(row)
    uses = (BehaviorUse(row.behavior, row.params, row.directive),) if row.behavior else ()
    withheld = row.params.get("withheld_fields", ()) if row.behavior == "B3" else ()
    return Scenario(
        id=f"{manual.name}-{row.subflow}-{row.index:05d}-{row.seed:016x}",
        goal=fill(request.goal, facts),
        persona=f"{row.record['customer_name']}, a customer of {manual.company}",
        facts=facts,
        withhold=tuple(Withhold(name) for name in withheld),
        behavior=uses,
        success={
            "verdict": verdict(row, manual),
            "required": list(required_fields(row, manual)),
            "gold": [{"tool": tool, "slots": slots} for tool, slots in gold(row, manual)],
        },
        history=replayed(row, manual),
        agent_context={"env": dict(row.env)},
        max_turns=row.turn_budget,
        tags=(row.flow, row.subflow, row.behavior or "neutral"),
        source=row.source,
        license=manual.license,
        meta={
            "profile": "full",
            "manual": manual.source,
            "flow": row.flow,
            "subflow": row.subflow,
            "row": row.to_json(),
        },
        may_state_goal=True,
    )


def refuse_row(value: Any, where: str) -> None:
    """Refuse a composed row where a scenario or a task is read: it does not name its manual.

    Raises:
        DataError: it is one.
    """
    if isinstance(value, Mapping) and {"record", "subflow"} <= set(value):
        raise DataError(
            "this is a composed row",
            where=where,
            expected="a scenario, or a task of a gym",
            mend="compose it with `--view scenario` and play it with `run --scenarios`",
        )


def scenario_to_row(scenario: Scenario, where: str) -> Row:
    """Give back the row a scenario was made from.

    Raises:
        DataError: the scenario was not composed.
    """
    if "row" not in scenario.meta:
        raise DataError(
            "scenario has no composed row", where=where, expected="meta.row as compose writes it"
        )
    return Row.from_json(scenario.meta["row"], where)
