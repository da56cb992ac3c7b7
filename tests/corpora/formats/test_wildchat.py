"""WildChat: both releases, flags of row and message, the person by address."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.corpora.base import Unfit
from mimesim.corpora.formats.wildchat import FORMAT


def message(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "toxic": False, "redacted": False, **fields}


FIRST: dict[str, Any] = {
    "conversation_id": "c1",
    "model": "gpt-4",
    "timestamp": "2023-04-09",
    "conversation": [message("user", "bonjour"), message("assistant", "salut")],
    "turn": 1,
    "language": "French",
    "openai_moderation": [],
    "detoxify_moderation": [],
    "toxic": False,
    "redacted": False,
}
SECOND = {
    **{key: value for key, value in FIRST.items() if key != "conversation_id"},
    "conversation_hash": "h1",
    "conversation": [
        message("user", "call <PHONE>", redacted=True, hashed_ip="ip1", country="X", header={}),
        message("assistant", "no", hashed_ip=None),
    ],
    "language": "English",
    "toxic": True,
    "hashed_ip": "ip1",
    "state": "Nowhere county",
    "header": {"user-agent": "Browser"},
}


def test_the_first_release() -> None:
    (found,) = FORMAT.convert(FIRST, {})
    assert (found.id, found.language, found.flags) == ("wildchat/c1", "fr", ())
    assert (found.user_key, found.group_keys) == ("", ())
    assert found.hidden == {"model": "gpt-4"}


def test_the_second_release() -> None:
    (found,) = FORMAT.convert(SECOND, {})
    assert (found.id, found.language) == ("wildchat/h1", "en")
    assert found.flags == ("toxic", "redacted")
    assert (found.user_key, found.group_keys) == ("ip1", ("ip1",))
    assert [turn.text for turn in found.turns] == ["call <PHONE>", "no"]
    assert "Nowhere" not in repr(found)
    by_message = {**SECOND, "hashed_ip": None, "toxic": False}
    (found,) = FORMAT.convert(by_message, {})
    assert (found.user_key, found.flags) == ("ip1", ("redacted",))


def test_keys_are_checked() -> None:
    assert FORMAT.claims(FIRST)
    assert FORMAT.claims(SECOND)
    assert not FORMAT.claims({"conversation": [], "model": "m"})
    with pytest.raises(Unfit, match="conversation, model"):
        list(FORMAT.convert({"language": "English"}, {}))
    with pytest.raises(Unfit, match="conversation_hash"):
        list(FORMAT.convert({"conversation": [], "model": "m"}, {}))
