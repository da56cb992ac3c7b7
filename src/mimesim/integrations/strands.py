"""Strands evals: our user where an `ActorSimulator` stands, with `act` and `has_next`.

Tested with strands-agents-evals 1.7.0.
"""

from __future__ import annotations

from typing import Any

from mimesim.dialogue.stop import StopReason
from mimesim.errors import UsageError
from mimesim.integrations.visits import Person, Visits, missing, person_of
from mimesim.rollout.usersession import Said
from mimesim.scenarios.types import Scenario
from mimesim.users.base import UserSource

try:
    from strands.agent.agent_result import AgentResult
    from strands.telemetry.metrics import EventLoopMetrics
    from strands_evals import Case
    from strands_evals.types.simulation import ActorProfile, ActorResponse
except ModuleNotFoundError as error:
    raise missing("Strands evals", "strands", "strands-agents-evals 1.7.0") from error

_CUT = (StopReason.MAX_TURNS, StopReason.LOOP_DETECTED)


class MimesimActor:
    """One person in one conversation, for a loop over `has_next` and `act`.

    The person opens: say `initial_query` to the agent first. Words said with a leave come with
    `stop` false, so that the agent answers them; the next `act` brings `stop` and no message. The
    field for reasoning stays empty: a thought is private.

    Args:
        person: who the user is; an `ActorProfile` of Strands is read, too.
        user: door name or source, or `visits.Visits`, whose settings the others are; many actors
            share one.
        initial_query: the first words, said exactly; None = the person finds its own.
        max_turns: calls of `act` after which the conversation is cut.
    """

    def __init__(
        self,
        person: Person | ActorProfile,
        user: str | UserSource | Visits = "scripted:neutral",
        *,
        initial_query: str | None = None,
        max_turns: int = 10,
        **settings: Any,
    ) -> None:
        if max_turns < 1:
            raise UsageError(f"max_turns is {max_turns}", expected="1 or more")
        if isinstance(person, ActorProfile):
            person = person_of(
                person.actor_goal, persona={**person.traits, "background": person.context}
            )
        value = person.to_json() if isinstance(person, Scenario) else dict(person)
        self._own = not isinstance(user, Visits)
        self._visits = user if isinstance(user, Visits) else Visits(user, **settings)
        if initial_query is not None:
            value["opening"] = initial_query
        self.visit = self._visits.visit(value)
        self.stop = False
        self._max_turns = max_turns
        self._turns = 0
        self.initial_query = self.visit.turn(None).text

    @classmethod
    def from_case_for_user_simulator(
        cls, case: Case, user: str | UserSource | Visits = "scripted:neutral", **settings: Any
    ) -> MimesimActor:
        """Make the person of a case: its input is the first message, its description the goal."""
        goal = str((case.metadata or {}).get("task_description") or case.input)
        person = person_of(goal, name=case.name or "")
        return cls(person, user, initial_query=str(case.input), **settings)

    def act(self, agent_message: str, **rest: Any) -> AgentResult:
        """Answer what the agent said.

        Raises:
            EpisodeError: the user failed, or the agent's message shows nothing.
        """
        said = self.visit.turn(agent_message)
        self._turns += 1
        reason = self._reason(said)
        self.stop = reason is not None
        answer = ActorResponse(
            reasoning="", stop=self.stop, message=said.text or None, stop_reason=reason
        )
        content = [{"text": said.text}] if said.text else []
        return AgentResult(
            stop_reason="end_turn",
            message={"role": "assistant", "content": content},
            metrics=EventLoopMetrics(),
            state={},
            structured_output=answer,
        )

    def has_next(self) -> bool:
        """Tell whether the conversation goes on."""
        return not self.stop

    def close(self) -> None:
        """Close the user, unless others share it; twice is harmless."""
        if self._own:
            self._visits.close()

    def _reason(self, said: Said) -> str | None:
        if said.over:
            return "max_turns" if said.stop in _CUT else "goal_completed"
        return "max_turns" if self._turns >= self._max_turns else None
