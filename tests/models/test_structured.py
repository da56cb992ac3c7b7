"""Reading what a model wrote: the golden inputs of the contract, strictness, re-asking."""

from __future__ import annotations

import asyncio
import contextlib
import string
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mimesim import jsonio
from mimesim.dialogue.types import Thought
from mimesim.models.base import ChatMessage, Completion, Sampling
from mimesim.models.scripted import Scripted
from mimesim.models.structured import (
    Asking,
    UnreadableError,
    ask,
    balanced_objects,
    parse,
    parse_choice,
    parse_object,
    validate,
    visible,
)


class Response(BaseModel):
    """What the golden inputs carry; the thought may be of any type."""

    thought: Any = None
    response: str


class Flag(BaseModel):
    """A boolean and a note."""

    ok: bool
    note: str | None = None


class Stance(Enum):
    """Two labels."""

    AGREE = "slightly agree"
    DISAGREE = "slightly disagree"


class Labels(BaseModel):
    """Enumerations in every place."""

    label: Literal["Yes", "No", "Maybe"]
    stance: Stance | None = None
    many: list[Literal["a_b", "c"]] = Field(default_factory=list)
    count: int = 0


def read(raw: str, schema: type[BaseModel] = Response) -> tuple[Any, int]:
    """Read a completion as the judges do."""
    parsed = parse(visible(Completion(raw)), schema)
    return parsed.value, parsed.tier


@pytest.mark.parametrize(
    ("raw", "tier"),
    [
        pytest.param('{"thought": "a", "response": "Yes"}', 1, id="P-01"),
        pytest.param('```json\n{"thought": "a", "response": "Yes"}\n```', 2, id="P-02"),
        pytest.param('{"thought": null, "response": "Yes"}', 1, id="P-03"),
        pytest.param('<think>x</think>{"response":"Yes"}', 1, id="P-04"),
        pytest.param('Sure! {"response":"Yes"}', 2, id="P-05"),
        pytest.param("{“thought”: “a”, “response”: “Yes”}", 3, id="P-06"),
        pytest.param('{"thought": true, "response": "Yes"}', 1, id="P-08"),
        pytest.param("{'response': 'Yes'}", 3, id="P-09"),
        pytest.param('{"response": "Yes", "thought": None,}', 3, id="trailing comma"),
        pytest.param('{a, b} is a set. {"response": "Yes"}', 2, id="braces in prose"),
        pytest.param('```\n{"response": "Yes"}```', 2, id="fence without a language"),
    ],
)
def test_golden_inputs(raw: str, tier: int) -> None:
    value, found = read(raw)
    assert (value.response, found) == ("Yes", tier)


def test_golden_curly_apostrophe_inside_a_value() -> None:
    value, tier = read('{"thought": "it’s", "response": "Yes"}')  # P-07
    assert (value.thought, value.response, tier) == ("it’s", "Yes", 1)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("", id="P-10 empty"),
        pytest.param(" \n\u200b", id="P-10 blank"),
        pytest.param('<think>{"response": "Yes"}', id="P-10 only reasoning"),
        pytest.param('<think>{"response": "Yes"}</think>', id="P-10 closed reasoning"),
        pytest.param("Neither fits.", id="prose"),
        pytest.param('{"response": "Ye', id="cut"),
        pytest.param('{"outer": {"response": "Yes"}', id="inner part of a cut object"),
        pytest.param('["Yes"]', id="a list"),
        pytest.param('"Yes"', id="a string"),
        pytest.param('{"reply": "Yes"}', id="missing key"),
        pytest.param('{"response": null}', id="null"),
        pytest.param('{"response": 1}', id="number for text"),
        pytest.param("{" * 5000, id="deep and open"),
        pytest.param('{"a":' * 3000 + "1" + "}" * 3000, id="deep and closed"),
    ],
)
def test_no_answer_is_never_an_answer(raw: str) -> None:
    with pytest.raises(UnreadableError):
        read(raw)


def test_strict_booleans() -> None:
    assert read('```json {"ok": true, "note": null} ```', Flag) == (Flag(ok=True), 2)
    for text in ('{"ok": "true"}', '{"ok": 1}', '{"ok": "yes"}', '{"ok": null}', "{}"):
        with pytest.raises(UnreadableError, match="ok"):
            read(text, Flag)


def test_extra_keys_are_ignored_and_labels_are_folded() -> None:
    text = '{"label": " yes ", "stance": "Slightly_Disagree", "many": ["A-B", "c"], "x": 1}'
    value, _ = read(text, Labels)
    assert value == Labels(label="Yes", stance=Stance.DISAGREE, many=["a_b", "c"])
    for text in ('{"label": "yess"}', '{"label": "Yes", "count": "2"}', '{"label": true}'):
        with pytest.raises(UnreadableError):
            read(text, Labels)


def test_ranges_are_checked_and_never_clamped() -> None:
    class Score(BaseModel):
        value: float = Field(ge=0, le=1)

    assert validate({"value": 1}, Score).value == 1.0
    with pytest.raises(UnreadableError, match="less than or equal to 1"):
        validate({"value": 5}, Score)
    for text in ('{"value": NaN}', '{"value": Infinity}', '{"value": "0.5"}', '{"value": true}'):
        with pytest.raises(UnreadableError, match="value"):
            read(text, Score)


