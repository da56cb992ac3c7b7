"""What an agent reads of the others."""

from __future__ import annotations

import pytest

from mimesim.dialogue.types import PublicMessage, Role
from mimesim.envs.agents.prompting import feedback_text, opening_text
from mimesim.envs.load import gym_spec


@pytest.mark.parametrize(
    ("gym", "label"),
    [
        ("support-desk", "customer"),
        ("tau", "customer"),
        ("travel", "traveler"),
        ("turtle", "storyteller"),
        ("telepathy", "person"),
    ],
)
def test_the_person_is_called_what_it_is(gym: str, label: str) -> None:
    spec = gym_spec(gym)
    assert opening_text("hello", spec) == f"{label}: hello"
    assert feedback_text([PublicMessage(Role.USER, "yes")], spec) == f"{label}: yes"


def test_where_nobody_is_talked_to_the_opening_is_a_note() -> None:
    assert opening_text("The rule is set.", gym_spec("function")) == "note: The rule is set."
