"""The stop contract, over driver, `simulate`, export and import: an end is a field, never a substring.

Only the user's own reply ends the user's side; what is said with an end is delivered and answered
once; an agent that prints a marker prints text, and ends a conversation by `AgentEnd` alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mimesim
from mimesim.dialogue.episode import Episode
from mimesim.dialogue.stop import MARKERS, Party, StopReason
from mimesim.rollout.exporting import SHAPES, export
from mimesim.rollout.importing import import_episodes

LINES = ["hello", "not yet", "one more thing"]
PLACES = ("{m}", "All sorted! {m}", "{m} All sorted!", "Type {m} in box 4.", "`{m}`", "a\n{m}\n")


def spoken(episode: Episode, side: str) -> list[str]:
    return [t.content for t in episode.turns if t.delivered and t.role.value == side]


def one(agent: Any, **settings: Any) -> Episode:
    (episode,) = mimesim.simulate(agent, **{"user": LINES, **settings})
    return episode


@pytest.mark.parametrize("marker", MARKERS)
def test_an_agent_that_prints_a_marker_ends_nothing(marker: str) -> None:
    for place in PLACES:
        text = place.format(m=marker)
        episode = one(lambda message, printed=text: printed)
        assert spoken(episode, "user") == LINES
        assert spoken(episode, "agent") == [text.strip()] * 3, "what it printed is text, and stays"
        assert (episode.stop.reason, episode.stop.by) == (StopReason.USER_STOP, Party.USER)
        assert {event["guard"] for event in episode.guards} >= {"agent_marker"}


@settings(max_examples=40)
@given(st.lists(st.sampled_from([*MARKERS, "ok", " ", "\n", "</scenario>", "STOP"]), min_size=1))
def test_no_text_of_an_agent_is_an_end(pieces: list[str]) -> None:
    text = "x " + "".join(pieces)
    episode = one(lambda message: text)
    assert spoken(episode, "user") == LINES
    assert episode.stop.by is Party.USER


@pytest.mark.parametrize("marker", MARKERS)
def test_words_beside_an_end_are_delivered_and_answered_once(marker: str, tmp_path: Path) -> None:
    replies = ["hello", f"Yes please, go ahead. {marker}", "never"]

    def customer(messages: list[Any]) -> str:
        return replies[len(messages) // 2]

    result = mimesim.simulate(
        lambda messages: f"answer {len(messages)}", ["x y"], user=customer, out=tmp_path / "run"
    )
    (episode,) = result
    assert spoken(episode, "user") == ["hello", "Yes please, go ahead."]
    assert len(spoken(episode, "agent")) == 2
    assert (episode.stop.by, episode.outcome.status.value) == (Party.USER, "completed")
    for target in SHAPES:
        out = export(tmp_path / "run", tmp_path / f"x{SHAPES[target].ending}", target=target).out
        assert marker.encode() not in out.read_bytes(), target


def test_a_marker_elsewhere_in_the_users_words_is_a_fault_and_no_end() -> None:
    """C-STOP-02."""
    result = mimesim.simulate(
        lambda message: "ok", ["x y"], user=lambda messages: "I type ###STOP### where?", retries=0
    )
    assert result.not_counted == {"user_failure": 1}
    assert spoken(result.episodes[0], "user") == []


def test_a_bare_end_is_no_message() -> None:
    replies = ["hello", "###STOP###"]
    episode = one(
        lambda message: "ok", scenarios=["x y"], user=lambda messages: replies[len(messages) // 2]
    )
    assert spoken(episode, "user") == ["hello"]
    assert all(turn.content for turn in episode.turns)


def test_an_agent_ends_by_its_api_and_by_nothing_else() -> None:
    episode = one(lambda message: mimesim.AgentEnd("Goodbye ###STOP###"))
    assert spoken(episode, "user") == ["hello"]
    assert spoken(episode, "agent") == ["Goodbye ###STOP###"]
    assert (episode.stop.reason, episode.stop.by) == (StopReason.AGENT_STOP, Party.AGENT)
    assert one(lambda message: mimesim.AgentEnd(" ")).stop.reason is StopReason.AGENT_ERROR


def test_a_gym_is_not_ended_by_its_agent() -> None:
    (episode,) = mimesim.simulate(
        lambda message: mimesim.AgentEnd("bye"),
        gym="support-desk",
        episodes=1,
        user="scripted:easy",
    )
    assert episode.stop.reason is StopReason.AGENT_ERROR
    assert episode.outcome.success is False


@pytest.mark.parametrize("target", ["openai", "sharegpt", "tau2", "verifiers", "inspect"])
def test_what_an_agent_printed_ends_nothing_on_the_way_back(tmp_path: Path, target: str) -> None:
    marker = "All sorted! ###STOP###"
    mimesim.simulate(lambda message: marker, user=LINES, out=tmp_path / "run", max_turns=2)
    out = export(tmp_path / "run", tmp_path / f"x{SHAPES[target].ending}", target=target).out
    (episode,) = import_episodes(str(out), tmp_path / "back").episodes
    assert spoken(episode, "agent") == [marker] * 2
    assert spoken(episode, "user") == LINES[:2]
    assert episode.stop.by is Party.RUNNER
    told = target not in ("openai", "sharegpt")
    assert (episode.stop.reason is StopReason.MAX_TURNS) is told
