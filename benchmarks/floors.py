"""Ends of the scale of every gym of ours -> src/mimesim/envs/agents/floors.json.

    python -m benchmarks.floors

Run it when tasks, rewards or scripted parties of a gym change on purpose; a test compares.
"""

from __future__ import annotations

import asyncio
from typing import Any

from mimesim import jsonio
from mimesim.envs.agents.floors import STORED, TASKS, USER, floors
from mimesim.envs.load import REGISTRY, load_gym, load_tasks
from mimesim.errors import EnvironmentFault
from mimesim.users.load import make_user


def measured() -> dict[str, Any]:
    """Return the floors of every profile whose tasks can be made here."""
    found = {}
    for name in REGISTRY.builtin:
        for profile in load_gym(name).profiles:
            try:
                tasks = load_tasks(name, profile=profile, seed=0, count=TASKS)
            except EnvironmentFault:  # a user's copy of foreign data
                continue
            found[f"{name}/{profile}"] = asyncio.run(floors(tasks, make_user(USER))).to_json()
    return found


def main() -> None:
    """Measure and write."""
    body = {"schema": "mimesim.floors/1", "user": USER, "judge": "rule", "gyms": measured()}
    jsonio.write_json(STORED, body)


if __name__ == "__main__":
    main()
