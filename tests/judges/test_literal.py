"""Reading of verdicts: the golden inputs P-01 to P-10, by our reader and as the originals read them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel, Field

from mimesim.errors import JudgeError
from mimesim.judges.base import Failed, Judge, JudgeRequest, JudgeResult, Skipped, Verdict, required
from mimesim.judges.literal import LiteralJudge
from mimesim.judges.load import make_judge
from mimesim.judges.rule import RuleJudge
from mimesim.models.structured import UnreadableError, parse_literal
from tests.support.stub_server import Reply, StubServer


class Said(BaseModel):
    """What a user of the originals sends back."""

    response: str


class Claims(BaseModel):
    """A verdict with a number."""

    unsupported_claims: int = Field(ge=0)


INPUTS = {"transcript": [{"role": "user", "text": "Hi"}], "actions": []}
FENCED = '```json\n{"thought": "a", "response": "Yes"}\n```'
APOSTROPHE = '{"thought": "it\u2019s so", "response": "Yes"}'
CURLY = "{\u201cresponse\u201d: \u201cYes\u201d}"
ROWS: dict[str, tuple[str, int | None, bool]] = {
    # raw, tier of our reader (None = a failure), whether the originals read it
    "P-01": ('{"thought": "a", "response": "Yes"}', 1, True),
    "P-02": (FENCED, 2, True),
    "P-03": ('{"thought": null, "response": "Yes"}', 1, False),
    "P-04": ('<think>x</think>{"response":"Yes"}', 1, False),
    "P-05": ('Sure! {"response":"Yes"}', 2, False),
    "P-06": (CURLY, 3, False),
    "P-07": (APOSTROPHE, 1, True),
    "P-08": ('{"thought": true, "response": "Yes"}', 1, False),
    "P-09": ("{'response': 'Yes'}", 3, True),
    "P-10": ("", None, False),
    "P-10b": ("<think>only this</think>", None, False),
}


def ask(
    *replies: Reply, schema: type[BaseModel] = Said, literal: bool = False, constrain: bool = False
) -> JudgeResult[Any]:
    """Put one question to a judge behind a stub server; its reader, or the originals'."""
    with StubServer(replies) as server:

        async def run() -> JudgeResult[Any]:
            options = {"constrain": constrain, "reasks": 1}
            inner = make_judge(f"model:openai:stub@{server.url}", options=options)
            judge: Judge = LiteralJudge(inner) if literal else inner
            try:
                return await judge.judge(JudgeRequest("desk.honesty", INPUTS, schema, seed=3))
            finally:
                await judge.aclose()

        return asyncio.run(run())


@pytest.mark.parametrize("row", ROWS)
def test_golden_inputs_by_our_reader(row: str) -> None:
    """P-01 to P-10."""
    raw, tier, _ = ROWS[row]
    result = ask(raw)
    if tier is None:
        assert isinstance(result, Failed)
    else:
        assert isinstance(result, Verdict)
        assert (result.value, result.tier) == (Said(response="Yes"), tier)


@pytest.mark.parametrize("row", ROWS)
def test_golden_inputs_as_the_originals_read_them(row: str) -> None:
    """P-01 to P-10 under compat."""
    raw, _, readable = ROWS[row]
    result = ask(raw, literal=True)
    assert result.raw == raw
    if readable:
        assert required(result) == Said(response="Yes")
    else:
        assert isinstance(result, Failed)
        with pytest.raises(JudgeError, match="no verdict"):
            required(result)


def test_the_usage_of_an_unread_verdict_is_kept() -> None:
    result = ask(ROWS["P-03"][0], literal=True)
    assert isinstance(result, Failed)
    assert (result.attempts, result.usage.calls) == (1, 1)


def test_what_was_read_on_asking_again_was_never_read_by_the_originals() -> None:
    assert required(ask("no idea", '{"response": "Yes"}')).response == "Yes"
    assert isinstance(ask("no idea", '{"response": "Yes"}', literal=True), Failed)


def test_the_schema_holds_for_literals_too() -> None:
    assert required(ask("{'unsupported_claims': 2}", schema=Claims, literal=True)) == Claims(
        unsupported_claims=2
    )
    assert isinstance(ask('{"unsupported_claims": -1}', schema=Claims, literal=True), Failed)
    assert isinstance(ask('{"unsupported_claims": "2"}', schema=Claims, literal=True), Failed)


def test_a_refusal_stays_a_refusal() -> None:
    assert isinstance(ask("I'm sorry, I cannot judge this.", literal=True), Skipped)


def test_a_rule_has_no_text_to_read_again() -> None:
    judge = LiteralJudge(RuleJudge())
    request = JudgeRequest("k", {}, Said, 0, rule=lambda _: {"response": "Yes"})
    assert required(asyncio.run(judge.judge(request))).response == "Yes"
    assert judge.identity == RuleJudge().identity


@pytest.mark.parametrize(
    "text",
    ["[1]", "'Yes'", "{1, 2}", "{'a': {1}}", "{'a': b'x'}", "{'a': x}", "__import__('os')", "{'a': 1j}", "(" * 500],
)  # fmt: skip
def test_what_is_no_dictionary_of_json_values_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        parse_literal(text)
