"""tau2-bench: the contract on a stand-in, whole simulations where `MIMESIM_TAU2_PATH` names a checkout."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = os.environ.get("MIMESIM_TAU2_PATH", "")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
_SOURCE = str(Path(CHECKOUT) / "src") if CHECKOUT else str(Path(__file__).parent / "stand_ins")
sys.path.insert(0, _SOURCE)
pytestmark = pytest.mark.filterwarnings("ignore")
warnings.simplefilter("ignore")  # while it is collected; the library warns on import

from tau2.data_model.message import AssistantMessage, ToolMessage, UserMessage  # noqa: E402
from tau2.registry import registry  # noqa: E402
from tau2.user.user_simulator_base import HalfDuplexUser  # noqa: E402

from mimesim.dialogue.stop import END_MARKER  # noqa: E402
from mimesim.errors import InfraError, UsageError  # noqa: E402
from mimesim.integrations import tau2  # noqa: E402
from mimesim.integrations.tau2 import MimesimUser, main, register, scenario_of  # noqa: E402
from tests.support.dropins import ANSWERS, SECRET, WORDS, breaking, thinker  # noqa: E402

GREETING = "Hi! How can I help you today?"
SCENARIO = """Persona:
\tA cook.
Instructions:
\tDomain: retail
\tReason for call:
\t\tYou want the money for a cracked teapot.
\tKnown info:
\t\tYour order number is 7301188264.
\tUnknown info:
\t\tYour e-mail address.
\tTask instructions:
\t\tBe short.
\t\tDo not thank."""
THINKING = f"{__name__}:thinking"


def thinking(name: str, *, options: Any = None) -> Any:
    return thinker()


def gone(name: str, *, options: Any = None) -> Any:
    return breaking(after=0)


def said_to(user: MimesimUser, *texts: str, history: list[Any] | None = None) -> list[UserMessage]:
    state = user.get_init_state(history)
    answers = []
    for text in texts:
        heard = AssistantMessage(role="assistant", content=text)
        answer, state = user.generate_next_message(heard, state)
        answers.append(answer)
    return answers


def test_the_signatures_are_those_of_the_half_duplex_user() -> None:
    assert issubclass(MimesimUser, HalfDuplexUser)
    assert list(inspect.signature(MimesimUser.__init__).parameters)[1:] == [
        "instructions", "tools", "llm", "llm_args",
    ]  # fmt: skip
    for name in ("get_init_state", "generate_next_message", "set_seed"):
        theirs = list(inspect.signature(getattr(HalfDuplexUser, name)).parameters)
        assert theirs == list(inspect.signature(getattr(MimesimUser, name)).parameters)


def test_the_scenario_is_read_by_its_headings() -> None:
    person = scenario_of(SCENARIO)
    assert person.goal == "You want the money for a cracked teapot."
    assert (person.persona, person.unknown) == ("A cook.", ("Your e-mail address.",))
    assert person.facts == {"known": "Your order number is 7301188264."}
    assert person.style == {"guidelines": "Be short.\nDo not thank."}
    assert (
        scenario_of("Persona:\n\tA cook.\nInstructions:\n\tBuy tea: two.").goal == "Buy tea: two."
    )
    assert scenario_of("Buy tea.").goal == "Buy tea."


def test_words_and_end_are_two_messages_and_each_holds_one_thing() -> None:
    user = MimesimUser(instructions=SCENARIO, llm=THINKING)
    user.set_seed(7)
    answers = said_to(user, GREETING, *ANSWERS)
    assert [answer.content for answer in answers] == [*WORDS, END_MARKER]
    assert [MimesimUser.is_stop(answer) for answer in answers] == [False, False, False, True]
    assert all(answer.tool_calls is None and answer.cost == 0.0 for answer in answers)
    assert SECRET not in str([answer.model_dump() for answer in answers])
    assert answers[-1].raw_data["stop"] == "user_stop"
    assert answers[-1].raw_data["user"] == "scripted:thinker"
    assert user.visit is not None
    assert user.visit.session.seed == 7


def test_a_task_may_begin_with_messages() -> None:
    history = [UserMessage(role="user", content="I need a task.")]
    user = MimesimUser(instructions=SCENARIO, llm=THINKING)
    assert said_to(user, ANSWERS[0], history=history)[0].content == WORDS[1]


def test_what_cannot_be_played_is_refused_and_failures_are_raised() -> None:
    with pytest.raises(UsageError, match="tools"):
        MimesimUser(instructions=SCENARIO, tools=[object()], llm=THINKING)
    MimesimUser(SCENARIO, [object()], THINKING, {"user_tools": "ignore"})
    with pytest.raises(UsageError, match="user-llm"):
        MimesimUser(instructions=SCENARIO)
    with pytest.raises(UsageError, match=r"gpt-4\.1"):
        MimesimUser(instructions=SCENARIO, llm="gpt-4.1")
    with pytest.raises(InfraError):
        said_to(MimesimUser(instructions=SCENARIO, llm=f"{__name__}:gone"), GREETING)
    user = MimesimUser(instructions=SCENARIO, llm="scripted:neutral", llm_args={"temperature": 0.0})
    result = ToolMessage(id="1", role="tool", content="ok", requestor="user")
    with pytest.raises(UsageError, match="tool"):
        user.generate_next_message(result, user.get_init_state())


def test_the_user_is_registered_once() -> None:
    register()
    register()
    assert registry.get_users().count("mimesim") == 1


# --------------------------------------------------------------------- with a checkout

real = pytest.mark.skipif(not CHECKOUT, reason="MIMESIM_TAU2_PATH names no checkout")


def simulate(domain: str, task: Any, user: str, seed: int = 3) -> Any:
    """Run tau2's orchestrator with an agent that does the gold actions and then reports."""
    from tau2.agent.base_agent import HalfDuplexAgent
    from tau2.data_model.message import ToolCall
    from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation
    from tau2.orchestrator.orchestrator import Orchestrator
    from tau2.runner.build import build_environment, build_user

    class Gold(HalfDuplexAgent):
        def get_init_state(self, message_history: Any = None) -> dict[str, int]:
            return {"done": 0, "said": 0}

        def set_seed(self, seed: int) -> None:
            return None

        def generate_next_message(self, message: Any, state: Any) -> Any:
            criteria = task.evaluation_criteria
            actions = [a for a in criteria.actions or [] if a.requestor == "assistant"]
            if state["done"] < len(actions):
                action = actions[state["done"]]
                state["done"] += 1
                call = ToolCall(id=action.action_id, name=action.name, arguments=action.arguments)
                return AssistantMessage(role="assistant", tool_calls=[call], cost=0.0), state
            told = " ".join(criteria.communicate_info or [])
            texts = [f"That is done: {told} {END_MARKER}", "Bye!", "Goodbye."]
            text = texts[min(state["said"], 2)]
            state["said"] += 1
            return AssistantMessage(role="assistant", content=text, cost=0.0), state

    register()
    environment = build_environment(domain)
    options = {"user_tools": "ignore"}
    person = build_user("mimesim", environment, task, llm=user, llm_args=options)
    agent = Gold(environment.get_tools(), environment.get_policy())
    run = Orchestrator(domain, agent, person, environment, task, seed=seed, max_steps=60).run()
    info = evaluate_simulation(
        simulation=run,
        task=task,
        evaluation_type=EvaluationType.ENV,
        solo_mode=False,
        domain=domain,
    )
    return run, info, person


