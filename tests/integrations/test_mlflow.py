"""MLflow against the installed library: its simulator, our user, a scripted agent, no key."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

mlflow = pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

from mlflow.genai.simulators import (  # noqa: E402
    BaseSimulatedUserAgent,
    ConversationSimulator,
    SimulatorContext,
)

from mimesim.integrations.mlflow import MimesimUser, UserSimulator  # noqa: E402
from mimesim.integrations.visits import Visits  # noqa: E402
from tests.support.dropins import PERSON, SECRET, WORDS, answer, breaking, thinker  # noqa: E402

CASE = {"goal": PERSON["goal"]}
PEOPLE = {PERSON["goal"]: PERSON}


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/m.db")


class Clerk:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def __call__(self, messages: list[dict[str, Any]], **rest: Any) -> dict[str, Any]:
        self.heard = [m["content"] for m in messages if m["role"] == "user"]
        return {"choices": [{"message": {"role": "assistant", "content": answer(self.heard)}}]}


def test_the_hooks_are_those_we_override() -> None:
    assert list(inspect.signature(ConversationSimulator._check_goal_achieved).parameters) == [
        "self", "conversation_history", "last_response", "goal",
    ]  # fmt: skip
    assert "user_agent_class" in inspect.signature(ConversationSimulator.__init__).parameters
    assert set(inspect.signature(SimulatorContext).parameters) == {
        "goal", "persona", "conversation_history", "turn", "simulation_guidelines",
    }  # fmt: skip
    assert issubclass(MimesimUser, BaseSimulatedUserAgent)
    assert callable(ConversationSimulator._run_conversation)


def test_our_user_decides_the_end_and_no_model_is_asked() -> None:
    clerk = Clerk()
    simulator = UserSimulator([CASE], thinker(), people=PEOPLE)
    (traces,) = simulator.simulate(clerk)
    assert tuple(clerk.heard) == WORDS
    assert len(traces) == 3
    assert SECRET not in str([trace.to_dict() for trace in traces])


def test_a_conversation_whose_user_failed_has_no_traces() -> None:
    good = {"goal": "another teapot"}

    class Mixed:
        identity = thinker().identity

        def start(self, scenario: Any, *, seed: int) -> Any:
            kind = breaking(after=1) if scenario["id"] == "teapot" else thinker()
            return kind.start(scenario, seed=seed)

        async def aclose(self) -> None:
            return None

    people = {**PEOPLE, good["goal"]: {**PERSON, "id": "other", "goal": good["goal"]}}
    failed, whole = UserSimulator([CASE, good], Mixed(), people=people).simulate(Clerk())
    assert (len(failed), len(whole)) == (0, 3)


def test_goal_persona_and_guidelines_are_the_person() -> None:
    user = MimesimUser("openai:/none", visits=Visits("scripted:neutral"))
    user.generate_message(SimulatorContext("get a refund", "a cook", [], 0, ["be short"]))
    assert user.visit is not None
    person = user.visit.session.scenario
    assert (person.goal, person.persona, person.style) == (
        "get a refund", "a cook", {"guidelines": "be short"},
    )  # fmt: skip
