"""Strands evals against the installed library: our user in its loop, a scripted agent, no key."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip("strands_evals", reason="the extra 'strands' is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

from strands_evals import ActorSimulator, Case  # noqa: E402
from strands_evals.types.simulation import ActorProfile, ActorResponse  # noqa: E402

from mimesim.errors import InfraError, UsageError  # noqa: E402
from mimesim.integrations.strands import MimesimActor  # noqa: E402
from mimesim.integrations.visits import Visits  # noqa: E402
from tests.support.dropins import PERSON, SECRET, WORDS, answer, breaking, thinker  # noqa: E402


def play(actor: MimesimActor) -> tuple[list[str], ActorResponse]:
    """Run the loop of Strands' documentation."""
    heard, last = [], None
    message = actor.initial_query
    while actor.has_next():
        heard.append(message)
        result = actor.act(answer(heard))
        last = result.structured_output
        message = str(last.message)
    assert last is not None
    return heard, last


def test_the_signatures_are_those_of_its_own_simulator() -> None:
    theirs = inspect.signature(ActorSimulator.act).parameters
    assert list(theirs)[:2] == list(inspect.signature(MimesimActor.act).parameters)[:2]
    assert callable(ActorSimulator.has_next)
    assert set(ActorResponse.model_fields) == {"reasoning", "stop", "message", "stop_reason"}
    assert "case" in inspect.signature(ActorSimulator.from_case_for_user_simulator).parameters


def test_the_last_words_are_said_before_stop() -> None:
    actor = MimesimActor(PERSON, thinker())
    heard, last = play(actor)
    assert tuple(heard) == WORDS
    assert last == ActorResponse(reasoning="", stop=True, stop_reason="goal_completed")
    assert SECRET not in str(last)
    assert SECRET in str(actor.visit.session.private())
    actor.close()


def test_the_cap_is_strands_own() -> None:
    heard, last = play(MimesimActor(PERSON, thinker(), max_turns=1))
    assert (len(heard), last.stop, last.stop_reason) == (1, True, "max_turns")
    with pytest.raises(UsageError):
        MimesimActor(PERSON, thinker(), max_turns=0)


def test_a_case_and_a_profile_become_people() -> None:
    case = Case(input="hi, my pot broke", metadata={"task_description": "money is sent back"})
    actor = MimesimActor.from_case_for_user_simulator(case, "scripted:neutral")
    assert actor.initial_query == "hi, my pot broke"
    assert actor.visit.session.scenario.goal == "money is sent back"
    profile = ActorProfile(traits={"tone": "curt"}, context="a cook", actor_goal="get a refund")
    person = MimesimActor(profile).visit.session.scenario
    assert (person.goal, person.persona) == (
        "get a refund", {"tone": "curt", "background": "a cook"},
    )  # fmt: skip


def test_actors_share_a_kind_of_user() -> None:
    visits = Visits(thinker())
    for _ in range(2):
        actor = MimesimActor(PERSON, visits)
        assert len(play(actor)[0]) == 3
        actor.close()


def test_a_failure_of_ours_is_raised() -> None:
    with pytest.raises(InfraError):
        play(MimesimActor(PERSON, breaking(after=1)))
