"""What is watched beside the reward: cues said again, thoughts that cite their directive."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.dialogue.thinking import join
from mimesim.dialogue.types import Thought
from mimesim.envs.base import Task
from mimesim.train.user_signs import cue_repetition, signs

DIRECTIVE = "You have no time. Write a handful of words at most, all of them pushing."


def task(behavior: str | None) -> Task:
    public: dict[str, Any] = {"behavior": behavior, "directive": DIRECTIVE if behavior else ""}
    return Task("task:behavior", "t", "test", (), public, {})


def test_a_cue_is_repeated_when_the_same_words_come_again() -> None:
    assert cue_repetition(["hurry up", "HURRY, please", "hurry"]) == pytest.approx(2 / 4)
    assert cue_repetition(["hurry up", "come on"]) == 0
    assert cue_repetition(["good morning", "the lamp is blue"]) is None
    assert cue_repetition([]) is None


def test_thoughts_that_cite_the_directive_are_found() -> None:
    cites = join(Thought("They said a handful of words at most, so."), "hurry up")
    plain = join(Thought("I want this done today."), "hurry up")
    said = ["hurry up"]
    assert signs(task("B9"), [cites], said, thinking=True)["thought_cites_directive"] == 1
    assert signs(task("B9"), [plain], said, thinking=True)["thought_cites_directive"] == 0
    assert "thought_cites_directive" not in signs(task("B9"), said, said, thinking=False)


def test_ordinary_customers_are_not_watched() -> None:
    assert signs(task(None), ["hurry up"], ["hurry up"], thinking=False) == {}
