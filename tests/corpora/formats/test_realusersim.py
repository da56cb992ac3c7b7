"""RealUserSim: goal, hidden profile, both spellings of the fields, profiles without a chat."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.corpora.base import HumanTurn, Unfit
from mimesim.corpora.formats.realusersim import FORMAT

ROW: dict[str, Any] = {
    "test_id": 4,
    "domain": "travel_hospitality",
    "task_type": "planning",
    "user_ip": "ip3",
    "conversation_hash": "h4",
    "original_messages": [
        {"role": "user", "content": "2 nights in the hills"},
        {"role": "assistant", "content": "Which hills?"},
    ],
    "user_profile": {
        "demographics": {"age": {"value": "25-34"}, "income": {"value": None}, "gender": "f"},
        "linguistic_profile": "Write without any capital letters.",
    },
    "problem_desc": "The user plans a short trip.",
    "solution_conditions": "A plan with two nights is given.",
}


def test_a_case() -> None:
    (found,) = FORMAT.convert(ROW, {})
    assert found.id == "realusersim/h4"
    assert found.turns == (
        HumanTurn("user", "2 nights in the hills"),
        HumanTurn("agent", "Which hills?"),
    )
    assert found.goal == "The user plans a short trip."
    assert found.hidden["demographics"] == {"age": "25-34", "gender": "f"}
    assert found.hidden["conditions"] == "A plan with two nights is given."
    assert (found.user_key, found.group_keys) == ("ip3", ("ip3",))
    assert FORMAT.info.evaluation_only
    assert FORMAT.claims(ROW)


def test_the_other_spelling() -> None:
    other = {key: value for key, value in ROW.items() if key != "conversation_hash"}
    other |= {"problem_desc": "", "user_goal": "g", "solution_conditions": None, "key_context": "k"}
    (found,) = FORMAT.convert(other, {})
    assert (found.id, found.goal) == ("realusersim/travel_hospitality/4", "g")
    assert found.hidden["conditions"] == "k"


def test_what_is_no_case() -> None:
    with pytest.raises(Unfit, match="no_dialogue"):
        list(FORMAT.convert({"user_ip": "ip3", "linguistic_profile": "x"}, {}))
    with pytest.raises(Unfit, match="original_messages, user_profile"):
        list(FORMAT.convert({"test_id": 1}, {}))
    assert not FORMAT.claims({"linguistic_profile": "x"})
