"""LMSYS-Chat-1M: moderation to flags, keys checked."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.corpora.base import Unfit
from mimesim.corpora.formats import wildchat
from mimesim.corpora.formats.lmsys import FORMAT

ROW: dict[str, Any] = {
    "conversation_id": "c9",
    "model": "vicuna-13b",
    "conversation": [
        {"role": "user", "content": "NAME_1 is a fool"},
        {"role": "assistant", "content": "Let us be kind."},
    ],
    "turn": 1,
    "language": "English",
    "openai_moderation": [
        {"categories": {"harassment": True}, "category_scores": {}, "flagged": True},
        {"categories": {}, "category_scores": {}, "flagged": False},
    ],
    "redacted": True,
}


def test_a_conversation() -> None:
    (found,) = FORMAT.convert(ROW, {})
    assert (found.id, found.language) == ("lmsys/c9", "en")
    assert found.flags == ("toxic", "redacted")
    assert [turn.role for turn in found.turns] == ["user", "agent"]
    (clean,) = FORMAT.convert(
        {**ROW, "openai_moderation": ROW["openai_moderation"][1:], "redacted": False}, {}
    )
    assert clean.flags == ()
    assert FORMAT.info.redistributable == "no"


def test_keys_tell_it_from_wildchat() -> None:
    assert FORMAT.claims(ROW)
    assert not wildchat.FORMAT.claims(ROW)
    with pytest.raises(Unfit, match="conversation_id, model"):
        list(FORMAT.convert({"conversation": []}, {}))
