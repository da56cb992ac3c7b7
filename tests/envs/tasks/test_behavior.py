"""The behavior task: rows, replay, roll-out, judge at the end, what is logged, what is missing."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from mimesim.corpora.base import Unfit
from mimesim.dialogue.stop import END_MARKER, Status
from mimesim.dialogue.types import Role
from mimesim.envs.base import StepResult, Task
from mimesim.envs.tasks import behavior, behavior_agent
from mimesim.envs.tasks.base import POLICY, Line
from mimesim.envs.tasks.load import load_rows
from mimesim.envs.tasks.partner import ModelPartner
from mimesim.envs.tasks.players import ChatPlayers, Ends
from mimesim.judges.episodes import Unjudged, performance_of
from mimesim.judges.rubric import RubricJudge
from mimesim.judges.rule import RuleJudge
from mimesim.models.scripted import Scripted
from mimesim.scenarios import behaviors, manual
from mimesim.scenarios.types import Row as Case
from mimesim.scenarios.views import to_view
from tests.envs.tasks.asking import episodes, play, task_from

NAME = "behavior"


@cache
def everything() -> list[Task]:
    return [
        t for split in ("train", "validation", "test") for t in load_rows(NAME, split=split).tasks
    ]


def row(kind: str | None) -> Task:
    """Return the first own row of a behavior."""
    return next(t for t in everything() if t.public["behavior"] == kind)


def grading(result: StepResult) -> dict[str, Any]:
    return dict(result.private.grading)


def test_the_own_rows_hold_every_behavior_and_a_third_neutral_ones() -> None:
    kinds = [t.public["behavior"] for t in everything()]
    assert len(kinds) >= 20
    assert set(kinds) == {None, *behaviors.builtin_ids()}
    assert 0.28 <= kinds.count(None) / len(kinds) <= 0.38


def test_the_ends_of_the_scale_are_the_documented_ones() -> None:
    for players, end in ((Ends("oracle"), 1.0), (Ends("null"), behavior.TASK.info.floor)):
        played = episodes(everything(), players)
        rewards = [episode.outcome.reward or 0.0 for episode in played]
        assert all(episode.outcome.status is Status.COMPLETED for episode in played)
        assert sum(rewards) / len(rewards) == pytest.approx(end, abs=1e-4)


def test_the_customer_is_told_what_it_knows_and_nothing_of_the_company() -> None:
    for task in everything():
        (episode,) = episodes([task], Ends("null"))
        case = Case.from_json(task.hidden["row"], "row")
        assert (
            task.public["goal"] in episode.system
            or json.dumps(task.public["goal"]) in episode.system
        )
        assert str(case.record["customer_name"]) in episode.system
        assert str(case.env["as_of"]) not in episode.system
        directive = " ".join(task.public["directive"].split())
        assert directive in " ".join(episode.system.replace("|", " ").split())
        if case.behavior is None:
            assert "An everyday customer" in episode.system
        if case.behavior == "B8":
            assert "true_value" not in task.public["params"]


def test_the_identity_check_is_replayed_and_not_judged() -> None:
    task = row("B9")
    assert task.public["replay"]
    (episode,) = episodes([task], Ends("oracle"))
    first = episode.turns[0]
    assert first.role is Role.USER
    for message in task.public["replay"]:
        assert message["text"] in first.content.replace("| ", "")
    found = performance_of(episode)
    assert not isinstance(found, Unjudged)
    assert [t.text for t in found.turns if t.replayed] == [m["text"] for m in task.public["replay"]]
    assert len(found.own) == len(episode.steps)


def test_a_stored_episode_is_judged_as_it_was_in_the_run() -> None:
    from mimesim.judges.behavior_rules import MAIN, rule_answer

    for task in everything():
        (episode,) = episodes([task], Ends("oracle"))
        found = performance_of(episode)
        assert not isinstance(found, Unjudged)
        again = rule_answer(found, MAIN)
        assert again is not None
        logged = (episode.private or {})["grading"][-1]
        assert {k: logged[k] for k in again} == again, task.id


def test_leaving_ends_the_conversation_and_is_judged() -> None:
    task = row("B10")
    result = play(task, "hi, its about my order", f"forget it, im off {END_MARKER}")
    assert result.done
    assert str(result.by) == "agent"
    assert grading(result)["exhibit"] == 1


def test_the_budget_ends_it_after_the_agent_has_answered() -> None:
    task = row(None)
    said = ["hi"] * (task.hidden["row"]["turn_budget"] - 1)
    assert not play(task, *said).done
    assert play(task, *said, "hi").done


def test_saying_nothing_at_all_is_no_verdict_and_no_reward() -> None:
    asked = []

    def reply(messages: Any, sampling: Any) -> str:
        asked.append(messages)
        return "{}"

    result = play(row("B9"), END_MARKER, judge=RubricJudge(Scripted(reply)))
    assert (result.done, result.reward, asked) == (True, 0.0, [])
    assert grading(result)["faults"] == ["empty_utterance"]


def verdicts(**values: Any) -> RubricJudge:
    good = {"exhibit": 0.9, "placement": 0.8, "naturalness": 0.7, "on_task": 1, "announced": False}
    return RubricJudge(Scripted(lambda messages, sampling: json.dumps({**good, **values})))


def test_the_reward_is_the_judges_and_check_and_gap_are_logged() -> None:
    result = play(row("B9"), "hi", f"hurry up {END_MARKER}", judge=verdicts())
    assert result.reward == pytest.approx(0.84)
    found = grading(result)
    assert (found["check"], found["check_gap"]) == (0.5, pytest.approx(-0.4))
    assert found["faults"] == []
    assert found["thought_cites_directive"] is False
    announced = play(row("B9"), f"hi {END_MARKER}", judge=verdicts(announced=True))
    assert announced.reward == pytest.approx(0.42)


PROSE = RubricJudge(Scripted(lambda messages, sampling: "rather impatient"))


def test_a_failed_judge_is_missing_data_and_zero_in_compat() -> None:
    (episode,) = episodes([row("B9")], Ends("oracle"), judge=PROSE)
    assert episode.outcome.status is Status.JUDGE_FAILURE
    assert episode.outcome.reward is None
    result = play(row("B9"), f"hi {END_MARKER}", judge=PROSE, mode="compat")
    assert (result.done, result.reward) == (True, 0.0)
    assert grading(result)["judge_failed"] is True


def test_a_customer_that_must_think_and_does_not_gets_nothing_in_training() -> None:
    said = ["hi", f"hurry up {END_MARKER}"]
    for mode, reward in {
        "fixed": 0.84,
        "train": 0.84,
        "train-thinking": 0.0,
        "compat-train": 0.0,
    }.items():
        result = play(row("B9"), *said, judge=verdicts(), mode=mode)
        assert result.reward == pytest.approx(reward), mode
    assert grading(result)["faults"] == ["malformed_thought"]


def test_the_agent_sees_what_was_said_and_the_policy_of_this_errand() -> None:
    task, seen = row("B8"), []

    def reply(messages: Any, sampling: Any) -> str:
        seen.append([m.content for m in messages])
        return "Agent: I see that."

    (episode,) = episodes([task], Ends("oracle"), partner=ModelPartner(Scripted(reply)))
    case = Case.from_json(task.hidden["row"], "row")
    book = manual.load()
    system = seen[0][0]
    for line in (*book.general, *book.request(case.subflow).instructions):
        assert json.dumps(line) in system
    assert str(case.env["as_of"]) in system
    assert str(case.record["customer_name"]) not in system
    assert task.public["directive"].splitlines()[0] not in "".join(seen[-1])
    assert task.public["replay"][0]["text"] in seen[0][1]
    assert episode.turns[2].content == "I see that."


@pytest.mark.parametrize(
    ("raw", "tidied"),
    [
        ("Support Agent: Hello there.", "Hello there."),
        ("One moment please.One moment please.", "One moment please."),
        ("Hello.\n\nHello.", "Hello."),
        (" ".join(map(str, range(300))), " ".join(map(str, range(200)))),
        ("aa", "aa"),
        ("Fine.", "Fine."),
    ],
)
def test_replies_of_the_agent_are_tidied(raw: str, tidied: str) -> None:
    assert behavior_agent.tidy_reply(raw) == tidied


def test_the_agent_by_rule_asks_proposes_and_stands_by_the_policy() -> None:
    seen: set[str] = set()
    for task in everything():
        case, book = Case.from_json(task.hidden["row"], "row"), manual.load()
        lines = [Line(POLICY, "hi")]
        for _ in range(12):
            lines.append(Line("agent", behavior_agent.rule_reply(case, book, lines)))
            lines.append(Line(POLICY, "yes"))
        own = [line.text for line in lines if line.by == "agent"]
        assert all(own), "never silent"
        seen.update(text.split()[0] for text in own)
        asked = [text for text in own[:-3] if text.endswith("?")]
        assert all(asked.count(text) <= 1 for text in asked), "no question in the same words again"
    assert {"Could", "I", "That", "Thank"} <= seen


def extra(**changes: Any) -> dict[str, Any]:
    view = to_view(Case.from_json(row("B9").hidden["row"], "row"))
    return {**view, **changes}


def test_rows_of_the_original_are_read_as_json_texts() -> None:
    view = to_view(Case.from_json(row("B9").hidden["row"], "row"), compat=True)
    assert task_from(NAME, view).public == task_from(NAME, extra()).public


@pytest.mark.parametrize(
    "changes",
    [
        {"subflow": "no_such_errand"},
        {"behavior_ids": ["B77"]},
        {"behavior_ids": ["B9", "B4"], "kwargs": [{}, {}]},
        {"scenario": {"personal": {}, "order": {}, "product": {}, "flow": "x", "subflow": "y"}},
        {"turn_budget": 0},
        {"manual": "no_such_manual"},
        {"scenario": "not json"},
        {"flow": None},
    ],
)
def test_a_bad_row_is_left_out_with_its_reason(changes: dict[str, Any]) -> None:
    with pytest.raises(Unfit) as caught:
        task_from(NAME, extra(**changes))
    assert caught.value.reason == "bad_row"
    assert caught.value.detail


def test_the_held_out_judge_scores_the_same_roll_outs() -> None:
    played = episodes(everything(), Ends("oracle"), judge=RuleJudge(held_out=True))
    rewards = [episode.outcome.reward or 0.0 for episode in played]
    assert 0.75 <= sum(rewards) / len(rewards) < 1


def test_the_judge_of_b1_reads_the_thoughts_and_a_short_one_fails_the_form() -> None:
    seen = []

    def reply(messages: Any, sampling: Any) -> str:
        seen.append(messages[1].content)
        return json.dumps(
            {"exhibit": 1, "placement": 1, "naturalness": 1, "on_task": 1, "announced": False}
        )

    def customer(messages: Any, sampling: Any) -> str:
        thought = "that is not my card, no" if len(messages) < 3 else "bye"
        return f"<think>\n{thought}\n</think>\n\nhm. if you say so"

    for kind, shown in {"B1": True, "B9": False}.items():
        seen.clear()
        (episode,) = episodes(
            [row(kind)], ChatPlayers(Scripted(customer)), judge=RubricJudge(Scripted(reply))
        )
        logged = (episode.private or {})["grading"][-1]
        assert episode.outcome.reward == 1
        assert logged["faults"] == ["short_thought"]
        assert ("that is not my card" in seen[-1]) is shown
