"""Inspect against the installed library: a task with our user and a scripted model, no key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="the extra 'inspect' is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

from inspect_ai import Task, eval  # noqa: E402
from inspect_ai.agent import Agent, AgentState, agent  # noqa: E402
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import (  # noqa: E402
    ChatMessageAssistant,
    ModelAPI,
    ModelOutput,
    get_model,
    modelapi,
)
from inspect_ai.scorer import Score, Target, mean, scorer  # noqa: E402
from inspect_ai.solver import TaskState, system_message  # noqa: E402

from mimesim.integrations.inspect import STOP, conversation  # noqa: E402
from tests.support.dropins import ANSWERS, PERSON, SECRET, WORDS, answer, breaking, thinker  # noqa: E402

SAMPLES = [
    Sample(input="unused", target="served", id=f"s{n}", metadata={"scenario": {**PERSON}})
    for n in range(3)
]


@modelapi(name="clerk")
class Clerk(ModelAPI):
    """A scripted model; Inspect's own mock counts tokens with a file from the network."""

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        heard = [message.text for message in input if message.role == "user"]
        return ModelOutput.from_content(self.model_name, answer(heard))


@scorer(metrics=[mean()])
def served() -> Any:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=float("way to you" in state.messages[-3].text))

    return score


def run(solver: Any, tmp_path: Path, **settings: Any) -> Any:
    model = get_model("clerk/scripted")
    task = Task(dataset=settings.pop("dataset", SAMPLES[:1]), solver=solver, scorer=served())
    (log,) = eval(
        task,
        model=model,
        log_dir=str(tmp_path),
        display="none",
        max_samples=1,
        **settings,
    )
    return log


def test_a_task_runs_until_the_user_is_done(tmp_path: Path) -> None:
    solver = [system_message("You run a shop."), conversation(thinker())]
    log = run(solver, tmp_path, dataset=SAMPLES)
    assert log.status == "success"
    assert log.results.scores[0].metrics["mean"].value == 1.0
    for sample in log.samples:
        assert [(m.role, m.text) for m in sample.messages] == [
            ("system", "You run a shop."),
            *[
                pair
                for words, reply in zip(WORDS, ANSWERS, strict=True)
                for pair in (("user", words), ("assistant", reply))
            ],
        ]
        assert sample.store[STOP] == "user_stop"
    assert SECRET not in log.model_dump_json()


def test_an_agent_of_inspect_can_answer(tmp_path: Path) -> None:
    @agent
    def clerk() -> Agent:
        async def execute(state: AgentState) -> AgentState:
            heard = [m.text for m in state.messages if m.role == "user"]
            state.messages.append(ChatMessageAssistant(content=answer(heard)))
            return state

        return execute

    log = run(conversation(thinker(), agent=clerk()), tmp_path)
    assert [m.text for m in log.samples[0].messages if m.role == "user"] == list(WORDS)


def test_the_cap_is_told(tmp_path: Path) -> None:
    log = run(conversation(thinker(), max_turns=2), tmp_path)
    assert log.samples[0].store[STOP] == "max_turns"
    assert len(log.samples[0].messages) == 4


def test_a_failure_of_ours_is_the_samples_error_and_has_no_score(tmp_path: Path) -> None:
    log = run(conversation(breaking(after=1)), tmp_path, fail_on_error=False)
    (sample,) = log.samples
    assert "endpoint of the user is gone" in sample.error.message
    assert not sample.scores
