"""MLflow: our user as the simulated user of its conversation simulator.

Tested with mlflow 3.17.2; the simulator exists from 3.10 on. MLflow ends a conversation by asking a
model whether the goal is reached, and has no field in which a user could leave. `UserSimulator` is
its simulator with that one question answered by our user, so it needs no model and no key.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from mimesim.integrations.visits import (
    Person,
    Visit,
    Visits,
    left_already,
    missing,
    person_of,
)
from mimesim.users.base import UserSource

try:
    from mlflow.genai.simulators import (
        BaseSimulatedUserAgent,
        ConversationSimulator,
        SimulatorContext,
    )
except ModuleNotFoundError as error:
    raise missing("MLflow", "mlflow", "mlflow 3.17.2") from error

_HERE = threading.local()
"""`user`: whose conversation this thread plays; MLflow plays each in one thread."""


class MimesimUser(BaseSimulatedUserAgent):
    """The user of one conversation: MLflow makes one for each.

    Args:
        visits: the kind of user; None = scripted, neutral.
        people: goal of a test case -> the whole scenario, where goal, persona and guidelines of
            the test case say too little.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        visits: Visits | None = None,
        people: Mapping[str, Person] | None = None,
        **inference_params: Any,
    ) -> None:
        super().__init__(model, **inference_params)
        self.visit: Visit | None = None
        self.failure: Exception | None = None
        self._visits = visits or Visits()
        self._people = people or {}
        _HERE.user = self

    def generate_message(self, context: SimulatorContext) -> str:
        """Say the user's next words.

        Raises:
            EpisodeError: the user failed.
            CallerError: the user has left; MLflow's own simulator ends the conversation with it.
        """
        try:
            if self.visit is None:
                self.visit = self._visits.visit(self._person(context))
            said = self.visit.turn(context.conversation_history)
        except Exception as error:
            self.failure = error
            raise
        if not said.text:
            raise left_already(self.visit, "use UserSimulator, which asks for the end")
        return said.text

    def left(self, history: list[dict[str, Any]]) -> bool:
        """Tell whether the user has nothing more to say to the agent's last words."""
        assert self.visit is not None
        try:
            return self.visit.ahead(history).over
        except Exception as error:
            self.failure = error
            raise

    def _person(self, context: SimulatorContext) -> Person:
        known = self._people.get(context.goal)
        if known is not None:
            return known
        guidelines = context.simulation_guidelines or ""
        return person_of(context.goal, persona=context.persona or "", guidelines=guidelines)


class UserSimulator(ConversationSimulator):
    """MLflow's simulator with our user, who also decides the end.

    A conversation whose user failed has no traces, and its error is logged; MLflow would keep what
    was said before as if it were whole.

    Args:
        test_cases: as MLflow has them; `goal`, `persona` and `simulation_guidelines` are read.
        user: door name or source, or `Visits`.
        people: goal -> scenario; see `MimesimUser`.
        max_turns: of one conversation.
    """

    def __init__(
        self,
        test_cases: Any,
        user: str | UserSource | Visits = "scripted:neutral",
        *,
        people: Mapping[str, Person] | None = None,
        max_turns: int = 10,
        **settings: Any,
    ) -> None:
        self.visits = user if isinstance(user, Visits) else Visits(user, **settings)
        super().__init__(
            test_cases,
            max_turns=max_turns,
            user_model="mimesim:/user",
            user_agent_class=MimesimUser,
            visits=self.visits,
            people=people,
        )

    def _run_conversation(self, *given: Any, **named: Any) -> list[str]:
        traces: list[str] = super()._run_conversation(*given, **named)
        failure = _HERE.user.failure
        if failure is not None:
            raise failure
        return traces

    def _check_goal_achieved(
        self, conversation_history: list[dict[str, Any]], last_response: str, goal: str
    ) -> bool:
        return bool(_HERE.user.left(conversation_history))
