"""DeepEval against the installed library: its simulator, our user, a scripted agent, no key."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

pytest.importorskip("deepeval", reason="the extra 'deepeval' is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

from deepeval.dataset import ConversationalGolden, Persona  # noqa: E402
from deepeval.simulator import ConversationSimulator  # noqa: E402
from deepeval.simulator.simulation_graph import SimulationNode  # noqa: E402
from deepeval.test_case import Turn  # noqa: E402

from mimesim.errors import InfraError  # noqa: E402
from mimesim.integrations.deepeval import DeepevalUser  # noqa: E402
from tests.support.dropins import ANSWERS, PERSON, SECRET, WORDS, answer, breaking, thinker  # noqa: E402

GOLDEN = ConversationalGolden(
    scenario=PERSON["goal"], name="teapot", persona=Persona(characteristics="a cook")
)


async def clerk(input: str, turns: list[Turn]) -> Turn:
    heard = [turn.content for turn in turns if turn.role == "user"]
    return Turn(role="assistant", content=answer(heard))


def talk(case: Any) -> list[tuple[str, str]]:
    return [(turn.role, turn.content) for turn in case.turns]


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")


def test_the_signatures_are_those_we_were_written_for() -> None:
    names = inspect.signature(ConversationSimulator.__init__).parameters
    assert {"model_callback", "simulation_graph", "stopping_controller", "simulator_model"} <= set(
        names
    )
    assert "action" in inspect.signature(SimulationNode.__init__).parameters


def test_the_user_opens_leaves_with_words_and_is_answered() -> None:
    user = DeepevalUser(thinker(), people=lambda golden: PERSON)
    (case,) = user.simulator(clerk).simulate([GOLDEN], max_user_simulations=9)
    assert talk(case) == [
        pair
        for words, reply in zip(WORDS, ANSWERS, strict=True)
        for pair in (("user", words), ("assistant", reply))
    ]
    assert SECRET not in case.model_dump_json()
    (visit,) = user._threads.values()
    assert visit.stop == "user_stop"


def test_the_cap_is_deepevals_and_conversations_stay_apart() -> None:
    user = DeepevalUser(thinker(), people=lambda golden: PERSON)
    cases = user.simulator(clerk).simulate([GOLDEN] * 6, max_user_simulations=2)
    assert [len(talk(case)) for case in cases] == [4] * 6
    assert len(user._threads) == 6


def test_turns_of_the_golden_were_said_before() -> None:
    before = [
        Turn(role="user", content="hello, it broke"),
        Turn(role="assistant", content="Which order number?"),
    ]
    golden = GOLDEN.model_copy(update={"turns": before})
    user = DeepevalUser(thinker(), people=lambda golden: PERSON)
    (case,) = user.simulator(clerk).simulate([golden], max_user_simulations=1)
    assert talk(case)[2] == ("user", WORDS[1])


def test_a_failure_of_ours_is_raised_and_never_said() -> None:
    user = DeepevalUser(breaking(after=1), people=lambda golden: PERSON)
    with pytest.raises(InfraError):
        user.simulator(clerk).simulate([GOLDEN], max_user_simulations=9)


def test_a_golden_is_a_person() -> None:
    visit = DeepevalUser("scripted:neutral").visit("t", GOLDEN)
    assert visit.session.scenario.goal == PERSON["goal"]
    assert visit.session.scenario.persona == "a cook"
