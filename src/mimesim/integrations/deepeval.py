"""DeepEval: our user in its conversation simulator.

Tested with deepeval 4.3.1. The user is the one node of the simulation graph, its leaving the
stopping controller; no simulator model is asked, so no key is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from mimesim.errors import CallerError
from mimesim.integrations.visits import Person, Visit, Visits, left_already, missing, person_of
from mimesim.users.base import UserSource

try:
    from deepeval.dataset import ConversationalGolden
    from deepeval.models import DeepEvalBaseLLM
    from deepeval.simulator import ConversationSimulator
    from deepeval.simulator.controller import end, proceed
    from deepeval.simulator.simulation_graph import SimulationNode
    from deepeval.test_case import Turn
except ModuleNotFoundError as error:
    raise missing("DeepEval", "deepeval", "deepeval 4.3.1") from error


class NoModel(DeepEvalBaseLLM):
    """Stands where DeepEval wants a simulator model, and is never asked."""

    def __init__(self) -> None:
        super().__init__("none: the user is mimesim's")

    def load_model(self, *given: Any, **named: Any) -> Any:
        """Return this object."""
        return self

    def generate(self, *given: Any, **named: Any) -> str:
        """Refuse.

        Raises:
            CallerError: always.
        """
        raise CallerError("no model plays the user: give edges and metrics a model of their own")

    async def a_generate(self, *given: Any, **named: Any) -> str:
        """Refuse; see `generate`."""
        return self.generate()

    def get_model_name(self, *given: Any, **named: Any) -> str:
        """Return what progress bars show."""
        return "mimesim user"


class DeepevalUser:
    """The users of goldens: `node` for the simulation graph, `controller` for the end.

    Args:
        user: door name or source; see `visits.Visits`, which the settings are for.
        people: makes the scenario of a golden; None = its scenario is the goal and its persona the
            persona. Expected outcomes are for metrics, no user is told.
    """

    def __init__(
        self,
        user: str | UserSource = "scripted:neutral",
        *,
        people: Callable[[ConversationalGolden], Person] | None = None,
        **settings: Any,
    ) -> None:
        self._visits = Visits(user, **settings)
        self._people = people or _person
        self._lock = threading.Lock()
        self._threads: dict[str, Visit] = {}
        self.node = SimulationNode(self.speak, name="mimesim")

    async def speak(self, turns: list[Turn], golden: ConversationalGolden, thread_id: str) -> Turn:
        """Say the user's next words.

        Raises:
            EpisodeError: the user failed.
        """
        visit = self.visit(thread_id, golden)
        said = await visit.aturn(_heard(turns))
        if not said.text:
            raise left_already(visit, "pass its `controller` as stopping_controller")
        return Turn(role="user", content=said.text)

    async def controller(
        self, turns: list[Turn], golden: ConversationalGolden, thread_id: str
    ) -> Any:
        """End the conversation once the user has nothing more to say."""
        if not turns or turns[-1].role == "user":
            return proceed()
        visit = self.visit(thread_id, golden)
        said = await visit.aahead(_heard(turns))
        return end(visit.stop) if said.over else proceed()

    def visit(self, thread_id: str, golden: ConversationalGolden) -> Visit:
        """Return the conversation of a thread; its `session` holds the private side."""
        with self._lock:
            if thread_id not in self._threads:
                self._threads[thread_id] = self._visits.visit(self._people(golden))
            return self._threads[thread_id]

    def simulator(self, model_callback: Callable[..., Any], **settings: Any) -> Any:
        """Return a `ConversationSimulator` of DeepEval with this user."""
        return ConversationSimulator(
            model_callback,
            simulation_graph=self.node,
            stopping_controller=self.controller,
            simulator_model=NoModel(),
            **settings,
        )

    def close(self) -> None:
        """Close the user; twice is harmless."""
        self._visits.close()


def _person(golden: ConversationalGolden) -> Person:
    persona = golden.persona.characteristics if golden.persona is not None else ""
    return person_of(golden.scenario, name=golden.name or "", persona=persona or "")


def _heard(turns: list[Turn]) -> list[dict[str, str]]:
    return [{"role": turn.role, "content": turn.content} for turn in turns]
