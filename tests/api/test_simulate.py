"""`mimesim.simulate`: any callable, any scenario, failures apart, files, both denominators."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import mimesim
from mimesim import jsonio
from mimesim.dialogue.episode import Episode, without_times
from mimesim.dialogue.stop import Party, StopReason
from mimesim.dialogue.types import Reply, Thought
from mimesim.errors import ConfigError, DataError, EnvironmentFault, UsageError, UserError
from mimesim.scenarios.types import Scenario
from tests.support.stub_server import StubRequest, StubServer

LINES = ["hello", "it is order 41"]
GOALS = ["get a refund for the blue kettle", "change the date of a visit"]


def shop(messages: list[dict[str, Any]]) -> str:
    return f"Answer {sum(m['role'] == 'assistant' for m in messages)}, all set."


def said(episode: Episode) -> list[tuple[str, str]]:
    return [(turn.role.value, turn.content) for turn in episode.turns if turn.delivered]


def one(agent: Any, **settings: Any) -> Episode:
    (episode,) = mimesim.simulate(agent, **{"user": LINES, **settings})
    return episode


# ------------------------------------------------------------------------------------- who speaks


def test_arguments_go_by_name_and_conversations_have_ids_of_their_own() -> None:
    seen: dict[str, list[Any]] = {}

    async def agent(message: str, thread_id: str, turn: int, context: dict[str, Any]) -> str:
        seen.setdefault(thread_id, []).append((message, turn, context))
        return f"noted {message}"

    person = {"goal": "be heard", "agent_context": {"shop": "A"}}
    result = mimesim.simulate(agent, [person], user=LINES, trials=2)
    assert {episode.id for episode in result} == set(seen)
    assert len(seen) == 2
    assert all(
        calls == [("hello", 0, {"shop": "A"}), (LINES[1], 1, {"shop": "A"})]
        for calls in seen.values()
    )


def test_objects_classes_and_door_names_are_agents_too() -> None:
    class Desk:
        def __init__(self) -> None:
            self.heard = 0

        def reply(self, message: str) -> str:
            self.heard += 1
            return f"{self.heard}"

    for agent in (Desk(), Desk):  # a class is made anew for each conversation
        assert said(one(agent))[1::2] == [("agent", "1"), ("agent", "2")]
    assert said(one(f"python:{__name__}:shop"))[1] == ("agent", "Answer 0, all set.")


def test_history_is_a_copy() -> None:
    def agent(messages: list[dict[str, Any]]) -> str:
        seen = len(messages)
        messages.clear()
        return f"{seen} messages"

    assert [text for role, text in said(one(agent)) if role == "agent"] == [
        "1 messages",
        "3 messages",
    ]


def test_inside_a_running_loop() -> None:
    async def both() -> list[int]:
        awaited = await mimesim.asimulate(shop, GOALS)
        return [len(awaited), len(mimesim.simulate(shop, GOALS))]

    assert asyncio.run(both()) == [2, 2]


def test_a_function_as_user_thinks_apart_and_leaves() -> None:
    def customer(messages: list[dict[str, str]], scenario: dict[str, Any]) -> Any:
        replies = [Reply(Thought("ZQX"), scenario["goal"]), "<think>ZQX</think>fine ###STOP###"]
        return replies[len(messages) // 2] if len(messages) < 4 else None

    episode = one(shop, scenarios=["say hi"], user=customer)
    assert [text for _, text in said(episode)] == [
        "say hi",
        "Answer 0, all set.",
        "fine",
        "Answer 1, all set.",
    ]
    assert episode.stop.reason is StopReason.USER_STOP
    assert [t["text"] for t in (episode.private or {})["thoughts"]] == ["ZQX", "ZQX"]


@pytest.mark.parametrize("text", ["", " \n", "I type ###STOP### here, why?", "<think>no end"])
def test_a_function_that_breaks_the_contract_is_the_users_failure(text: str) -> None:
    result = mimesim.simulate(shop, ["x y"], user=lambda messages: text, retries=0)
    assert result.not_counted == {"user_failure": 1}


def test_authored_lines_go_out_byte_for_byte() -> None:
    """C-FID-01."""
    opening = "hi – my parcel (no. 4-77) is stuck at customs 📦"
    episode = one(shop, scenarios=[{"goal": "find it", "opening": opening}], user="scripted:easy")
    assert said(episode)[0] == ("user", opening)


# ----------------------------------------------------------------------------------- what is asked


def test_scenarios_come_as_goals_objects_files_and_packs(tmp_path: Path) -> None:
    file = tmp_path / "people.jsonl"
    file.write_text(jsonio.dumps({"id": "s1", "goal": GOALS[0]}) + "\n", "utf-8")
    for scenarios in (
        [GOALS[0]],
        [{"goal": GOALS[0]}],
        [Scenario("s1", GOALS[0])],
        file,
        str(file),
    ):
        assert len(mimesim.simulate(shop, scenarios)) == 1
    packed = mimesim.simulate(shop, "company", limit=2, seed=4)
    assert len(packed) == 2
    assert {episode.task.id for episode in packed} == {
        episode.task.id for episode in mimesim.simulate(shop, "company", limit=2, seed=4)
    }


def test_a_gym_instead_of_scenarios() -> None:
    result = mimesim.simulate(
        "scripted:eager", gym="support-desk", episodes=2, user="scripted:easy"
    )
    assert result.success.scored == 2
    with pytest.raises(UsageError, match="decides on success itself"):
        mimesim.simulate("scripted:eager", gym="support-desk", success=lambda episode: True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"scenarios": [{"goal": "x", "persnoa": "y"}]}, "did you mean 'persona'"),
        ({"scenarios": ["###STOP###"]}, "end marker"),
        ({"scenarios": [" "]}, "goal is empty"),
        ({"scenarios": []}, "nobody"),
        ({}, "nobody"),
        ({"scenarios": "get a refund"}, "put a single goal into a list"),
        ({"scenarios": ["x"], "trails": 2}, "did you mean 'trials'"),
        ({"scenarios": ["x"], "max_turns": 0}, "max_turns"),
        ({"scenarios": ["x"], "user": "scriptd:easy"}, "scripted"),
        ({"scenarios": ["x"], "episodes": 3}, "belongs to a gym"),
        ({"scenarios": ["x"], "min_success": 80}, "a share from 0 to 1"),
        ({"scenarios": ["x"], "gym": "function"}, "its own people"),
        ({"scenarios": ["x"], "trials": "2"}, "trials is '2'; expected a whole number"),
        ({"scenarios": ["x"], "limit": 0}, "1 or more scenarios"),
        ({"scenarios": ["x"], "timeout": "a"}, "a number"),
        ({"scenarios": ["x"], "success": 5}, "a function of an episode"),
        ({"scenarios": ["x"], "user": 5}, "of the type int"),
        ({"scenarios": ["x"], "agent": None}, "there is no agent"),
        ({"scenarios": ["x"], "agent": type("Needs", (), {"__init__": lambda self, key: None, "reply": lambda self, message: "x"})}, "needs 'key' to be made"),
        ({"scenarios": [{"goal": "x", "success": {"checks": [{"agent_say": "y"}]}}]}, "did you mean 'agent_says'"),
        ({"scenarios": [{"goal": "x", "success": {"checks": [{"ended_by": "rain"}]}}]}, "user_stop"),
    ],
)  # fmt: skip
def test_wrong_use_is_told_before_anything_runs(arguments: dict[str, Any], words: str) -> None:
    def agent(messages: list[Any]) -> str:
        raise AssertionError("called")

    with pytest.raises((ConfigError, DataError, UsageError), match=words):
        mimesim.simulate(**{"agent": agent, **arguments})


def test_a_signature_that_cannot_be_served() -> None:
    for agent in (lambda: "x", lambda messages, message: "x", lambda message, shop: "x"):
        with pytest.raises(UsageError, match="unusable signature"):
            mimesim.simulate(agent, GOALS)
    with pytest.raises(UsageError, match="unusable signature"):
        mimesim.simulate(shop, GOALS, user=lambda words: "x")


# --------------------------------------------------------------------------------- what agents do


def test_an_empty_answer_is_asked_for_once_more() -> None:
    """C-MSG-01."""
    answers = iter([" \n", "Your refund is on its way.", "bye"])
    assert said(one(lambda message: next(answers)))[1] == ("agent", "Your refund is on its way.")
    episode = one(lambda message: " \n")
    assert (episode.stop.reason, episode.stop.by) == (StopReason.AGENT_ERROR, Party.AGENT)


def test_an_empty_message_of_the_user_is_drawn_again_and_never_delivered() -> None:
    """C-MSG-02, without the tool: users own none, and a scenario that gives them some is refused.

    A call that the model makes all the same is no message. It is drawn again under another seed
    from the same prompt; there is no reminder, so none can end up among the turns.
    """
    call = {"id": "c1", "type": "function", "function": {"name": "toggle_wifi", "arguments": "{}"}}
    called: dict[str, Any] = {"content": None, "tool_calls": [call]}
    drawn: list[str | dict[str, Any]] = [
        "no wifi here",
        called,
        " \u200b",
        "it works now",
        "###STOP###",
    ]
    with StubServer(drawn) as server:
        episode = one(shop, scenarios=["get online"], user=f"trained:openai:stub@{server.url}")
        again = [request.body for request in server.generations[1:4]]
    assert [text for role, text in said(episode) if role == "user"] == [
        "no wifi here",
        "it works now",
    ]
    assert {turn.role.value for turn in episode.turns} == {"user", "agent"}
    assert not any(turn.tool_calls for turn in episode.turns)
    assert [entry["guard"] for entry in episode.guards] == ["empty", "empty"]
    assert again[0]["messages"] == again[1]["messages"] == again[2]["messages"]
    assert len({body["seed"] for body in again}) == 3

    def silent(request: StubRequest) -> str | dict[str, Any]:
        return "no wifi here" if len(request.body["messages"]) == 2 else called

    with StubServer(silent) as server:
        failed = one(shop, scenarios=["get online"], user=f"trained:openai:stub@{server.url}")
    assert (failed.stop.reason, failed.stop.by) == (StopReason.USER_ERROR, Party.USER)
    assert failed.outcome.status.value == "user_failure"
    assert said(failed) == [("user", "no wifi here")]


def test_several_messages_of_the_agent_stay_several() -> None:
    """C-TPL-02: told in order, also around a call; what the user did not hear is not delivered."""
    call = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}
    answer = [
        {"role": "assistant", "content": "Checking \ud83d", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Mon \ud83d"},
        {"role": "assistant", "content": "It ships on Monday."},
    ]

    def customer(messages: list[Any], scenario: dict[str, Any]) -> str:
        if messages and scenario["goal"] == "fail":
            raise ConnectionError("down")
        return "when?"

    fine, lost = mimesim.simulate(
        lambda messages: answer, ["ask", "fail"], user=customer, max_turns=2
    ).episodes
    first = [("user", "when?"), ("agent", "Checking \ufffd")]
    told = [*first, ("agent", ""), ("tool", "Mon \ufffd"), ("agent", "It ships on Monday.")]
    assert said(fine)[:5] == told
    assert fine.steps[0].content == "Checking \ufffd\n\nIt ships on Monday."
    assert fine.steps[0].turn == 4
    assert said(lost) == [told[0], *told[2:4]]


def test_tools_of_the_agents_own_are_recorded_and_hidden_from_the_user() -> None:
    """C-MSG-03."""
    heard: list[list[dict[str, str]]] = []
    call = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}
    answer = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"eta":"Mon"}'},
        {"role": "assistant", "content": "It arrives Monday."},
    ]

    def customer(messages: list[dict[str, str]]) -> str | None:
        heard.append(messages)
        return None if messages else "when?"

    sent: list[Any] = []

    def agent(messages: list[dict[str, Any]]) -> Any:
        sent.append(messages)
        return answer

    result = mimesim.simulate(agent, ["x y"], user=customer)
    (episode,) = result.episodes
    assert result.transcript().splitlines()[1:5] == [
        "  user: when?",
        "  agent calls lookup({})",
        '  tool -> {"eta":"Mon"}',
        "  agent: It arrives Monday.",
    ]
    assert heard[-1] == [
        {"role": "user", "content": "when?"},
        {"role": "assistant", "content": "It arrives Monday."},
    ]
    assert [turn.role.value for turn in episode.turns] == ["user", "agent", "tool", "agent"]
    assert episode.turns[1].tool_calls[0].owner.value == "agent"
    one(agent, scenarios=["x y"])
    assert [m["role"] for m in sent[-1]].count("tool") == 1, "the agent sees its own traffic again"


def test_contents_without_text_are_refused_by_name() -> None:
    """C-MSG-05."""
    audio = {"type": "input_audio", "input_audio": {}}
    episode = one(lambda message: [audio])
    assert episode.stop.reason is StopReason.AGENT_ERROR
    assert "audio content without text" in episode.stop.detail
    text = {"type": "text", "text": "Your code is 41."}
    assert said(one(lambda message: [audio, text]))[1] == ("agent", "Your code is 41.")


def test_failures_stay_where_they_happen() -> None:
    """C-MSG-06 and C-RUN-02."""

    def agent(message: str) -> str:
        if "visit" in message:
            raise KeyError("x")
        return "all set"

    def customer(messages: list[Any], scenario: dict[str, Any]) -> str | None:
        if scenario["goal"] == "fail":
            raise ConnectionError("down")
        return None if messages else str(scenario["goal"])

    result = mimesim.simulate(agent, [*GOALS, "fail"], user=customer, success=lambda episode: True)
    fine, broken, lost = result.episodes
    assert fine.outcome.success is True
    assert (broken.outcome.status.value, broken.outcome.success) == ("agent_failure", False)
    assert broken.errors[0]["message"] == "KeyError: 'x'"
    assert "KeyError" not in str(said(broken))
    assert (lost.outcome.status.value, lost.outcome.success) == ("user_failure", None)
    rate = result.success
    assert (rate.k, rate.counted, rate.total, bool(rate)) == (1, 2, 3, False)
    assert "1/2 counted, 1/3 all" in repr(rate)


def test_hard_limits_hold() -> None:
    """C-STOP-05."""
    episode = one(
        shop, scenarios=["x y"], user=lambda messages: f"and {len(messages)}?", max_turns=3
    )
    assert [role for role, _ in said(episode)] == ["user", "agent"] * 3
    assert (episode.stop.reason, episode.stop.by, episode.stop.limit) == (
        StopReason.MAX_TURNS,
        Party.RUNNER,
        3,
    )


@pytest.mark.parametrize("party", ["agent", "user"])
@pytest.mark.parametrize("kind", ["blocks", "clings"])
def test_nobody_holds_a_run_longer_than_its_limit(party: str, kind: str) -> None:
    over = threading.Event()

    def blocks(messages: list[Any]) -> str:
        over.wait(30)
        return "x"

    async def clings(messages: list[Any]) -> str:
        while not over.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.2)
        return "x"

    slow = {"blocks": blocks, "clings": clings}[kind]
    began = time.monotonic()
    people = {"scenarios": ["x y"], "timeout": 0.1, "retries": 0}
    episode = one(slow, **people) if party == "agent" else one(shop, user=slow, **people)
    assert time.monotonic() - began < 10
    assert episode.stop.reason is StopReason.TIMEOUT
    over.set()


def test_a_loop_that_was_held_counts_as_time() -> None:
    async def hog(messages: list[Any]) -> str:
        threading.Event().wait(0.3)
        return "x"

    assert one(hog, timeout=0.1, retries=0).stop.reason is StopReason.TIMEOUT


@pytest.mark.parametrize(
    "error", [StopIteration, StopAsyncIteration, GeneratorExit, SystemExit, asyncio.CancelledError]
)
def test_whatever_a_function_raises_is_its_own_failure(error: type[BaseException]) -> None:
    def raises(messages: list[Any]) -> str:
        raise error("x")

    async def later(messages: list[Any]) -> str:
        raise error("x")

    for function in (raises, later):
        failed = one(function, timeout=5, retries=0)
        assert failed.stop.reason is StopReason.AGENT_ERROR
        assert error.__name__ in failed.errors[0]["message"]
        lost = one(shop, scenarios=["x y"], user=function, timeout=5, retries=0)
        assert lost.stop.reason is StopReason.USER_ERROR
        result = mimesim.simulate(shop, GOALS[:1], success=function)
        assert result.not_counted == {"judge_failure": 1}


# ------------------------------------------------------------------------------------ what it says


def test_checks_decide_and_say_what_was_not_met() -> None:
    checks = [
        {"agent_says": ["refund", "SET"]},
        {"agent_never_says": "sorry"},
        {"turns_at_most": 1},
    ]
    person = {"goal": "x y", "success": {"checks": checks}}
    result = mimesim.simulate(shop, [person], user=LINES)
    assert not result.success
    assert "not met: turns_at_most: 1" in result.transcript(failed_only=True)
    assert mimesim.simulate(shop, [person], user=LINES[:1]).success


def test_nothing_decided_is_no_pass() -> None:
    with pytest.raises(UsageError, match=r"success\.checks"):
        assert mimesim.simulate(shop, GOALS).success
    criteria = {"goal": "x y", "success": {"criteria": ["the agent is kind"]}}
    with pytest.raises(UsageError, match="nothing decided"):
        assert mimesim.simulate(shop, [criteria]).success, "no judge was named"


def test_a_share_and_a_threshold() -> None:
    result = mimesim.simulate(
        shop, GOALS, success=lambda episode: "kettle" in str(said(episode)), min_success=0.5
    )
    assert result.success
    assert result.success.ci95 is not None
    told = result.to_json()
    assert (told["seed"], told["min_success"], told["passed"]) == (0, 0.5, True)
    half = mimesim.simulate(shop, GOALS, success=lambda episode: 0.5, min_success=0.4)
    assert (bool(half.success), half.to_json()["reward"]["mean"]) == (False, 0.5)
    assert "mean share 50%" in repr(half.success)
    assert mimesim.simulate(shop, GOALS[:1]).to_json()["passed"] is None


def test_who_was_waited_for_is_told() -> None:
    async def slow(messages: list[Any]) -> str:
        await asyncio.sleep(9)
        return "x"

    agent = one(slow, timeout=0.05, retries=0)
    user = one(shop, scenarios=["x y"], user=slow, timeout=0.05, retries=0)
    assert {agent.stop.reason, user.stop.reason} == {StopReason.TIMEOUT}
    assert agent.stop.detail.endswith("the agent")
    assert user.stop.detail.endswith("the user or the gym")


def test_a_verdict_that_is_no_number_is_unscored() -> None:
    """C-FILE-04."""
    values = {"a a": 1.0, "b b": 0.0, "c c": 1.0, "d d": math.nan}
    people = [{"id": goal, "goal": goal} for goal in values]
    result = mimesim.simulate(shop, people, success=lambda episode: values[episode.task.id])
    rate = result.success
    assert (rate.value, rate.scored, rate.open) == (pytest.approx(2 / 3), 3, 1)
    assert "1 unscored" in repr(rate)
    last = result.episodes[3].to_json()
    assert last["outcome"]["scores"]["success"]["value"] is None
    assert last["outcome"]["scores"]["success"]["state"] == "failed"
    assert "outcome.scores.success.value" in str(last["nonfinite"])


def test_a_verdict_that_breaks_is_the_judges_failure() -> None:
    two = mimesim.simulate(shop, GOALS[:1], success=lambda episode: 2)
    assert two.not_counted == {"judge_failure": 1}, "2 is no share of 1"
    result = mimesim.simulate(shop, GOALS[:1], success=lambda episode: 1 / 0)
    assert result.not_counted == {"judge_failure": 1}
    assert "ZeroDivisionError" in result.episodes[0].errors[-1]["message"]
    assert not result.success


def test_equal_seeds_give_equal_conversations_at_any_width() -> None:
    """C-RUN-06."""

    def words(**settings: Any) -> list[Any]:
        result = mimesim.simulate(shop, GOALS, trials=2, **settings)
        return [without_times(episode.to_json()) for episode in result]

    assert words(seed=7, concurrency=1) == words(seed=7, concurrency=4)
    assert words(seed=7) != words(seed=8)


def test_files_hold_the_episodes(tmp_path: Path) -> None:
    result = mimesim.simulate(shop, GOALS, out=tmp_path / "run", success=lambda episode: True)
    stored = (tmp_path / "run" / "episodes.jsonl").read_text("utf-8")
    written = result.to_jsonl(tmp_path / "again.jsonl").read_text("utf-8")
    assert sorted(stored.splitlines()) == sorted(written.splitlines())
    assert '"success":true' in stored.replace(" ", ""), "the verdict is in the record"
    page = result.report(tmp_path / "page.html").read_text("utf-8")
    assert "blue kettle" in page
    again = mimesim.simulate(shop, GOALS, out=tmp_path / "run")
    assert again.summary.resumed == 0, "the code of an agent may have changed"
    kept = mimesim.simulate(shop, GOALS, out=tmp_path / "run", resume=True)
    assert kept.summary.resumed == 2


def test_a_place_that_cannot_be_written_is_told_before_the_first_call(tmp_path: Path) -> None:
    """C-FILE-05."""
    (tmp_path / "file").write_text("", "utf-8")

    def agent(message: str) -> str:
        raise AssertionError("called")

    with pytest.raises(EnvironmentFault):
        mimesim.simulate(agent, GOALS, out=tmp_path / "file" / "run")


def test_a_users_own_error_is_named() -> None:
    def customer(messages: list[Any]) -> str:
        raise UserError("out of words")

    (episode,) = mimesim.simulate(shop, GOALS[:1], user=customer, retries=0)
    assert episode.stop.detail == "out of words"