@real
@pytest.mark.parametrize("domain", ["mock", "retail"])
def test_twenty_simulations_at_once_end_by_the_user(domain: str) -> None:
    from tau2.runner.helpers import load_tasks

    every = [task for task in load_tasks(domain) if "user_tools" not in task.id]
    tasks = [task for task in every if task.evaluation_criteria.actions][:20]
    task_of = {task.id: task for task in tasks}
    with ThreadPoolExecutor(5) as pool:
        runs = list(pool.map(lambda task: simulate(domain, task, "scripted:neutral"), tasks))
    for run, info, person in runs:
        assert run.termination_reason.value == "user_stop"
        assert info.reward == 1.0, run.task_id
        spoken = [m for m in run.messages if m.role == "user" and m.raw_data]
        assert spoken[-1].content == END_MARKER
        assert all(END_MARKER not in m.content for m in spoken[:-1])
        history = task_of[run.task_id].initial_state
        assert run.user_cost == 0.0 or (history and history.message_history)
        thoughts = [one["text"] for one in person.visit.session.private()["thoughts"]]
        assert thoughts
        assert not any(thought in run.model_dump_json() for thought in thoughts)
    print(f"{domain}: {len(runs)} of {len(runs)} ended by the user with reward 1")  # noqa: T201


@real
def test_equal_seeds_say_the_same() -> None:
    from tau2.runner.helpers import load_tasks

    task = load_tasks("mock")[0]
    runs = [simulate("mock", task, "scripted:realistic", seed=5)[0] for _ in range(2)]
    words = [[m.content for m in run.messages if m.role == "user"] for run in runs]
    assert words[0] == words[1]


@real
def test_a_failure_of_ours_is_no_result() -> None:
    from tau2.runner.helpers import load_tasks

    with pytest.raises(InfraError):
        simulate("mock", load_tasks("mock")[0], f"{__name__}:gone")


@real
def test_its_command_knows_our_user(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "--help"])
    assert end.value.code == 0
    assert "mimesim" in capsys.readouterr().out


@real
def test_its_gym_has_our_user() -> None:
    pytest.importorskip("gymnasium")
    env = tau2.agent_gym("mock", "create_task_1", "scripted:neutral", {"user_tools": "ignore"})
    seen, _ = env.reset(seed=1)
    assert "user:" in seen
    env.close()
