"""LangWatch Scenario against the installed library: our user, a scripted agent and judge, no key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

scenario = pytest.importorskip("scenario", reason="the extra 'scenario' is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

from mimesim.integrations.langwatch import MimesimUser  # noqa: E402
from tests.support.dropins import ANSWERS, PERSON, SECRET, WORDS, answer, breaking, thinker  # noqa: E402


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGWATCH_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("SCENARIO_HEADLESS", "true")
    monkeypatch.delenv("LANGWATCH_API_KEY", raising=False)


class Clerk(scenario.AgentAdapter):
    def __init__(self) -> None:
        self.heard: list[str] = []

    async def call(self, input: Any) -> str:
        self.heard.append(input.last_new_user_message_str())
        return answer(self.heard)


class Judge(scenario.AgentAdapter):
    """Decides only when asked, as the end of the user makes us do."""

    role = scenario.AgentRole.JUDGE

    async def call(self, input: Any) -> Any:
        if input.judgment_request is None:
            return []
        return scenario.ScenarioResult(
            success=True, messages=input.messages, reasoning="the user was served"
        )


def play(user: Any, *others: Any, **settings: Any) -> Any:
    return asyncio.run(
        scenario.arun(
            name="teapot",
            description=PERSON["goal"],
            agents=[user, *others],
            max_turns=9,
            verbose=False,
            **settings,
        )
    )


def talk(result: Any) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in result.messages]


def test_the_contract_is_the_one_we_were_written_for() -> None:
    assert {"thread_id", "messages", "new_messages", "scenario_state", "judgment_request"} <= set(
        scenario.AgentInput.model_fields
    )
    assert {"USER", "AGENT", "JUDGE"} == {role.name for role in scenario.AgentRole}
    assert callable(scenario.judge())


def test_the_judge_decides_when_the_user_has_left() -> None:
    clerk, user = Clerk(), MimesimUser(thinker(), person=PERSON)
    result = play(user, clerk, Judge())
    assert (result.success, result.reasoning) == (True, "the user was served")
    assert tuple(clerk.heard) == WORDS
    assert [text for _, text in talk(result)] == [
        text for pair in zip(WORDS, ANSWERS, strict=True) for text in pair
    ]
    assert SECRET not in str(result)
    (thread,) = user._threads
    assert user.visit(thread).stop == "user_stop"


def test_words_of_a_script_are_the_users_own() -> None:
    script = [
        scenario.user("hello, it came broken"),
        scenario.agent(),
        scenario.user(),
        scenario.agent(),
        scenario.succeed(),
    ]
    result = play(MimesimUser(thinker(), person=PERSON), Clerk(), script=script)
    assert [text for role, text in talk(result) if role == "user"] == [
        "hello, it came broken",
        WORDS[1],
    ]


@pytest.mark.parametrize(
    ("user", "told"),
    [(breaking(after=1), "the endpoint of the user is gone"), (thinker(), "has no judge")],
)
def test_a_failure_is_an_error_and_no_verdict(user: Any, told: str) -> None:
    clerk = Clerk()
    with pytest.raises(Exception, match=told):
        play(MimesimUser(user, person=PERSON), clerk)
    assert set(clerk.heard) <= set(WORDS)


def test_the_description_is_the_person_where_none_is_given() -> None:
    user = MimesimUser("scripted:neutral")
    visit = user.visit("t", "get a refund for a kettle")
    assert visit.session.scenario.goal == "get a refund for a kettle"
