"""PRISM: the line that the person followed, the replies passed over, rows of the survey."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.corpora.base import HumanTurn, Unfit
from mimesim.corpora.formats.prism import FORMAT

ROW: dict[str, Any] = {
    "conversation_id": "c1",
    "user_id": "u1",
    "conversation_type": "unguided",
    "opening_prompt": "is tea better",
    "conversation_history": [
        {"turn": 0, "role": "user", "content": "is tea better"},
        {"turn": 0, "role": "model", "content": "Yes.", "if_chosen": False, "score": 10},
        {"turn": 0, "role": "model", "content": "It depends.", "if_chosen": True, "score": 80},
        {"turn": 1, "role": "user", "content": "on what"},
        {"turn": 1, "role": "model", "content": "On you.", "if_chosen": True, "score": 50},
    ],
}


def test_the_line_that_was_followed() -> None:
    (found,) = FORMAT.convert(ROW, {})
    assert found.turns == (
        HumanTurn("user", "is tea better"),
        HumanTurn("agent", "It depends."),
        HumanTurn("user", "on what"),
        HumanTurn("agent", "On you."),
    )
    assert (found.id, found.user_key, found.group_keys) == ("prism/c1", "u1", ("u1",))
    assert found.left_out == {"messages_left_out": 1}
    assert FORMAT.claims(ROW)
    assert FORMAT.info.evaluation_only


def test_what_is_no_dialogue() -> None:
    with pytest.raises(Unfit, match="no_dialogue"):
        list(FORMAT.convert({"user_id": "u1", "self_description": "x"}, {}))
    with pytest.raises(Unfit, match="no_conversation"):
        list(FORMAT.convert(ROW | {"conversation_history": ["hi"]}, {}))
