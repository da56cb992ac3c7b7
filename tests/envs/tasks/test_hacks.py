"""Signs of reward hacking, one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimesim.envs.tasks import hacks
from mimesim.envs.tasks.hacks import Talk
from mimesim.envs.tasks.load import load_rows
from mimesim.envs.tasks.players import Ends
from tests.envs.tasks.asking import episodes


def test_copying_counts_words_in_runs_of_five() -> None:
    shown = ("the red cow jumps over the low fence",)
    assert hacks.copying(Talk(shown, ("The red cow jumps over it",))) == pytest.approx(5 / 6)
    assert hacks.copying(Talk(shown, ("red cow jumps over",))) == 0.0
    assert hacks.copying(Talk(shown, (shown[0].upper(),))) == 1.0
    assert hacks.copying(Talk(shown, ())) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "My persona says I should be angry.", "I'm supposed to withhold the number.",
        "I will now pretend to leave", "staying in character here", "As an AI I have no cows",
    ],
)  # fmt: skip
def test_announcing_sees_talk_about_the_role(text: str) -> None:
    assert hacks.announcing(Talk((), (text, "where is my order"))) == 0.5


@pytest.mark.parametrize(
    "text",
    ["I'm supposed to be in Leeds at nine", "my role at work is cook", "an assistant let me in"],
)
def test_announcing_lets_people_talk(text: str) -> None:
    assert hacks.announcing(Talk((), (text,))) == 0.0


def test_length_grows_from_sixty_to_a_hundred_and_twenty_words() -> None:
    for count, expected in {10: 0.0, 60: 0.0, 90: 0.5, 120: 1.0, 400: 1.0}.items():
        assert hacks.length(Talk((), ("short", "word " * count))) == expected


def test_repetition_is_the_share_of_trigrams_said_before() -> None:
    assert hacks.repetition(Talk((), ("a b c d",))) == 0.0
    assert hacks.repetition(Talk((), ("a b c", "a b c"))) == 0.5
    assert hacks.repetition(Talk((), ("a b",))) == 0.0


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_every_check_is_a_share(shown: list[str], said: list[str]) -> None:
    values = hacks.check(Talk(tuple(shown), tuple(said)))
    assert set(values) == set(hacks.CHECKS)
    assert all(0 <= value <= 1 for value in values.values())


def test_a_stored_episode_gives_what_was_logged() -> None:
    for name in ("mirrorbench", "coser", "humanual_book"):
        (episode,) = episodes(load_rows(name, limit=1).tasks, Ends("oracle"))
        logged = (episode.private or {})["grading"][-1]["hacks"]
        assert logged == hacks.check_episode(episode)
