"""What is hidden of a full desk task, read once: record, surroundings, gold procedure, verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mimesim.envs.base import Task
from mimesim.envs.gyms.support_desk.scoring import Call
from mimesim.errors import DataError
from mimesim.scenarios import manual as manuals
from mimesim.scenarios import procedure
from mimesim.scenarios.rows import scenario_to_row
from mimesim.scenarios.types import Manual, RequestType, Row, Scenario


@dataclass(frozen=True, slots=True)
class Case:
    """One customer's case as the company's books have it.

    Attributes:
        required: fields that the agent must obtain and use.
        verdict: granted, denied or escalated.
    """

    manual: Manual
    request: RequestType
    row: Row
    scenario: Scenario
    required: tuple[str, ...]
    verdict: str
    steps: tuple[Call, ...]

    def truth(self, wish: Mapping[str, Any]) -> dict[str, str]:
        """Return the true value of every field; `wish` overrides what the customer may decide."""
        values = {**self.row.env, **self.row.record, **wish}
        return {name: _words(value) for name, value in values.items()}

    def gold(self, wish: Mapping[str, Any]) -> tuple[Call, ...]:
        """Return the procedure a perfect agent carries out, for the customer's current wish."""
        if not wish:
            return self.steps
        found = procedure.gold(self.row, self.manual, wish)
        return tuple(Call(name, slots) for name, slots in found)

    def field_of(self, tool: str, slot: str) -> str:
        """Return the record field behind a tool's argument in this request's procedure."""
        for step in self.request.procedure:
            if step.tool == tool and slot in step.sources:
                return step.sources[slot]
        return slot

    def fixed(self, tool: str, slot: str) -> bool:
        """Tell whether the policy itself words the value of this argument."""
        return any(step.tool == tool and slot in step.fixed for step in self.request.procedure)

    @property
    def changes(self) -> frozenset[str]:
        """State-changing tools that the policy allows in this case."""
        return frozenset(
            step.name for step in self.steps if self.manual.tool(step.name).state_changing
        )


def read_case(task: Task) -> Case:
    """Read the hidden side of a full task.

    Raises:
        DataError: it is no composed scenario, or its verdict or gold steps are missing.
    """
    where = f"task {task.id!r}"
    scenario = Scenario.from_json(task.scenario, where)
    row = scenario_to_row(scenario, where)
    manual = manuals.load(str(task.meta.get("manual", "company")))
    success = scenario.success
    try:
        steps = tuple(Call(str(g["tool"]), _slots(g["slots"])) for g in success["gold"])
        required, verdict = tuple(map(str, success["required"])), str(success["verdict"])
    except (KeyError, TypeError) as error:
        raise DataError(
            f"success lacks {error}", where=where, expected="verdict, required and gold"
        ) from error
    if len(required) < 2 or len(steps) < 2:
        raise DataError(
            "the task is too thin", where=where, expected="2 required fields and 2 gold steps"
        )
    request = manual.request(row.subflow)
    return Case(manual, request, row, scenario, required, verdict, steps)


def _slots(slots: Any) -> dict[str, str]:
    if not isinstance(slots, Mapping):
        raise TypeError("the slots of a gold step")
    return {name: _words(value) for name, value in slots.items()}


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
