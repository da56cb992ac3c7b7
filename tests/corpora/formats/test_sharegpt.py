"""ShareGPT: keys decide, the model may open, replies kept as markup become text."""

from __future__ import annotations

from mimesim.corpora.base import HumanTurn
from mimesim.corpora.formats.sharegpt import FORMAT

ROW = {
    "id": "abc_0",
    "conversations": [
        {"from": "gpt", "value": "Go on."},
        {"from": "human", "value": "<p>fix this page</p>"},
        {"from": "function_call", "value": "{}"},
        {"from": "observation", "value": "ok"},
        {
            "from": "gpt",
            "value": '<div class="markdown"><p>Two &amp; three:</p><ol><li>one</li><li>two</li></ol>'
            "</div>",
        },
        {"from": "human", "value": ""},
    ],
}


def test_a_conversation() -> None:
    (found,) = FORMAT.convert(ROW, {})
    assert found.id == "abc_0"
    assert found.turns == (
        HumanTurn("agent", "Go on."),
        HumanTurn("user", "<p>fix this page</p>"),
        HumanTurn("agent", "Two & three:\none\ntwo\n"),
        HumanTurn("user", ""),
    )
    assert found.left_out == {"messages_left_out": 2}


def test_openai_keys_are_told_apart() -> None:
    messages = {"conversations": [{"role": "user", "content": "hi"}]}
    assert FORMAT.claims(ROW)
    assert not FORMAT.claims(messages)
    (found,) = FORMAT.convert(messages, {})
    assert found.turns == (HumanTurn("user", "hi"),)
    (normal,) = FORMAT.convert({"id": "n", "turns": [{"role": "user", "text": "hi"}]}, {})
    assert normal.turns == found.turns
