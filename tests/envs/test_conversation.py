"""Conversations without a gym: who ends them, how often who speaks, what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import Party, Status, StopReason
from mimesim.dialogue.types import Role
from mimesim.envs.conversation import read_scenarios
from mimesim.envs.load import REGISTRY, describe_gyms, load_gym
from mimesim.errors import CallerError, DataError, UsageError
from mimesim.rollout.prepare import RunConfig, execute, prepare
from tests.support.stub_server import StubServer

SCENARIO: dict[str, Any] = {"id": "s1", "goal": "send a teapot back", "facts": {"color": "blue"}}


def polite(message: str, turn: int, context: Mapping[str, Any]) -> str:
    return f"Answer {turn} {context.get('shop', '')}".strip()


SORTED = "All sorted! ###STOP###"


def sorted_out(message: str) -> str:
    return SORTED


def well_mannered(message: str) -> str:
    return "It is here." if "?" in message else "My pleasure, bye!"


def silent(message: str) -> str:
    return "x" * 9000


def write(path: Path, *scenarios: Mapping[str, Any]) -> Path:
    path.write_text("".join(jsonio.dumps(dict(one)) + "\n" for one in scenarios), "utf-8")
    return path


def play(
    tmp_path: Path,
    replies: list[Any],
    *,
    agent: str = "polite",
    limits: Any = None,
    user_options: Mapping[str, Any] | None = None,
    **scenario: Any,
) -> Episode:
    file = write(tmp_path / "s.jsonl", {**SCENARIO, **scenario})
    with StubServer(replies) as server:
        config = RunConfig(
            scenarios=file,
            agent=f"python:{__name__}:{agent}",
            user=f"roleplay:openai:stub@{server.url}",
            user_options=user_options or {},
            episodes=1,
            **({"limits": limits} if limits else {}),
        )
        return asyncio.run(execute(prepare(config))).episodes[0]


def said(episode: Episode) -> list[tuple[str, str]]:
    return [(turn.role.value, turn.content) for turn in episode.turns if turn.delivered]


def test_an_end_with_text_is_delivered_and_answered_once(tmp_path: Path) -> None:
    """C-STOP-01."""
    for marker in ("###STOP###", "/close", "<|endconversation|>"):
        episode = play(tmp_path, ["hello", f"Yes please, go ahead. {marker}", "never"])
        assert said(episode) == [
            ("user", "hello"),
            ("agent", "Answer 0"),
            ("user", "Yes please, go ahead."),
            ("agent", "Answer 1"),
        ]
        assert (episode.stop.reason, episode.stop.by) == (StopReason.USER_STOP, Party.USER)
        assert (episode.outcome.status, episode.outcome.success) == (Status.COMPLETED, None)


def test_an_end_that_is_only_thought_of_is_none(tmp_path: Path) -> None:
    """C-STOP-03: the thought is kept where thoughts are, and the talk goes on."""
    thought = "If she says no again I write ###STOP###"
    raw = ["hello", f"<think>{thought}</think>Could you check once more?", "###STOP###"]
    episode = play(tmp_path, raw, user_options={"thinking": True})
    assert said(episode)[2:] == [("user", "Could you check once more?"), ("agent", "Answer 1")]
    assert episode.private is not None
    assert [(t["turn"], t["text"]) for t in episode.private["thoughts"]] == [(2, thought)]


def test_an_agent_that_prints_an_end_is_answered(tmp_path: Path) -> None:
    """C-STOP-04, with a model as user."""
    raw = ["hello", "But you have not refunded me.", "###STOP###"]
    episode = play(tmp_path, raw, agent="sorted_out")
    assert [text for _, text in said(episode)] == [raw[0], SORTED, raw[1], SORTED]
    assert (episode.stop.reason, episode.stop.by) == (StopReason.USER_STOP, Party.USER)
    assert [event["guard"] for event in episode.guards] == ["agent_marker"] * 2


def test_courtesies_are_cut_short_and_a_question_is_none(tmp_path: Path) -> None:
    """C-STOP-06."""
    raw = [
        "where is it?",
        "thanks!",
        "thanks, and the invoice?",
        "thank you so much",
        "bye, thanks",
    ]
    episode = play(tmp_path, [*raw, "bye"], agent="well_mannered")
    assert [text for role, text in said(episode) if role == "user"] == raw
    assert said(episode)[-1] == ("agent", "My pleasure, bye!")
    assert (episode.stop.reason, episode.stop.by) == (StopReason.LOOP_DETECTED, Party.RUNNER)


def test_a_record_names_the_prompt_of_its_own_person(tmp_path: Path) -> None:
    """C-FID-02: two people who differ in nothing but who they are."""
    people = ("impatient", "calm", "calm")
    found = [play(tmp_path, ["hello", "###STOP###"], persona=one).user for one in people]
    hashes = [user.prompt_hash for user in found if user is not None]
    assert len(hashes) == 3
    assert hashes[0] != hashes[1] == hashes[2]


def test_a_bare_end_stops_at_once(tmp_path: Path) -> None:
    episode = play(tmp_path, ["hello", "###STOP###"])
    assert said(episode) == [("user", "hello"), ("agent", "Answer 0")]
    assert episode.stop.reason is StopReason.USER_STOP


def test_nothing_is_scored(tmp_path: Path) -> None:
    episode = play(tmp_path, ["hello", "###STOP###"])
    assert episode.outcome.status is Status.COMPLETED
    assert (episode.outcome.reward, episode.outcome.success) == (None, None)


def test_other_graces(tmp_path: Path) -> None:
    none = play(tmp_path, ["hello", "bye ###STOP###"], end={"grace": "none"})
    assert said(none)[-1] == ("user", "bye")
    again = play(
        tmp_path, ["hello", "bye ###STOP###", "one more", "###STOP###"], end={"grace": "ask_user"}
    )
    assert [text for role, text in said(again) if role == "user"] == ["hello", "bye", "one more"]


def test_the_scenario_limits_the_turns(tmp_path: Path) -> None:
    """C-STOP-05: three messages, three answers."""
    episode = play(tmp_path, ["hello", "and what else?", "and then?", "never"], max_turns=3)
    assert [role for role, _ in said(episode)] == ["user", "agent"] * 3
    assert (episode.stop.reason, episode.stop.by) == (StopReason.MAX_TURNS, Party.RUNNER)
    assert (episode.turns_used, episode.stop.limit) == (3, 3.0)
    assert episode.outcome.status is Status.TRUNCATED


def test_a_transfer_has_its_reason(tmp_path: Path) -> None:
    episode = play(tmp_path, ["hello", "###TRANSFER###"])
    assert episode.stop.reason is StopReason.USER_TRANSFER


def test_the_agent_gets_its_context_and_nothing_private(tmp_path: Path) -> None:
    episode = play(tmp_path, ["hello", "###STOP###"], agent_context={"shop": "Fernwick"})
    assert said(episode)[1] == ("agent", "Answer 0 Fernwick")
    assert "teapot" not in jsonio.dumps(dict(episode.task.public))


def test_an_answer_that_cannot_be_said_ends_it(tmp_path: Path) -> None:
    episode = play(tmp_path, ["hello"], agent="silent")
    assert (episode.stop.reason, episode.stop.by) == (StopReason.AGENT_INVALID, Party.AGENT)


def test_a_withheld_fact_comes_out_when_the_agent_asks(tmp_path: Path) -> None:
    leak = ["it is blue", "hello", "###STOP###"]
    episode = play(tmp_path, leak, withhold=["color"])
    assert said(episode)[0] == ("user", "hello")
    assert any(guard["guard"] == "withheld_leak" for guard in episode.guards)


def test_scripts_are_played_word_for_word(tmp_path: Path) -> None:
    episode = play(tmp_path, [], script=["first", "second"])
    assert [text for role, text in said(episode) if role == "user"] == ["first", "second"]
    assert episode.stop.reason is StopReason.USER_STOP


def test_a_snapshot_brings_back_the_conversation(tmp_path: Path) -> None:
    file = write(tmp_path / "s.jsonl", {**SCENARIO, "script": ["first", "second", "third"]})
    (task,) = read_scenarios(file)

    async def run() -> list[str]:
        from mimesim.envs.base import AgentAction, Choice
        from mimesim.users.load import make_user

        source = make_user("scripted:cooperative")
        talks = []
        for _ in range(2):
            user = source.start(task.scenario, seed=1)
            talks.append(
                load_gym("conversation").make("default", user=user, judge=None, options=None)
            )
            await talks[-1].reset(task, seed=1)
        first, second = talks
        action = AgentAction(Choice.ACTION, "go on")
        await first.step(action)
        second.restore(first.snapshot())
        results = [await talk.step(action) for talk in talks]
        with pytest.raises(CallerError):
            second.restore({**first.snapshot(), "task_id": "other"})
        return [result.feedback[0].content for result in results]

    assert asyncio.run(run()) == ["third", "third"]


@pytest.mark.parametrize(
    ("scenarios", "words"),
    [
        ([SCENARIO, SCENARIO], r"s\.jsonl:2.*s\.jsonl:1 too"),
        ([{**SCENARIO, "history": [{"role": "user", "content": "x"}]}], "history"),
        ([{**SCENARIO, "persnoa": "x"}], "did you mean 'persona'"),
        ([], "no scenario"),
    ],
)
def test_files_that_cannot_be_played(tmp_path: Path, scenarios: list[Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_scenarios(write(tmp_path / "s.jsonl", *scenarios))


@pytest.mark.parametrize(
    "wrong",
    [{"agent": "scripted:eager"}, {"tasks": Path("t.jsonl")}, {"profile": "compact"}, {"gym": "x"}],
    ids=str,
)
def test_what_only_a_gym_has_is_refused_beside_scenarios(tmp_path: Path, wrong: Any) -> None:
    file = write(tmp_path / "s.jsonl", SCENARIO)
    known = {"agent": f"python:{__name__}:polite", "user": "scripted:neutral", **wrong}
    with pytest.raises(UsageError):
        prepare(RunConfig(scenarios=file, **known))


def test_it_is_no_gym_on_any_list() -> None:
    assert "conversation" not in REGISTRY.names()
    assert "conversation" not in [gym["name"] for gym in describe_gyms()]
    with pytest.raises(UsageError, match="--scenarios"):
        load_gym("conversation").tasks("default", "test", 0, 1)


def test_roles_of_the_record_are_public_ones(tmp_path: Path) -> None:
    episode = play(tmp_path, ["hello", "###STOP###"])
    assert {turn.role for turn in episode.turns} == {Role.USER, Role.AGENT}
