"""Views: who sees what, in the strictest chat grammar."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.dialogue.thinking import is_blank
from mimesim.dialogue.types import PublicMessage, Role, Thought, ToolCall
from mimesim.dialogue.views import (
    GREETING,
    TOOL_NOTE,
    SpokenTurn,
    WireMessage,
    as_agent,
    as_user,
    for_coach,
    public,
    transcript,
)
from mimesim.errors import CallerError


def user(text: str) -> PublicMessage:
    return PublicMessage(Role.USER, text)


def agent(text: str, *calls: ToolCall) -> PublicMessage:
    return PublicMessage(Role.AGENT, text, tool_calls=calls)


def call(name: str = "lookup", owner: Role = Role.AGENT) -> ToolCall:
    return ToolCall("c1", name, "{}", owner)


def tool(text: str, owner: Role = Role.AGENT) -> PublicMessage:
    return PublicMessage(Role.TOOL, text, tool_call_id="c1", owner=owner)


def pairs(rows: tuple[WireMessage, ...]) -> list[tuple[str, str]]:
    return [(row.role, row.content) for row in rows]


def test_user_that_speaks_first_is_greeted_in_its_prompt_only() -> None:
    assert pairs(as_user([], system="s")) == [("system", "s"), ("user", GREETING)]
    rows = as_user([user("hi"), agent("yes?")], system="s", thoughts=[Thought("t")])
    assert pairs(rows) == [
        ("system", "s"),
        ("user", GREETING),
        ("assistant", "<think>\nt\n</think>\n\nhi"),
        ("user", "yes?"),
    ]
    assert GREETING not in transcript([user("hi"), agent("yes?")])


def test_absent_thought_gives_an_empty_block_and_no_thinking_none() -> None:
    messages = [user("hi"), agent("yes?")]
    assert as_user(messages, system="s", thoughts=[])[2].content == "<think>\n\n</think>\n\nhi"
    assert as_user(messages, system="s")[2].content == "hi"


def test_agent_that_opens_needs_no_greeting() -> None:
    assert pairs(as_user([agent("Hello!")], system="s")) == [("system", "s"), ("user", "Hello!")]


def test_agent_messages_in_a_row_become_one() -> None:
    messages = [user("when?"), agent("Checking…"), agent("It ships on Monday.")]
    assert as_user(messages, system="s")[-1].content == "Checking…\n\nIt ships on Monday."


@pytest.mark.parametrize(
    ("show", "seen"), [(False, "It arrives Monday."), (True, f"{TOOL_NOTE}\n\nIt arrives Monday.")]
)
def test_tool_activity_of_the_agent_is_hidden_or_neutral(show: bool, seen: str) -> None:
    messages = [user("eta?"), agent("", call()), tool('{"eta":"Mon"}'), agent("It arrives Monday.")]
    rows = as_user(messages, system="s", show_agent_tools=show)
    assert rows[-1] == WireMessage("user", seen)
    assert all(not row.tool_calls for row in rows)
    assert "eta" not in "".join(row.content for row in rows if row.role == "user")


def test_each_side_sees_its_own_tools_only() -> None:
    """C-MSG-04: ownership decides, not the role.

    Users own no tools in this package, so the user's side has no native form of a call: its view
    leaves out the tool traffic of both owners, and the scenario that gives it tools is refused.
    """
    messages = [
        user("hi"),
        PublicMessage(Role.USER, "", tool_calls=(call("restart", Role.USER),)),
        tool("restarted", Role.USER),
        agent("", call("get_plan")),
        tool("basic"),
        agent("You are on basic."),
    ]
    rows = as_agent(messages, system="s")
    assert [row.role for row in rows] == ["system", "user", "assistant", "tool", "assistant"]
    assert "restarted" not in "".join(row.content for row in rows)
    assert [(row.content, row.tool_calls) for row in rows[3:4]] == [("basic", ())]
    assert [c.name for row in rows for c in row.tool_calls] == ["get_plan"]
    heard = as_user(messages, system="s")
    assert pairs(heard[-2:]) == [("assistant", "hi"), ("user", "You are on basic.")]
    assert all(not row.tool_calls for row in heard)


def test_user_that_spoke_last_has_nothing_to_answer() -> None:
    with pytest.raises(CallerError, match="no message of the agent"):
        as_user([user("hi")], system="s")


def test_notes_and_thoughts_stay_out_of_the_public_view() -> None:
    note = PublicMessage(Role.NOTE, "ZQX")
    turns = [SpokenTurn(user("hi"), Thought("ZQX")), note, agent("yes?")]
    seen = public(turns)
    assert [m.content for m in seen] == ["hi", "yes?"]
    assert "ZQX" not in repr(turns[0])


def test_thought_in_place_of_text_is_refused() -> None:
    wrong = PublicMessage(Role.USER, Thought("ZQX"))  # type: ignore[arg-type]
    for view in (public, as_agent, transcript, for_coach):
        with pytest.raises(CallerError, match="Thought"):
            view([wrong])


def test_coach_gets_the_private_side_only_when_given() -> None:
    bare = for_coach([user("hi"), agent("yes?")])
    assert (bare.history, bare.thought, bare.next_utterance) == (
        "User: hi\nAgent: yes?",
        None,
        None,
    )
    assert for_coach([user("hi")], thought=Thought("t")).thought == Thought("t")


texts = st.sampled_from(["a", "b c", " ", "", "\u200b", "x\n\ny"])
anything = st.lists(
    st.one_of(
        texts.map(user),
        texts.map(agent),
        st.just(agent("", call())),
        st.just(tool("r")),
        st.just(tool("r", Role.USER)),
        st.just(PublicMessage(Role.NOTE, "n")),
    ),
    max_size=12,
)


@given(anything, st.booleans(), st.booleans())
def test_user_rows_alternate_strictly_and_hold_words(
    messages: list[PublicMessage], thinks: bool, show: bool
) -> None:
    rows = as_user(
        [*messages, agent("?")], system="s", thoughts=[] if thinks else None, show_agent_tools=show
    )
    assert rows[0].role == "system"
    assert [r.role for r in rows[1:]] == [
        "user" if i % 2 == 0 else "assistant" for i in range(len(rows) - 1)
    ]
    assert rows[-1].role == "user"
    assert all(not is_blank(row.content) for row in rows)


@given(anything)
def test_agent_rows_never_repeat_a_talking_role(messages: list[PublicMessage]) -> None:
    rows = as_agent(messages)
    for before, after in itertools.pairwise(rows):
        if before.role == after.role:
            assert before.role == "tool" or before.tool_calls or after.tool_calls
    assert all(row.tool_calls or not is_blank(row.content) for row in rows)
