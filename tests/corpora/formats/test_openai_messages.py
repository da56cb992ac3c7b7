"""OpenAI messages: keys decide, system text goes to the context, ids and people are found."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.corpora.base import HumanTurn, Unfit
from mimesim.corpora.formats.openai_messages import FORMAT

ROW = {
    "conversation_id": 12,
    "user_id": "u1",
    "language": "English",
    "messages": [
        {"role": "system", "content": "You sell shoes."},
        {"role": "user", "content": "size 9?"},
        {"role": "user", "content": "in red"},
        {"role": "assistant", "content": "sold out"},
    ],
    "tools": [{"type": "function"}],
}


def test_a_conversation() -> None:
    (found,) = FORMAT.convert(ROW, {})
    assert (found.id, found.user_key, found.language) == ("12", "u1", "en")
    assert found.context == "You sell shoes."
    assert [turn.role for turn in found.turns] == ["user", "user", "agent"]
    assert FORMAT.claims(ROW)
    (bare,) = FORMAT.convert(ROW, {"system": "drop"})
    assert bare.context == ""


def test_other_names_and_shapes() -> None:
    shared = {"conversations": [{"from": "human", "value": "hi"}]}
    (found,) = FORMAT.convert(shared, {})
    assert found.turns == (HumanTurn("user", "hi"),)
    assert found.id == ""
    assert not FORMAT.claims(shared)
    (normal,) = FORMAT.convert({"id": "n", "turns": [{"role": "user", "text": "hi"}]}, {})
    assert (normal.id, normal.turns) == ("n", found.turns)


@pytest.mark.parametrize("value", [{}, {"messages": "x"}, "x", None])
def test_no_conversation(value: Any) -> None:
    with pytest.raises(Unfit, match="no conversation"):
        list(FORMAT.convert(value, {}))
    assert not FORMAT.claims(value)
