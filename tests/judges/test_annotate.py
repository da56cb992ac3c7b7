"""Labels of behaviors: typed, checked against the conversation, counted, compared."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mimesim.dialogue.types import Role
from mimesim.errors import UsageError
from mimesim.judges.annotate import Dialogue, Labels, annotate
from mimesim.judges.base import Failed, JudgeResult, Skipped, Verdict
from mimesim.judges.labeling import agreements, counts, read_dialogues, work_on
from mimesim.judges.load import make_judge
from mimesim.judges.rule import RuleJudge
from mimesim.judges.stored import Stored, Verdicts
from tests.support.stub_server import Reply, StubServer

ROLES = (Role.USER, Role.AGENT)


def dialogue(name: str, *lines: str) -> Dialogue:
    """Return a conversation; customer and agent take turns."""
    return Dialogue(name, tuple((ROLES[i % 2], text) for i, text in enumerate(lines)))


RUDE = dialogue("rude", "boots back", "What is your order number?", "can you read, idiot")
PLAIN = dialogue("plain", "boots back", "What is your order number?", "its 5512093381")


def labels(*found: dict[str, Any]) -> str:
    base = {"behavior": "B13", "turns": [2], "confidence": 0.9, "why": "insult"}
    return json.dumps({"labels": [{**base, **one} for one in found]})


def ask(*replies: Reply) -> JudgeResult[Labels]:
    with StubServer(replies) as server:

        async def run() -> JudgeResult[Labels]:
            judge = make_judge(f"model:openai:stub@{server.url}")
            try:
                return await annotate(judge, RUDE, seed=0)
            finally:
                await judge.aclose()

        return asyncio.run(run())


def test_a_model_labels() -> None:
    result = ask(labels({}, {"behavior": "B9", "confidence": 3}))
    assert isinstance(result, Verdict)
    assert [(one.behavior, one.turns, one.confidence) for one in result.value.labels] == [
        ("B13", [2], 0.9),
        ("B9", [2], 1.0),
    ]
    empty = ask('{"labels": []}')
    assert isinstance(empty, Verdict)
    assert empty.value.names() == frozenset()


@pytest.mark.parametrize(
    "answer",
    [
        labels({"behavior": "B14"}),
        labels({"turns": [1]}),
        labels({"turns": [9]}),
        labels({"turns": []}),
        labels({"confidence": "high"}),
        labels({}, {}),
        labels({"confidence": 0.5}).replace("0.5", "NaN"),
        "the customer is rude",
        "",
    ],
)
def test_impossible_labels_are_no_verdict(answer: str) -> None:
    assert isinstance(ask(answer), Failed)


def test_rules_label_by_words_alone() -> None:
    result = asyncio.run(annotate(RuleJudge(), RUDE, seed=0))
    assert isinstance(result, Verdict)
    (label,) = result.value.labels
    assert (label.behavior, label.turns) == ("B13", [2])
    assert "idiot" in label.why or "can you read" in label.why
    plain = asyncio.run(annotate(RuleJudge(), PLAIN, seed=0))
    assert isinstance(plain, Verdict)
    assert plain.value.labels == []


def test_without_a_customer_nobody_is_asked() -> None:
    silent = Dialogue("s", ((Role.AGENT, "hello?"), (Role.USER, " ")))
    assert asyncio.run(annotate(RuleJudge(), silent, seed=0)) == Skipped("no_customer_turn")


def labeled(path: Path, judge: RuleJudge, *dialogues: Dialogue) -> list[Stored]:
    async def run() -> list[Stored]:
        with Verdicts(path) as file:
            return await file.all(work_on(dialogues, judge, seed=0), judge.identity)

    return asyncio.run(run())


def test_counts_have_intervals_and_leave_out_what_failed(tmp_path: Path) -> None:
    stored = labeled(tmp_path / "l.jsonl", RuleJudge(), RUDE, PLAIN, dialogue("none", ""))
    stored.append(Stored("x", "annotate", "rule", "failed", reason="prose"))
    (first, *others) = counts(stored)
    assert (first.behavior, first.dialogues, first.turns) == ("B13", 1, 1)
    assert (first.share.value, first.share.n) == (0.5, 2)
    assert first.share.low is not None
    assert all(one.dialogues == 0 and one.confidence is None for one in others)
    assert len(others) == 12


def test_two_annotators_are_compared_per_behavior(tmp_path: Path) -> None:
    first = labeled(tmp_path / "l.jsonl", RuleJudge(), RUDE, PLAIN)
    second = [
        Stored("rude", "annotate", "m", "scored", value={"labels": []}),
        Stored("plain", "annotate", "m", "failed", reason="prose"),
    ]
    found = agreements(first, second)
    assert found.keys() == {"B13"}
    assert (found["B13"].asked, found["B13"].n, found["B13"].share.value) == (2, 1, 0)


def test_conversations_of_a_corpus_are_read(tmp_path: Path) -> None:
    path = tmp_path / "logs.jsonl"
    turns = [{"role": "user", "text": "hurry up"}, {"role": "agent", "text": "Yes?"}]
    path.write_text(json.dumps({"id": "one", "turns": turns}) + "\n", "utf-8")
    (found,) = read_dialogues(str(path))
    assert [(role.value, text) for role, text in found.turns] == [
        ("user", "hurry up"),
        ("agent", "Yes?"),
    ]
    with pytest.raises(UsageError):
        read_dialogues(str(tmp_path / "missing.jsonl"))
