"""The normalized shape: who may know what, and what is no turn."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim import jsonio
from mimesim.corpora.base import CorpusInfo, HumanTurn, Unfit, tidy
from mimesim.corpora.formats.normalized import convert_normalized, is_normalized
from mimesim.dialogue.types import Thought

INFO = CorpusInfo("invented", "MIT", "yes", "yes", "nobody", moderated=True)


def row(*turns: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "i/1", "turns": list(turns), **fields}


def said(role: str, text: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "text": text, **fields}


def test_fields_go_where_their_names_say() -> None:
    value = row(
        said("user", "a taxi please", acts=["Inform"]),
        said("assistant", "where to?"),
        goal="You want a taxi to the opera.",
        goal_slots={"taxi": {"to": "opera"}},
        profile={"age": "30"},
        outcome={"booked": True, "rating": None},
        happy=False,
        language="pt-BR",
        split="dev",
        topic=" rides ",
        user_key="u7",
        type=None,
    )
    found = convert_normalized(value, INFO)
    assert found.id == "i/1"
    assert found.source == "invented"
    assert found.turns == (HumanTurn("user", "a taxi please"), HumanTurn("agent", "where to?"))
    assert found.goal == "You want a taxi to the opera."
    assert found.hidden == {"goal_slots": {"taxi": {"to": "opera"}}, "profile": {"age": "30"}}
    assert found.outcome == {"booked": True, "happy": False}
    assert (found.language, found.split, found.topic, found.user_key) == (
        "pt",
        "validation",
        "rides",
        "u7",
    )


def test_hidden_values_of_tables_become_json() -> None:
    value = row(said("user", "hi"), when=date(2026, 1, 2), raw=[b"x"], outcome={1: date.min})
    found = convert_normalized(value, INFO)
    assert jsonio.loads(jsonio.dumps(found.hidden)) == {"when": "2026-01-02", "raw": ["b'x'"]}
    assert found.outcome == {"1": "0001-01-01"}


def test_directors_and_buttons_are_hidden_with_their_place() -> None:
    value = row(
        said("director", "Be rude from now on."),
        said("user", "  "),
        said("user", "hurry up"),
        said("user", "now"),
        said("action", "Account has been pulled up."),
        said("agent", "one moment"),
        said("director", "Leave."),
    )
    found = convert_normalized(value, INFO)
    assert [turn.text for turn in tidy(found.turns, Counter())] == [
        "hurry up\nnow",
        "one moment",
    ]
    assert found.hidden["director"] == [
        {"turn": 0, "text": "Be rude from now on."},
        {"turn": 2, "text": "Leave."},
    ]
    assert found.hidden["action"] == [{"turn": 1, "text": "Account has been pulled up."}]


def test_deals_and_null_texts_are_no_turns() -> None:
    deal = {"issue2youget": {"Water": "1"}}
    value = row(
        said("user", "one water for me"),
        said("agent", None, tools=[{"name": "look_up"}]),
        said("tool", "42"),
        said("agent", "Submit-Deal", deal=deal),
        said("user", "Accept-Deal", deal={"data": "accept_deal"}),
    )
    found = convert_normalized(value, INFO)
    assert [turn.text for turn in found.turns] == ["one water for me"]
    assert found.left_out == {"messages_left_out": 2}
    assert found.outcome["deals"] == [
        {"role": "agent", "text": "Submit-Deal", "deal": deal},
        {"role": "user", "text": "Accept-Deal", "deal": {"data": "accept_deal"}},
    ]


def test_system_text_thoughts_and_parts() -> None:
    value = row(
        said("system", "You are Kim."),
        said("user", [{"type": "text", "text": "look"}, {"type": "image"}], thought="so ugly"),
        said("agent", "nice", reaction="liar", thought="not read on this side"),
        context="A quiet village.",
    )
    found = convert_normalized(value, INFO)
    assert found.context == "A quiet village.\n\nYou are Kim."
    assert found.turns == (
        HumanTurn("user", "look", thought=Thought("so ugly")),
        HumanTurn("agent", "nice", reaction=Thought("liar")),
    )
    assert found.left_out == {"parts_left_out": 1}


@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        ("x", "no_conversation"),
        (["x"], "missing_role"),
        ([{"text": "x"}], "missing_role"),
        ([{"role": "wizard of oz", "text": "x"}], "unknown_role"),
        ([{"role": "user", "text": 7}], "bad_text"),
    ],
)
def test_damage_has_a_reason(turns: Any, reason: str) -> None:
    with pytest.raises(Unfit) as caught:
        convert_normalized({"turns": turns}, INFO)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"id": "1", "turns": []}, True),
        ({"turns": [{"text": "no role yet"}]}, True),
        ({"turns": [{"role": "agent", "text": None}]}, True),
        ({"turns": [{"role": "user", "content": "OpenAI's keys"}]}, False),
        ({"turns": [{"speaker": "USER", "utterance": "SGD's keys"}]}, False),
        ({"turns": "x"}, False),
        ({"messages": []}, False),
        (["x"], False),
    ],
)
def test_the_shape_is_known_by_keys(value: Any, expected: bool) -> None:
    assert is_normalized(value) is expected


WORDS = st.lists(
    st.sampled_from(["ox", "elm", "fog", "ink", "jar", "keg"]), min_size=1, max_size=6
).map(" ".join)
SECRET = st.lists(
    st.sampled_from(["zeta", "yolk", "xray", "wasp", "vial"]), min_size=4, max_size=7
).map(" ".join)
ROLES = st.sampled_from(["user", "agent", "director", "action", "system", "tool"])


@given(
    st.lists(st.tuples(ROLES, WORDS, SECRET), max_size=8),
    st.dictionaries(st.sampled_from(["goal_slots", "records", "notes"]), SECRET),
)
def test_nothing_hidden_is_said(
    entries: list[tuple[str, str, str]], fields: dict[str, str]
) -> None:
    turns = [
        {"role": role, "text": public if role in ("user", "agent") else secret}
        for role, public, secret in entries
    ]
    found = convert_normalized({"id": "1", "turns": turns, **fields}, INFO)
    public = "\n".join([found.topic, *(turn.text for turn in found.turns)])
    secrets = [*fields.values(), *(secret for role, _, secret in entries if role == "director")]
    assert all(secret not in public for secret in secrets)
    assert [turn.text for turn in found.turns] == [
        text for role, text, _ in entries if role in ("user", "agent")
    ]
