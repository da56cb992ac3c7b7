"""openevals: our user for `run_multiturn_simulation`, and the condition that ends it.

Tested with openevals 0.2.2.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from mimesim.integrations.visits import (
    Person,
    Visit,
    Visits,
    left_already,
    missing,
)
from mimesim.rollout.usersession import Said
from mimesim.users.base import UserSource

try:
    import openevals.simulators  # noqa: F401 - there is nothing to inherit from
except ModuleNotFoundError as error:
    raise missing("openevals", "openevals", "openevals 0.2.2") from error

Trajectory = Sequence[Mapping[str, Any]]
"""What both said so far, as openevals keeps it."""


class OpenevalsUser:
    """One scenario's user: pass it as `user` and its `stop` as `stopping_condition`.

    Each `thread_id` is a conversation of its own. openevals asks for the end after an answer of the
    agent, so words said with a leave are answered first. A failure of the user is raised there.
    In the asynchronous simulation these are `aspeak` and `astop`.

    Args:
        person: who the user is.
        user: door name or source; see `visits.Visits`, which the settings are for.
    """

    def __init__(
        self, person: Person, user: str | UserSource = "scripted:neutral", **settings: Any
    ) -> None:
        self._visits = Visits(user, **settings)
        self._person = person
        self._lock = threading.Lock()
        self._threads: dict[str, Visit] = {}
        self._spoke: dict[str, Visit] = {}  # by the id of its last message

    def __call__(
        self, trajectory: Trajectory, *, turn_counter: int = 0, thread_id: str, **rest: Any
    ) -> dict[str, Any]:
        """Return the user's next message."""
        visit = self.visit(thread_id)
        return self._message(visit, visit.turn(trajectory), trajectory, thread_id)

    async def aspeak(
        self, trajectory: Trajectory, *, turn_counter: int = 0, thread_id: str, **rest: Any
    ) -> dict[str, Any]:
        """Return the user's next message."""
        visit = self.visit(thread_id)
        said = await visit.aturn(trajectory)
        return self._message(visit, said, trajectory, thread_id)

    def stop(self, trajectory: Trajectory, *, turn_counter: int = 0, **rest: Any) -> bool:
        """Tell whether the user has nothing more to say to the agent's last words."""
        return self._of(trajectory).ahead(trajectory).over

    async def astop(self, trajectory: Trajectory, *, turn_counter: int = 0, **rest: Any) -> bool:
        """Tell whether the user has nothing more to say to the agent's last words."""
        return (await self._of(trajectory).aahead(trajectory)).over

    def visit(self, thread_id: str) -> Visit:
        """Return the conversation of a thread; its `session` holds the private side."""
        with self._lock:
            if thread_id not in self._threads:
                self._threads[thread_id] = self._visits.visit(self._person)
            return self._threads[thread_id]

    def close(self) -> None:
        """Close the user; twice is harmless."""
        self._visits.close()

    def _message(
        self, visit: Visit, said: Said, trajectory: Trajectory, thread_id: str
    ) -> dict[str, Any]:
        if not said.text:
            raise left_already(visit, "pass its `stop` as stopping_condition")
        name = f"{thread_id}-{len(trajectory)}"
        with self._lock:
            self._spoke[name] = visit
        return {"role": "user", "content": said.text, "id": name}

    def _of(self, trajectory: Trajectory) -> Visit:
        spoken = [message.get("id") for message in trajectory if message.get("role") == "user"]
        with self._lock:
            return self._spoke[str(spoken[-1])]
