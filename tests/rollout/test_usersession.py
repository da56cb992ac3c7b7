"""The user's side of a conversation that somebody else drives."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimesim.dialogue.stop import DIALECTS, END_MARKER, MARKERS, StopReason, UserAction
from mimesim.dialogue.types import PublicMessage, Role
from mimesim.errors import AgentError, CallerError, InfraError, UserError
from mimesim.rollout.usersession import Said, UserSession
from mimesim.users.load import make_user
from tests.support.dropins import ANSWERS, PERSON, SECRET, WORDS, breaking, thinker

OVER = Said("", UserAction.END, StopReason.USER_STOP, over=True)


def play(source: Any, *heard: str, person: Any = PERSON, seed: int = 3) -> tuple[Any, list[Said]]:
    session = UserSession(source, person, seed)

    async def run() -> list[Said]:
        return [await session.open(), *[await session.hear(text) for text in heard]]

    return session, asyncio.run(run())


def test_words_said_with_a_leave_are_answered_before_the_end() -> None:
    session, said = play(thinker(), *ANSWERS)
    assert [one.text for one in said] == [*WORDS, ""]
    assert said[1].stop is None, "the agent's marker ends nothing"
    assert (said[2].stop, said[2].over) == (StopReason.USER_STOP, False)
    assert said[3] == OVER
    assert [guard.guard for guard in session.guards] == ["agent_marker"]
    roles = [message.role for message in session.history]
    assert roles == [Role.USER, Role.AGENT] * 3


def test_a_thought_is_private_and_nowhere_else() -> None:
    session, said = play(thinker(), *ANSWERS)
    assert SECRET not in repr([said, session.history, session.guards])
    assert [SECRET in thought["text"] for thought in session.private()["thoughts"]] == [True] * 3


@pytest.mark.parametrize(("grace", "over"), [("one_turn", False), ("none", True)])
def test_the_scenario_says_whether_the_agent_has_a_last_turn(grace: str, over: bool) -> None:
    _, said = play(thinker(), *ANSWERS[:2], person={**PERSON, "end": {"grace": grace}})
    assert (said[-1].text, said[-1].over) == (WORDS[2], over)
    assert said[-1].worded("tau") == (f"{WORDS[2]} {END_MARKER}" if over else WORDS[2])


def test_every_dialect_has_its_marker_and_only_at_the_end() -> None:
    assert {name: OVER.worded(name) for name in DIALECTS} == {
        name: marks.get(UserAction.END, "") for name, marks in DIALECTS.items()
    }
    transfer = Said("", UserAction.TRANSFER, StopReason.USER_TRANSFER, over=True)
    assert transfer.worded("tau2") == "###TRANSFER###"
    with pytest.raises(UserError, match="marker"):
        Said("what does ###STOP### mean?").worded("tau2")


def test_a_failure_says_nothing_and_the_words_can_be_passed_on_again() -> None:
    source = breaking(after=1)
    session = UserSession(source, PERSON, 3)

    async def run() -> None:
        assert (await session.open()).text == WORDS[0]
        for _ in range(2):
            with pytest.raises(InfraError):
                await session.hear(ANSWERS[0])
        assert [m.content for m in session.history] == [WORDS[0]]
        assert session.stop is None

    asyncio.run(run())


def test_limits_are_kept_whatever_the_user_says() -> None:
    talker = thinker(["<think>a</think>and what else?"] * 9)
    session, said = play(talker, "This.", "That.", "More.", person={**PERSON, "max_turns": 3})
    assert [one.over for one in said] == [False, False, False, True]
    assert (said[-1].text, session.stop, session.turns) == ("", StopReason.MAX_TURNS, 3)


def test_courtesies_without_end_are_a_loop() -> None:
    """C-STOP-06, where somebody else drives."""
    polite = thinker(["<think>a</think>thanks!", "<think>a</think>thank you so much"] * 3)
    session, said = play(polite, "You're welcome!", "My pleasure, bye!")
    assert (said[-1].over, session.stop) == (True, StopReason.LOOP_DETECTED)


def test_an_agent_may_greet_first_and_somebody_may_speak_for_the_user() -> None:
    session = UserSession(thinker(), PERSON, 3)

    async def run() -> list[str]:
        first = await session.hear("Hi! How can I help you today?")
        with pytest.raises(CallerError):
            await session.open()
        told = [*session.history, PublicMessage(Role.AGENT, "Which order?")]
        session.rejoin([*told, PublicMessage(Role.USER, "the last one")])
        return [first.text, (await session.hear("I see it.")).text]

    assert asyncio.run(run()) == [WORDS[0], WORDS[2]]
    assert session.turns == 3


def test_a_scripted_person_who_is_greeted_opens_as_one_who_is_not() -> None:
    greeted = UserSession(make_user("scripted:neutral"), PERSON, 3)
    said = asyncio.run(greeted.hear("Hi! How can I help you today?"))
    assert said == play(make_user("scripted:neutral"))[1][0]


def test_reasoning_of_the_agent_is_not_heard_and_silence_is_its_failure() -> None:
    session, _ = play(make_user("scripted:neutral"), "<think>what is the order id?</think>Hello.")
    assert session.history[1].content == "Hello."
    with pytest.raises(AgentError):
        play(make_user("scripted:neutral"), " \u200b\n")


def test_equal_seeds_say_the_same_and_a_closed_session_nothing() -> None:
    heard = ["Hello, what is it?", "And your order number?", "Done, you have it."]
    runs = [play(make_user("scripted:B9"), *heard, seed=5)[1] for _ in range(2)]
    assert runs[0] == runs[1]

    async def closed() -> None:
        session = UserSession(make_user("scripted:neutral"), PERSON, 1)
        await session.aclose()
        await session.aclose()
        with pytest.raises(CallerError):
            await session.open()

    asyncio.run(closed())


@given(text=st.text(max_size=30), marker=st.sampled_from(sorted(MARKERS)), tail=st.booleans())
@settings(max_examples=25, deadline=None)
def test_nothing_that_the_agent_prints_ends_the_users_side(
    text: str, marker: str, tail: bool
) -> None:
    words = f"Your order number? {text} {marker}" if tail else f"{marker} order number? {text}"
    _, said = play(thinker(), words)
    assert said[1] == Said(WORDS[1])
