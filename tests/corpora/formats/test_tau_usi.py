"""tau-USI: page messages, sessions that are not kept, batches of one task, no training."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.corpora.base import Unfit
from mimesim.corpora.formats.tau_usi import FORMAT


def session(name: str, *user: str, **fields: Any) -> dict[str, Any]:
    opening = {"role": "assistant", "content": "Hi! How can I help you today?"}
    return {
        "task_id": 0,
        "instance_id": name,
        "agent_id": "agent",
        "conversation": [opening, *({"role": "user", "content": text} for text in user)],
        "survey": {"trust": {"question": "Did you trust it?", "answer": "yes"}, "age": 30},
        "reward": 1.0,
        "keep": True,
        **fields,
    }


def test_a_session() -> None:
    said = ("\\tau airline 0", "cancel my flight", "\\reward", "see <|canvas|>", " /stop ")
    (found,) = FORMAT.convert(session("airline_0_ann2", *said), {})
    assert [turn.text for turn in found.turns] == [
        "Hi! How can I help you today?",
        "cancel my flight",
    ]
    assert found.left_out == {"page_messages": 4}
    survey = {"trust": "yes", "age": 30}
    assert found.outcome == {"task": "airline_0", "trial": 1, "reward": 1.0, "survey": survey}
    (first,) = FORMAT.convert(session("airline_0", "hi"), {})
    assert first.outcome["trial"] == 0
    assert first.group_keys == found.group_keys == ("airline_0",)


def test_it_never_trains() -> None:
    assert FORMAT.info.training_allowed == "no"
    assert FORMAT.info.evaluation_only
    assert FORMAT.info.redistributable == "no"


def test_what_is_left_out() -> None:
    with pytest.raises(Unfit, match="not_kept"):
        list(FORMAT.convert(session("airline_0", "hi", keep=False), {}))
    with pytest.raises(Unfit, match="instance_id, reward"):
        list(FORMAT.convert({"conversation": []}, {}))
    assert FORMAT.claims(session("airline_0"))
    assert not FORMAT.claims({"conversation": []})
