"""openevals against the installed library: our user, a scripted app, no key."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

pytest.importorskip("openevals.simulators", reason="the extra 'openevals' is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

from openevals.simulators import (  # noqa: E402
    run_multiturn_simulation,
    run_multiturn_simulation_async,
)

from mimesim.errors import CallerError, InfraError  # noqa: E402
from mimesim.integrations.openevals import OpenevalsUser  # noqa: E402
from tests.support.dropins import ANSWERS, PERSON, SECRET, WORDS, answer, breaking, thinker  # noqa: E402


@pytest.fixture(autouse=True)
def _untraced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "false")


class App:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def __call__(self, message: Any, *, thread_id: str, **rest: Any) -> dict[str, Any]:
        self.heard.append(message["content"])
        return {"role": "assistant", "content": answer(self.heard)}


def test_the_signatures_are_those_we_were_written_for() -> None:
    for run in (run_multiturn_simulation, run_multiturn_simulation_async):
        names = set(inspect.signature(inspect.unwrap(run)).parameters)
        assert {"app", "user", "max_turns", "stopping_condition", "thread_id"} <= names


def test_the_user_opens_leaves_with_words_and_is_answered() -> None:
    app, person = App(), OpenevalsUser(PERSON, thinker())
    result = run_multiturn_simulation(
        app=app, user=person, stopping_condition=person.stop, max_turns=9, thread_id="t1"
    )
    said = [(m["role"], m["content"]) for m in result["trajectory"]]
    assert said == [
        pair
        for words, reply in zip(WORDS, ANSWERS, strict=True)
        for pair in (("user", words), ("assistant", reply))
    ]
    assert tuple(app.heard) == WORDS
    assert SECRET not in str(result)
    assert person.visit("t1").stop == "user_stop"


def test_conversations_at_once_stay_apart() -> None:
    person = OpenevalsUser(PERSON, thinker())

    async def one(name: str) -> int:
        app = App()

        async def reply(message: Any, *, thread_id: str, **rest: Any) -> Any:
            return app(message, thread_id=thread_id)

        done = await run_multiturn_simulation_async(
            app=reply,
            user=person.aspeak,
            stopping_condition=person.astop,
            max_turns=9,
            thread_id=name,
        )
        return len(done["trajectory"])

    async def many() -> list[int]:
        return await asyncio.gather(*(one(f"t{n}") for n in range(10)))

    assert asyncio.run(many()) == [6] * 10


def test_a_failure_of_ours_is_raised_and_never_said() -> None:
    app, person = App(), OpenevalsUser(PERSON, breaking(after=1))
    with pytest.raises(InfraError):
        run_multiturn_simulation(app=app, user=person, stopping_condition=person.stop, max_turns=9)
    assert app.heard == [WORDS[0]]


def test_without_its_condition_a_user_who_left_is_told() -> None:
    person = OpenevalsUser(PERSON, thinker())
    with pytest.raises(CallerError, match="stopping_condition"):
        run_multiturn_simulation(app=App(), user=person, max_turns=9)
