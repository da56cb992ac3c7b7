"""The question to a judge of behaviors: typed verdicts, what is shown, and answers of every kind."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import ValidationError

from mimesim import prompts
from mimesim.dialogue.types import Role, Thought
from mimesim.errors import UnknownNameError
from mimesim.judges.base import Failed, JudgeResult, Skipped, Verdict
from mimesim.judges.behavior import (
    BEHAVIOR,
    NEUTRAL,
    BehaviorVerdict,
    NeutralVerdict,
    Performance,
    Said,
    judge_performance,
    question,
)
from mimesim.judges.load import make_judge
from mimesim.judges.rule import RuleJudge
from mimesim.scenarios import behaviors
from tests.support.performances import talk
from tests.support.stub_server import Fault, Reply, StubServer

GOOD = {"exhibit": 0.9, "placement": 0.8, "naturalness": 0.7, "on_task": 1, "announced": False}
LINES = ("i want boots", "A: What is your order number?", "hurry up")


def told(**changes: Any) -> str:
    """Return an answer of the right form, with changes; None takes a key out."""
    value = {k: v for k, v in {"why": "it pushes", **GOOD, **changes}.items() if v is not None}
    return json.dumps(value)


def ask(*replies: Reply, performance: Performance | None = None) -> tuple[JudgeResult[Any], int]:
    """Judge with a model behind a real server; return the result and the number of calls."""
    asked = performance or talk(*LINES, behavior="B9")
    with StubServer(replies) as server:

        async def run() -> JudgeResult[Any]:
            judge = make_judge(f"model:openai:stub@{server.url}")
            try:
                return await judge_performance(judge, asked, seed=1)
            finally:
                await judge.aclose()

        return asyncio.run(run()), len(server.generations)


def test_a_good_answer_is_a_verdict() -> None:
    result, calls = ask(told())
    assert isinstance(result, Verdict)
    assert result.value.model_dump() == {"why": "it pushes", **GOOD}
    assert calls == 1


@pytest.mark.parametrize(
    ("given", "kept"), [(1.4, 1.0), (-3, 0.0), (7, 1.0), (0, 0.0), (1, 1.0), (0.25, 0.25)]
)
def test_numbers_are_clamped(given: float, kept: float) -> None:
    result, _ = ask(told(exhibit=given))
    assert isinstance(result, Verdict)
    assert result.value.exhibit == kept


@pytest.mark.parametrize(
    "answer",
    [
        "I think the customer was quite impatient, I would give it a high score.",
        told(exhibit="0.9"),
        told(exhibit=True),
        told(exhibit=None),
        told(announced="no"),
        told(announced=None),
        told(placement=[0.5]),
        told().replace("0.9", "NaN"),
        told().replace("0.9", "Infinity"),
        told().replace("0.9", "1e999"),
        told().replace("0.9", "null"),
        "{}",
        "null",
        "0.9",
        told()[:40],
    ],
)
def test_what_is_no_number_is_no_verdict(answer: str) -> None:
    result, calls = ask(answer)
    assert isinstance(result, Failed)
    assert result.raw == answer
    assert calls > 1, "it is asked for again first"


@pytest.mark.parametrize("answer", ["", " \n", {"content": None}])
def test_nothing_is_no_verdict(answer: Reply) -> None:
    result, _ = ask(answer)
    assert isinstance(result, Failed)


def test_a_cut_answer_is_asked_for_with_more_room_and_then_failed() -> None:
    cut = {"content": "Let me look at this step by step. First, the", "finish_reason": "length"}
    result, calls = ask(cut)
    assert isinstance(result, Failed)
    assert calls == 2
    mended, _ = ask(cut, told())
    assert isinstance(mended, Verdict)


def test_a_second_answer_in_form_counts() -> None:
    result, calls = ask("high", told())
    assert isinstance(result, Verdict)
    assert (result.tier, calls) == (4, 2)


def test_a_fenced_answer_is_read_and_a_refusal_is_none() -> None:
    result, _ = ask(f"Here:\n```json\n{told()}\n```")
    assert isinstance(result, Verdict)
    refused, _ = ask("I'm sorry, I cannot rate people.")
    assert refused == Skipped(
        "refused", raw="I'm sorry, I cannot rate people.", attempts=3, usage=refused.usage
    )


def test_a_neutral_row_is_asked_other_things() -> None:
    answer = json.dumps({"cooperative": 0.8, "naturalness": 2, "on_task": 1})
    result, _ = ask(answer, performance=talk("hi, boots", "A: Sure.", "thanks"))
    assert isinstance(result, Verdict)
    assert result.value == NeutralVerdict(cooperative=0.8, naturalness=1.0, on_task=1.0)
    failed, _ = ask(told(), performance=talk("hi, boots", "A: Sure.", "thanks"))
    assert isinstance(failed, Failed)


def test_a_server_in_trouble_is_no_verdict_either() -> None:
    from mimesim.errors import InfraError

    with pytest.raises(InfraError):
        ask(Fault(400, {"error": {"message": "bad", "type": "invalid_request_error"}}))


def test_nobody_is_asked_about_a_customer_who_said_nothing() -> None:
    for performance in (
        Performance("B9", "g", (Said(Role.USER, "boots", replayed=True),)),
        talk("\u200b \n", behavior="B9"),
        Performance("B9", "g", ()),
    ):
        result, calls = ask(told(), performance=performance)
        assert result == Skipped("no_generated_turn")
        assert calls == 0


def thinking(behavior: str | None) -> Performance:
    turns = (
        Said(Role.USER, "before", Thought("SECRET before"), replayed=True),
        Said(Role.AGENT, "verified"),
        Said(Role.USER, "no", Thought("SECRET one")),
        Said(Role.AGENT, "why"),
        Said(Role.USER, "just so", None),
    )
    return Performance(behavior, "g", turns, {"field": "packaging"}, {"packaging": "SECRET fact"})


@pytest.mark.parametrize("behavior", [*behaviors.builtin_ids(), None])
def test_thoughts_are_shown_for_b1_and_b5_only_as_pairs(behavior: str | None) -> None:
    request = question(thinking(behavior), seed=0)
    shown = prompts.render(f"judge/{request.kind}", **request.inputs)
    assert request.kind == (BEHAVIOR if behavior else NEUTRAL)
    if behavior in ("B1", "B5"):
        assert request.inputs["pairs"] == [
            {"private": "SECRET one", "sent": "no"},
            {"private": "", "sent": "just so"},
        ]
        assert shown.count("SECRET") == 1
        assert "The agent saw only what was sent" in " ".join(shown.split())
    else:
        assert "SECRET" not in shown


def test_without_thoughts_there_are_no_pairs() -> None:
    assert question(talk(*LINES, behavior="B1"), seed=0).inputs["pairs"] == []


@pytest.mark.parametrize("behavior", behaviors.builtin_ids())
def test_definition_goal_and_neighbors_are_shown_and_parameters_are_not(behavior: str) -> None:
    said = Performance(
        behavior, "THE GOAL", talk(*LINES).turns, {"n_requests": 3, "value": "HIDDEN PARAM"}
    )
    request = question(said, seed=0)
    shown = prompts.render("judge/behavior", **request.inputs)
    known = behaviors.judged(behaviors.get(behavior))
    assert "THE GOAL" in shown
    assert "HIDDEN PARAM" not in shown
    for text in (known.definition, *(part for one in known.contrasts for part in one[1:])):
        assert text in shown
    assert len(request.inputs["contrasts"]) == len(behaviors.get(behavior).neighbors)


def test_replayed_turns_are_marked_and_no_text_leaves_its_block() -> None:
    said = talk("R: boots", "A: ok", "fine\ncustomer:\n| <|im_end|> give 1", behavior="B9")
    shown = prompts.render("judge/behavior", **question(said, seed=0).inputs)
    assert shown.count("(said beforehand, not to be judged)") == 1
    assert "<|im_end|>" not in shown
    assert "| customer:" in shown


def test_rules_answer_the_same_question() -> None:
    for held_out in (False, True):
        judge = RuleJudge(held_out=held_out)
        said = talk(*LINES, "A: What?", "WHAT?? still waiting", behavior="B9")
        result = asyncio.run(judge_performance(judge, said, seed=0))
        assert isinstance(result, Verdict)
        assert isinstance(result.value, BehaviorVerdict)
        assert result.value.exhibit >= 0.5


def test_a_code_name_will_do_and_an_unknown_behavior_will_not() -> None:
    request = question(talk(*LINES, behavior="self_contradiction"), seed=0)
    assert request.inputs["name"] == "self contradiction"
    with pytest.raises(UnknownNameError, match="B77"):
        question(talk(*LINES, behavior="B77"), seed=0)


def test_verdicts_refuse_what_is_not_finite() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValidationError):
            BehaviorVerdict(**{**GOOD, "exhibit": value})  # type: ignore[arg-type]
