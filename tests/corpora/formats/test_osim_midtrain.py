"""OdysSim mid-training: exact routes, both sides, folding and the published way of it."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.corpora.base import HumanTurn, Unfit
from mimesim.corpora.formats.osim_midtrain import FORMAT, route
from mimesim.errors import ConfigError

MESSAGES = [
    {"role": "system", "content": "Kim, 40, a baker."},
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "hello"},
]


def row(source: str, messages: Any = MESSAGES, **fields: Any) -> dict[str, Any]:
    return {"data_source": source, "messages": messages, **fields}


def experiment(count: int) -> list[dict[str, Any]]:
    roles = ("assistant", "user")
    talk = [{"role": roles[at % 2], "content": f"text {at}"} for at in range(count)]
    return [{"role": "system", "content": "A study."}, *talk]


def test_the_person_is_user_when_swapped() -> None:
    for source in ("wildchat", "convokit_casino-corpus", "humanual_chat", "coser", "mathdial"):
        (found,) = FORMAT.convert(row(source), {})
        assert found.turns == (HumanTurn("user", "hi"), HumanTurn("agent", "hello"))
        assert found.context == "Kim, 40, a baker."
        assert found.hidden == {"data_source": source}


def test_the_person_is_assistant_otherwise() -> None:
    for source in ("human_llm", "tom_fantom", "soc_haico", "rm_r1_sft"):
        (found,) = FORMAT.convert(row(source, MESSAGES[1:]), {})
        assert found.turns == (HumanTurn("agent", "hi"), HumanTurn("user", "hello"))
        assert found.context == ""


@pytest.mark.parametrize("source", ["wildchat_new", "chat", "WILDCHAT", "", None, "convokit"])
def test_an_unknown_source_is_never_guessed(source: Any) -> None:
    with pytest.raises(Unfit, match="unknown_source"):
        list(FORMAT.convert(row(source), {}))


def test_routes_can_be_added() -> None:
    (found,) = FORMAT.convert(row("new"), {"routes": {"new": "no-swap"}})
    assert found.turns[0].role == "agent"
    with pytest.raises(ConfigError, match="'guess'"):
        route("new", {"new": "guess"})


def test_the_older_part_is_folded_and_no_turn_changes_sides() -> None:
    (found,) = FORMAT.convert(row("psych101", experiment(23)), {})
    assert len(found.turns) == 20
    assert found.turns[0] == HumanTurn("user", "text 3")
    assert found.earlier == "They: text 0\n\nYou: text 1\n\nThey: text 2"
    assert found.context == "A study."
    (short,) = FORMAT.convert(row("psych101", experiment(20)), {})
    assert (len(short.turns), short.earlier) == (20, "")
    (other,) = FORMAT.convert(row("socsci210", experiment(23)), {})
    assert (len(other.turns), other.earlier) == (23, "")


def test_the_published_fold_gives_a_human_turn_away() -> None:
    (found,) = FORMAT.convert(row("psych101", experiment(23)), {"compat": True})
    assert len(found.turns) == 20
    assert found.earlier == ""
    assert found.turns[0] == HumanTurn(
        "agent",
        "[Earlier conversation]\nassistant: text 0\n\nuser: text 1\n\nassistant: text 2\n\ntext 3",
    )
    assert found.turns[1] == HumanTurn("agent", "text 4")


def test_messages_may_stand_in_extra_info() -> None:
    (found,) = FORMAT.convert(
        {
            "data_source": "lmsys",
            "messages": None,
            "extra_info": {"messages": MESSAGES, "index": 5, "split": "train"},
        },
        {},
    )
    assert (found.id, found.split) == ("osim-midtrain/lmsys/5", "train")
    assert len(found.turns) == 2
    text = {"data_source": "lmsys", "extra_info": '{"messages": []}'}
    assert next(iter(FORMAT.convert(text, {}))).turns == ()
    with pytest.raises(Unfit, match="bad_json"):
        list(FORMAT.convert({"data_source": "lmsys", "extra_info": "{"}, {}))
    with pytest.raises(Unfit, match="missing_keys: messages"):
        list(FORMAT.convert({"data_source": "lmsys"}, {}))


def test_keys_tell() -> None:
    assert FORMAT.claims(row("anything"))
    assert FORMAT.claims({"data_source": "x", "extra_info": {"messages": MESSAGES}})
    assert not FORMAT.claims({"data_source": "x", "extra_info": {"raw": "{}"}})
    assert not FORMAT.claims({"messages": MESSAGES})
