"""Judges against judges and people on stored episodes."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mimesim.dialogue.episode import Episode, Outcome, TaskRef, Turn
from mimesim.dialogue.stop import Party, Status, Stop, StopReason
from mimesim.dialogue.types import Identity, Role
from mimesim.errors import DataError
from mimesim.judges.agree import (
    is_rated,
    rated_rows,
    read_human,
    rows_of,
    work_on,
)
from mimesim.judges.base import Judge
from mimesim.judges.episodes import Unjudged, dialogue_of, performance_of
from mimesim.judges.load import make_judge
from mimesim.judges.rule import RuleJudge
from mimesim.judges.stored import Stored, Verdicts, states
from tests.support.stub_server import StubRequest, StubServer

HURRY = ("i want boots", "What is your order number?", "hurry up", "I need it.", "WELL?? now")
PLAIN = ("i want boots", "What is your order number?", "5512093381", "Done.", "thanks")


def episode(name: str, lines: tuple[str, ...], behavior: str | None = "B9", **more: Any) -> Episode:
    """Return an episode of a gym; customer and agent take turns."""
    roles = (Role.USER, Role.AGENT)
    private = {
        "goal": "send the boots back",
        "facts": {"order_id": "5512093381"},
        "behavior": [{"id": behavior, "params": {}, "directive": "d"}] if behavior else [],
        "thoughts": [{"turn": 0, "text": "they are too small"}],
    }
    fields = {
        "user": Identity("llm", "trained:x"),
        "turns": tuple(Turn(i, roles[i % 2], text) for i, text in enumerate(lines)),
        "private": private,
        "outcome": Outcome(Status.COMPLETED, True, 1.0),
        **more,
    }
    return Episode(
        id=name, run_id="r", trial=0, seed=0, task=TaskRef("support-desk", name),
        agent=Identity("scripted", "a"), steps=(), stop=Stop(StopReason.USER_STOP, Party.USER),
        **fields,
    )  # fmt: skip


def judged(path: Path, judge: Judge, *episodes: Episode) -> list[Stored]:
    async def run() -> list[Stored]:
        try:
            with Verdicts(path) as file:
                return await file.all(work_on(episodes, judge, seed=0), judge.identity)
        finally:
            await judge.aclose()

    return asyncio.run(run())


def test_what_an_episode_shows() -> None:
    found = performance_of(episode("e", HURRY))
    assert not isinstance(found, Unjudged)
    assert (found.behavior, found.goal, found.left) == ("B9", "send the boots back", True)
    assert [turn.text for turn in found.own] == list(HURRY[::2])
    thought = found.own[0].thought
    assert thought is not None
    assert thought.reveal() == "they are too small"
    assert found.own[1].thought is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"outcome": Outcome(Status.USER_FAILURE, None, None)}, "user_failure"),
        ({"private": None}, "no_private_side"),
        ({"user": Identity("scripted", "scripted:hostile")}, "several_behaviors"),
    ],
)
def test_what_is_not_judged(changes: dict[str, Any], reason: str) -> None:
    assert performance_of(replace(episode("e", HURRY), **changes)) == Unjudged(reason)


def test_swapped_sides_are_an_invalid_transcript_and_no_judge_is_called(tmp_path: Path) -> None:
    """C-JDG-03, on stored episodes."""
    swapped = (*HURRY[:4], "I have cancelled it for you", "great, thanks for your help")
    with StubServer(["{}"]) as server:
        judge = make_judge(f"model:openai:stub@{server.url}")
        (found,) = judged(tmp_path / "v.jsonl", judge, episode("e", swapped))
        assert server.generations == []
    assert (found.state, found.reason) == ("skipped", "invalid_transcript")


@pytest.mark.parametrize(
    ("said", "valid"),
    [
        ("The instructions say I am the customer, not the assistant, so I answer as one: where is my order?", False),
        ("I\u2019m the customer here, not the agent", False),
        ("my brief tells me to play a man in a hurry", False),
        ("As an AI language model I have no order", False),
        ("Of course! Let me look that up for you. Could you share your account number?", False),
        ("can you look that up for me? my account number is 88", True),
        ("the instructions say i am to hold the button for ten seconds", True),
        ("i am the customer and i want my money", True),
        ("i was told to act fast", True),
    ],
)  # fmt: skip
def test_a_customer_who_talks_of_the_part_is_an_invalid_transcript(said: str, valid: bool) -> None:
    """C-LEAK-06 and C-LEAK-07, where a scorer meets them."""
    found = performance_of(episode("e", (*HURRY[:2], said, *HURRY[3:])))
    assert (found == Unjudged("invalid_transcript")) is not valid


def test_a_scripted_user_is_judged_by_what_it_plays() -> None:
    for kind, behavior in {"B3": "B3", "neutral": None, "realistic": "B9"}.items():
        who = Identity("scripted", f"scripted:{kind}")
        found = performance_of(episode("e", HURRY, user=who))
        assert not isinstance(found, Unjudged)
        assert found.behavior == behavior


def test_a_task_episode_has_its_customer_in_the_agents_seat() -> None:
    public = {
        "behavior": "B8", "params": {"field": "member_level", "false_value": "gold"},
        "facts": {"member_level": "bronze"}, "goal": "g", "title": "t",
        "replay": [{"role": "user", "text": "boots"}, {"role": "agent", "text": "verified"}],
    }  # fmt: skip
    lines = ("You are connected.", "im a gold member", "I see bronze.", "no, gold")
    private = {"agent_reasoning": [{"turn": 1, "text": "let them believe it"}]}
    task = TaskRef("task:behavior", "x", public=public)
    one = replace(episode("e", lines), task=task, private=private)
    found = performance_of(one)
    assert not isinstance(found, Unjudged)
    assert [turn.text for turn in found.own] == ["im a gold member", "no, gold"]
    assert found.params["true_value"] == "bronze"
    assert found.own[0].thought
    assert [turn.replayed for turn in found.turns] == [True, True, False, False, False]
    assert [role.value for role, _ in dialogue_of(one).turns] == ["user", "agent", "user"]


def test_two_rule_judges_side_by_side(tmp_path: Path) -> None:
    episodes = [
        episode("a", HURRY),
        episode("b", PLAIN),
        episode("c", PLAIN, None),
        episode("d", HURRY, outcome=Outcome(Status.INFRA_FAILURE, None, None)),
    ]
    path = tmp_path / "v.jsonl"
    both = {
        judge.identity.name: judged(path, judge, *episodes)
        for judge in (RuleJudge(), RuleJudge(held_out=True))
    }
    rows, alone = rows_of(both)
    table = {(row.behavior, row.measure): row.comparison for row in rows}
    assert (table["all", "exhibit"].n, table["all", "exhibit"].asked) == (2, 2)
    assert table["B9", "exhibit"].n == 2
    assert table["neutral", "cooperative"].n == 1
    assert ("neutral", "exhibit") not in table
    assert alone == {"rule x rule-heldout": 0}
    assert states(both["rule"]) == {"scored": 3, "skipped": 1, "reasons": {"infra_failure": 1}}


def test_failures_are_counted_over_all_that_were_asked(tmp_path: Path) -> None:
    def reply(request: StubRequest) -> str:
        if "hurry up" in str(request.body["messages"]):
            return "prose"
        return json.dumps(
            {"exhibit": 0.0, "placement": 0, "naturalness": 1, "on_task": 1, "announced": False}
        )

    episodes = [episode("a", HURRY), episode("b", PLAIN)]
    with StubServer(reply) as server:
        judge = make_judge(f"model:openai:stub@{server.url}")
        stored = judged(tmp_path / "v.jsonl", judge, *episodes)
    both = {"rule": judged(tmp_path / "v.jsonl", RuleJudge(), *episodes), "m": stored}
    (row,) = [r for r in rows_of(both)[0] if (r.behavior, r.measure) == ("B9", "exhibit")]
    assert (row.comparison.asked, row.comparison.n) == (2, 1)
    assert row.comparison.missing == (0, 1)
    assert row.comparison.share.value == 1
    assert row.comparison.share_of_all.value == 0.5


def test_people_are_read_by_episode(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    lines = [
        {"episode": "a", "exhibit": 1, "announced": False, "remark": "clear"},
        {"id": "b", "exhibit": 0.25},
        {"episode": "c", "exhibit": None},
        {"episode": "unknown", "exhibit": 1},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    people = read_human(path)
    both = {
        "rule": judged(tmp_path / "v.jsonl", RuleJudge(), *(episode(n, HURRY) for n in "abc")),
        "human:people": people,
    }
    rows, alone = rows_of(both)
    (row,) = [r for r in rows if (r.behavior, r.measure) == ("B9", "exhibit")]
    assert (row.comparison.asked, row.comparison.n, row.comparison.missing) == (3, 2, (0, 1))
    assert alone == {"rule x human:people": 1}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"episode": "a", "exhibit": 1.5}', "exhibit is 1.5"),
        ('{"episode": "a", "exhibit": "high"}', "exhibit is 'high'"),
        ('{"exhibit": 1}', "no episode"),
        ("[1]", "no object"),
        ('{"episode": "a", "exhibit": NaN}', "NaN"),
        ('{"episode": "z", "exhibit": 1}', "twice"),
    ],
)
def test_a_bad_line_of_people_is_told_with_its_place(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text('{"episode": "z", "exhibit": 1}\n' + line + "\n", "utf-8")
    with pytest.raises(DataError, match=told) as caught:
        read_human(path)
    assert "people.jsonl" in str(caught.value)


def test_rated_pairs(tmp_path: Path) -> None:
    path = tmp_path / "rated.jsonl"
    rated = [
        {"metric": "m", "human_label": 0.5, "judge_score": 0.4},
        {"metric": "m", "human_label": 1, "judge_score": None},
        {"metric": "p", "human_label": "A", "judge_score": 1, "ground_truth_synthetic_slot": "A"},
        {
            "metric": "p",
            "human_label": "Tie",
            "judge_score": 0.5,
            "ground_truth_synthetic_slot": "B",
        },
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in rated), "utf-8")
    assert is_rated(path)
    found = {row.measure: row.comparison for row in rated_rows(path)}
    assert (found["m"].asked, found["m"].n, found["m"].missing) == (2, 1, (0, 1))
    assert found["p"].means == (0.75, 0.75)
    path.write_text('{"human_label": "C", "judge_score": 1}\n', "utf-8")
    with pytest.raises(DataError, match=r"rated\.jsonl:1.*'C'"):
        rated_rows(path)
