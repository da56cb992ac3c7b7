"""What the drop-ins share: people, seeds, threads, what the agent's messages amount to."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from mimesim.errors import AgentError, CallerError, InfraError
from mimesim.integrations.visits import Visits, person_of, talk_of, text_of
from tests.support.dropins import ANSWERS, PERSON, WORDS, breaking, thinker


def test_a_visit_can_be_looked_at_ahead_once() -> None:
    visits = Visits(thinker())
    visit = visits.visit(PERSON)
    assert visit.turn(None).text == WORDS[0]
    heard = [{"role": "user", "content": WORDS[0]}, {"role": "assistant", "content": ANSWERS[0]}]
    assert visit.ahead(heard).text == WORDS[1]
    assert visit.turn(heard).text == WORDS[1]
    assert visit.session.turns == 2
    visits.close()
    visits.close()
    with pytest.raises(CallerError):
        visits.visit(PERSON)


def test_twenty_conversations_at_once_are_twenty_people_and_seeded() -> None:
    def opening(number: int) -> list[str]:
        visits = Visits("scripted:realistic", seed=4)
        visit = visits.visit({**PERSON, "id": f"p{number}"})
        try:
            return [visit.turn(None).text, visit.turn("And your order number?").text]
        finally:
            visits.close()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(opening, range(20))) == [opening(n) for n in range(20)]


def test_trials_of_one_scenario_have_seeds_of_their_own() -> None:
    visits = Visits("scripted:neutral", seed=4)
    seeds = [visits.visit(PERSON).session.seed for _ in range(3)]
    assert len(set(seeds)) == 3
    assert Visits("scripted:neutral", seed=4).visit(PERSON).session.seed == seeds[0]


def test_a_failure_is_raised_on_either_side_of_the_loop() -> None:
    visit = Visits(breaking(after=0)).visit(PERSON)
    with pytest.raises(InfraError):
        visit.turn(None)
    with pytest.raises(InfraError):
        asyncio.run(visit.aturn(None))


def test_tool_traffic_is_not_heard_and_parts_are_texts() -> None:
    call = {"id": "1", "function": {"name": "look", "arguments": "{}"}}
    before, heard = talk_of(
        [
            {"role": "system", "content": "be kind"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "secret rows"},
            {"role": "assistant", "content": [{"type": "text", "text": "It is Monday."}]},
            {"role": "assistant", "content": "Anything else?"},
        ]
    )
    assert [message.content for message in before] == ["Hello.", "hi"]
    assert heard == "It is Monday.\n\nAnything else?"
    assert talk_of([{"role": "system", "content": "x"}]) == ([], None)
    with pytest.raises(AgentError, match="input_audio"):
        text_of([{"type": "input_audio", "input_audio": {}}])


def test_a_harness_description_becomes_a_person() -> None:
    person = person_of("get a refund", persona="a cook", guidelines=["be short", "no thanks"])
    assert (person.id, person.persona) == ("get a refund", "a cook")
    assert person.style == {"guidelines": "be short\nno thanks"}
    with pytest.raises(ValueError, match="marker"):
        person_of("say ###STOP### at once")


ABSENT = """
import importlib, importlib.util
for module, package in {pairs!r}:
    if importlib.util.find_spec(package) is None:
        try:
            importlib.import_module("mimesim.integrations." + module)
        except ImportError as error:
            print(module, type(error).__name__, error, sep="|")
        else:
            print(module, "imported", "", sep="|")
"""
"""Imports what is not installed, in a process of its own: no stand-in is on the path there."""


def test_a_drop_in_without_its_library_says_what_to_install() -> None:
    pairs = [
        ("deepeval", "deepeval"),
        ("inspect", "inspect_ai"),
        ("langwatch", "scenario"),
        ("mlflow", "mlflow"),
        ("nemo_gym", "nemo_gym"),
        ("openevals", "openevals"),
        ("strands", "strands_evals"),
        ("tau_bench", "tau_bench"),
        ("tau2", "tau2"),
        ("verifiers_user", "verifiers"),
    ]
    program = [sys.executable, "-W", "ignore", "-c", ABSENT.format(pairs=pairs)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    rows = [line.split("|", 2) for line in done.stdout.splitlines()]
    assert rows, "tau2 and NeMo-Gym are never both here: they need different Pythons"
    for module, kind, told in rows:
        assert kind == "MissingExtraError", (module, kind, told)
        assert "pip install" in told or "checkout" in told