def test_nothing_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(UnreadableError):
        read("{'response': __import__('pathlib').Path('x').touch() or 'Yes'}")
    assert list(tmp_path.iterdir()) == []


def test_lone_surrogates_do_not_break_reading() -> None:
    assert read('{"response": "a\\ud83d b \\\\ud83d"}')[0].response == "a\ufffd b \\ud83d"


def test_the_problem_does_not_quote_the_answer() -> None:
    with pytest.raises(UnreadableError) as caught:
        read('{"ok": "my secret"}', Flag)
    assert "secret" not in str(caught.value)


def test_constrained_decoding_is_recorded_as_tier_0() -> None:
    assert parse('{"response": "Yes"}', Response, constrained=True).tier == 0
    assert parse('Sure {"response": "Yes"}', Response, constrained=True).tier == 2
    assert parse("{'response': 'Yes'}", Response, constrained=True).repaired


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(string.ascii_letters, min_size=1, max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(min_size=1, max_size=5), JSON, max_size=4)
PROSE = st.text(st.characters(exclude_characters='{}`"'), max_size=30)


@given(value=OBJECTS, before=PROSE, after=PROSE, fence=st.booleans())
def test_an_object_is_found_in_any_prose(
    value: dict[str, Any], before: str, after: str, fence: bool
) -> None:
    text = jsonio.dumps(value)
    wrapped = f"{before}\n```json\n{text}\n```\n{after}" if fence else f"{before}{text}{after}"
    assert parse_object(wrapped).value == value


@given(value=OBJECTS, cut=st.integers(1, 40))
def test_a_cut_object_is_never_read(value: dict[str, Any], cut: int) -> None:
    text = jsonio.dumps({"first": value})
    with pytest.raises(UnreadableError):
        parse_object(text[: max(1, len(text) - cut)])


def test_balanced_objects() -> None:
    assert balanced_objects('x {"a": "}"} y {"b": {"c": 1}} {') == ['{"a": "}"}', '{"b": {"c": 1}}']


@pytest.mark.parametrize("text", ["C", " c. ", "(C)", "Answer: C", "It is short.\n**Answer: C**"])
def test_a_choice_in_the_asked_form(text: str) -> None:
    assert parse_choice(text, ["A", "B", "C", "D"]) == "C"


@pytest.mark.parametrize(
    "text",
    ["Because the trip was short, I would choose C.", "Neither fits.", "", "A or B", "E", "A\nB"],
)
def test_a_letter_inside_a_sentence_is_no_choice(text: str) -> None:
    with pytest.raises(UnreadableError):
        parse_choice(text, ["A", "B", "C", "D"])


ASKED = [ChatMessage("user", "Is it so?")]


def asked(replies: list[str | Completion], **options: Any) -> tuple[Any, Scripted]:
    """Ask a scripted model for a `Flag`."""
    model = Scripted(replies)
    sampling = Sampling(seed=5, max_tokens=100)
    return asyncio.run(ask(model, ASKED, Flag, sampling, Asking(**options))), model


def test_reask_names_the_problem_and_is_tier_4() -> None:
    answer, model = asked(["no json", '{"ok": "true"}', '{"ok": true}'])
    assert answer.parsed is not None
    assert (answer.parsed.value.ok, answer.parsed.tier, answer.attempts) == (True, 4, 3)
    first, second, third = model.requests
    assert [m.role for m in third[0]] == ["user", "assistant", "user", "assistant", "user"]
    assert "no complete JSON object" in second[0][-1].content
    assert "valid boolean" in third[0][-1].content
    assert len({request[1].seed for request in model.requests}) == 3
    assert answer.usage.calls == 3
    assert first[1].max_tokens == third[1].max_tokens == 100


def test_reasks_are_bounded() -> None:
    answer, model = asked(["no json"] * 9)
    assert answer.parsed is None
    assert (answer.attempts, len(model.requests), answer.raw) == (3, 3, "no json")
    assert asked(["no json"] * 9, reasks=0)[0].attempts == 1


def test_a_cut_answer_is_asked_for_once_more_with_twice_the_tokens() -> None:
    cut = Completion("Let me think about this step by step. First, the", finish_reason="length")
    answer, model = asked([cut] * 9)
    assert answer.parsed is None
    assert [request[1].max_tokens for request in model.requests] == [100, 200]
    assert [len(request[0]) for request in model.requests] == [1, 1]
    answer, _ = asked([cut, '{"ok": false}'])
    assert answer.parsed is not None
    assert answer.parsed.value.ok is False


def test_only_reasoning_counts_as_empty() -> None:
    answer, model = asked([Completion("", reasoning=Thought("hm")), '<think>a</think>{"ok": true}'])
    assert answer.parsed is not None
    assert model.requests[1][1].max_tokens == 200


def test_a_refusal_is_not_asked_again() -> None:
    answer, model = asked([Completion("No.", finish_reason="content_filter")])
    assert (answer.parsed, answer.finish_reason, len(model.requests)) == (None, "content_filter", 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('For example {"n": 1}. My answer: {"n": 2}', {"n": 2}),
        ('```json\n{"n": 1}\n```\nNo, rather:\n```json\n{"n": 2}\n```', {"n": 2}),
        ('{"n": 1} {"n": 2,}', {"n": 2}),
        ('{"n": 2}', {"n": 2}),
    ],
)
def test_the_last_object_counts_where_that_is_asked(text: str, told: dict[str, int]) -> None:
    assert parse_object(text, last=True).value == told
