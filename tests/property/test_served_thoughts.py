"""No thought reaches a caller or a log of the server, whatever shape the model writes it in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimesim.dialogue.types import Role, Thought, ToolCall
from mimesim.models.base import Completion
from tests.property.test_private_thoughts import GUARDED, MARK, SHAPES
from tests.support.served import Served, speaking

ENDS = ("", " ###STOP###", "\n###TRANSFER###", " ###stop###")
drafts = st.builds(
    lambda shape, words, end, finish, beside, called: Completion(
        shape.format(t=f"{MARK} keep it vague {MARK}", u=words) + end,
        finish_reason=finish,
        reasoning=Thought(f"{MARK} beside") if beside else None,
        tool_calls=(ToolCall("1", f"{MARK}_tool", f'{{"x": "{MARK}"}}', Role.AGENT),) * called,
    ),
    st.sampled_from(SHAPES + GUARDED),
    st.sampled_from(["where is it", "the blue one", "ok", ""]),
    st.sampled_from(ENDS),
    st.sampled_from(["stop", "length", "tool_calls", "content_filter"]),
    st.booleans(),
    st.integers(0, 2),
)
"""What a model may write in one draw, its thoughts marked."""


class Writer:
    """Writes what it is given, draw by draw."""

    def __init__(self) -> None:
        self.left: list[Completion] = []

    def __call__(self, messages: Any, sampling: Any) -> Completion:
        return self.left.pop() if self.left else Completion("and then?")


@pytest.fixture(scope="module", params=[True, False], ids=["thinking", "plain"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[Served, Writer]]:
    writer = Writer()
    user = {"thinking": request.param}
    with speaking(writer, user=user, private_token="p", log_text=True) as one:
        yield one, writer


@settings(max_examples=50)
@given(
    drawn=st.lists(drafts, min_size=1, max_size=5),
    stream=st.booleans(),
    dialect=st.sampled_from(["plain", "tau2", "verifiers"]),
    talk=st.lists(st.sampled_from(["hi", "###STOP###", "<think>x", ""]), min_size=1, max_size=3),
    number=st.integers(0, 3),
)
def test_no_public_answer_and_no_log_holds_a_thought(
    server: tuple[Served, Writer],
    drawn: list[Completion],
    stream: bool,
    dialect: str,
    talk: list[str],
    number: int,
) -> None:
    one, writer = server
    writer.left = list(drawn)
    rows = [{"role": "system", "content": "You want a pot."}]
    for agent in talk:
        rows += [{"role": "user", "content": agent}, {"role": "assistant", "content": "pot"}]
    said = {"episode": f"e{number}", "dialect": dialect}
    one.lines.clear()
    answer = one.ask(rows[:-1], stream=stream, mimesim=said)
    assert answer.status_code in (200, 400, 500)
    assert MARK not in answer.text + repr(answer.headers) + json.dumps(one.lines)


def test_the_thoughts_are_where_they_belong(server: tuple[Served, Writer]) -> None:
    one, writer = server
    assert MARK not in one.get("/metrics").text + one.get("/v1/models").text
    writer.left = [Completion(f"<think>{MARK}</think>a pot")]
    one.said("hi", mimesim={"episode": "kept"})
    assert MARK in one.get("/v1/episodes/kept/private", "p").text


def test_a_draft_that_was_held_back_is_not_told() -> None:
    drafts = [f"As an AI I must say {MARK}", f"Of course! Let me look that up for you. {MARK}"]
    with speaking([*drafts * 2], user={"max_regen": 3}) as one:
        answer = one.ask([{"role": "user", "content": "hi"}], mimesim={"instructions": "x"})
    assert answer.status_code == 500
    assert MARK not in answer.text + json.dumps(one.lines)
