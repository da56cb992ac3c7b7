"""Own logs: both shapes; what the assistant was told is nothing that its user knew."""

from __future__ import annotations

import pytest

from mimesim.corpora.base import Unfit
from mimesim.corpora.formats.own import FORMAT


def test_system_text_is_left_out_and_counted() -> None:
    messages = [
        {"role": "system", "content": "Never offer a refund."},
        {"role": "user", "content": "my money back"},
        {"role": "tool", "content": "{}"},
    ]
    (found,) = FORMAT.convert({"messages": messages}, {})
    assert found.context == ""
    assert found.left_out == {"messages_left_out": 2}
    turns = [
        {"role": "system", "text": "Never offer a refund."},
        {"role": "user", "text": "my money back"},
    ]
    (normal,) = FORMAT.convert({"turns": turns, "context": "Kim, 40."}, {})
    assert normal.context == "Kim, 40."
    assert normal.turns == found.turns
    assert normal.left_out == {"messages_left_out": 1}


def test_contact_data_is_not_touched_here() -> None:
    turns = [{"role": "user", "text": "mail a@b.org"}]
    (found,) = FORMAT.convert({"id": "1", "turns": turns, "outcome": "sold"}, {})
    assert found.turns[0].text == "mail a@b.org"
    assert found.outcome == {"outcome": "sold"}
    assert FORMAT.claims({"turns": []})
    assert not FORMAT.claims({"chat": []})
    with pytest.raises(Unfit, match="no 'role'"):
        list(FORMAT.convert({"turns": [{"text": "x"}]}, {}))
