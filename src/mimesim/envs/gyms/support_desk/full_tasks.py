"""Tasks of the full desk from composed rows: what is public, what is hidden, stable ids."""

from __future__ import annotations

from mimesim.envs.base import Task
from mimesim.envs.gyms.support_desk.texts import policy_text
from mimesim.envs.gyms.support_desk.tools import describe_tools
from mimesim.jsonio import canonical
from mimesim.scenarios import manual as manuals
from mimesim.scenarios.compose import compose
from mimesim.scenarios.rows import row_to_scenario
from mimesim.scenarios.types import Manual, Row
from mimesim.seeds import fingerprint


def make_tasks(split: str, seed: int, count: int) -> list[Task]:
    """Compose `count` tasks of a split; a larger count begins with the same tasks."""
    manual = manuals.load()
    wanted = count
    while True:
        composed = compose(manual, seed=seed, count=wanted, split=split)
        if len(composed.rows) >= count:
            return [task_of(row, manual) for row in composed.rows[:count]]
        wanted += sum(composed.dropped.values())  # dropped draws are made up for


def task_of(row: Row, manual: Manual) -> Task:
    """Turn a composed row into a task; the same row always gives the same task."""
    scenario = row_to_scenario(row, manual)
    return Task(
        gym="support-desk",
        id=scenario.id,
        split=row.split or "test",
        groups=_groups(row, manual),
        public={
            "profile": "full",
            "flow": row.flow,
            "company": manual.company,
            "as_of": row.env["as_of"],
            "policy": policy_text(manual, row.flow),
            "tools": describe_tools(manual),
        },
        hidden={"scenario": scenario.to_json(), "row": row.to_json()},
        meta={
            "source": "mimesim",
            "license": "Apache-2.0",
            "schema": 1,
            "profile": "full",
            "manual": manual.name,
        },
    )


def _groups(row: Row, manual: Manual) -> tuple[str, ...]:
    """Return what must not occur in two splits: the record, and a request type held out."""
    record = f"record:{fingerprint(canonical(row.record))}"
    held_out = manual.request(row.subflow).held_out
    return (record, f"subflow:{row.subflow}") if held_out else (record,)
