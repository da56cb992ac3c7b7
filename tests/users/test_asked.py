"""Scripted people of gyms: they answer by the script of the question, in their manner."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mimesim.dialogue.types import Reply
from mimesim.envs.turns.kind import scripted
from mimesim.errors import EnvError, InfraError, UnknownNameError, UserError
from mimesim.users.base import Script, UserRequest
from mimesim.users.load import make_user
from mimesim.users.scripted.kinds import BEHAVIORS, CHARACTERS
from mimesim.users.scripted.manner import Manner, manner

SCENARIO: dict[str, Any] = {"id": "t1", "goal": "answer", "meta": {"profile": "asked"}}


def ask(script: Script | None, kind: str = "neutral", seed: int = 1) -> Reply:
    user = make_user(f"scripted:{kind}").start(SCENARIO, seed=seed)
    return asyncio.run(user.respond(UserRequest("toy.reply", (), "?", 0, script=script)))


def test_the_script_is_called_with_the_kind_of_person() -> None:
    assert ask(scripted, "B3").utterance == "B3"
    drawn = {ask(scripted, "realistic", seed).utterance for seed in range(200)}
    assert drawn == {"neutral", *BEHAVIORS}


def test_without_a_script_nobody_makes_one_up() -> None:
    with pytest.raises(UserError, match=r"toy\.reply"):
        ask(None)


def test_a_script_that_breaks_ends_one_conversation_and_tells_no_text() -> None:
    def breaks(kind: str) -> Reply:
        raise KeyError("the secret")

    with pytest.raises(EnvError, match=r"the script of toy\.reply broke: KeyError") as caught:
        ask(breaks)
    assert "secret" not in str(caught.value)


def test_a_script_may_say_itself_that_it_failed() -> None:
    def fails(kind: str) -> Reply:
        raise InfraError("gone")

    with pytest.raises(InfraError):
        ask(fails)


@pytest.mark.parametrize("kind", ["neutral", "cooperative", "easy", "heldout-1"])
def test_ordinary_people_are_plain(kind: str) -> None:
    plain = manner(kind)
    assert plain == Manner(bank=plain.bank)
    assert plain.colored("Two nights.") == "Two nights."


def test_difficult_people_are_difficult_in_their_own_way() -> None:
    assert manner("B9") == Manner(terse=True)
    assert manner("B13") == Manner(grumpy=True)
    assert manner("B3") == Manner(evasive_once=True)
    assert manner("hostile") == Manner(terse=True, grumpy=True, evasive_once=True)


def test_a_grumble_leaves_the_fact_whole_and_differs_for_people_held_out() -> None:
    grumpy = {kind: manner(kind).colored("Two nights.") for kind in CHARACTERS}
    said = {text for text in grumpy.values() if text != "Two nights."}
    assert all(text.endswith("Two nights.") for text in said)
    assert grumpy["B4"] != grumpy["heldout-5"]
    assert len(said) == 2


def test_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="neutral"):
        manner("neutrall")
