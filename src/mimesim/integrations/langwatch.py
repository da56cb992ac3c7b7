"""LangWatch Scenario: our user in the place of its user simulator.

Tested with langwatch-scenario 1.6.0. A user that leaves is no verdict: the judge of the scenario is
asked for one then.
"""

from __future__ import annotations

from typing import Any

from mimesim.errors import CallerError
from mimesim.integrations.visits import Person, Visit, Visits, missing, person_of
from mimesim.users.base import UserSource

try:
    import scenario
except ModuleNotFoundError as error:
    raise missing("LangWatch Scenario", "scenario", "langwatch-scenario 1.6.0") from error


class MimesimUser(scenario.AgentAdapter):
    """The user of a scenario; every thread is a conversation of its own.

    Args:
        user: door name or source; see `visits.Visits`, which the settings are for.
        person: who the user is; None = what the scenario's description says.
    """

    role = scenario.AgentRole.USER
    name = "mimesim"

    def __init__(
        self,
        user: str | UserSource = "scripted:neutral",
        *,
        person: Person | None = None,
        **settings: Any,
    ) -> None:
        self._visits = Visits(user, **settings)
        self._person = person
        self._threads: dict[str, Visit] = {}

    async def call(self, input: scenario.AgentInput) -> Any:
        """Say the user's next words, or have the judge decide once the user has left.

        Raises:
            EpisodeError: the user failed; Scenario ends the run with an error, which is no verdict.
            CallerError: the user has left and nobody is there to judge.
        """
        state = input.scenario_state
        said = await self.visit(input.thread_id, state.description).aturn(input.messages)
        if said.text:
            return said.text
        if not any(_judges(agent) for agent in state._executor.agents):
            raise CallerError(f"the user has left ({said.stop}), and the scenario has no judge")
        return await scenario.judge()(state)

    def visit(self, thread_id: str, description: str = "") -> Visit:
        """Return the conversation of a thread; its `session` holds the private side."""
        if thread_id not in self._threads:
            person = person_of(description) if self._person is None else self._person
            self._threads[thread_id] = self._visits.visit(person)
        return self._threads[thread_id]

    def close(self) -> None:
        """Close the user; twice is harmless."""
        self._visits.close()


def _judges(agent: Any) -> bool:
    return bool(agent.role == scenario.AgentRole.JUDGE)
