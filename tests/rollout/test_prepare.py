"""Preparing a run: only people with one behavior."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.errors import UnknownNameError, UsageError
from mimesim.rollout.prepare import Prepared, RunConfig, prepare


def people(**settings: Any) -> list[Any]:
    prepared: Prepared = prepare(RunConfig(**settings))
    return [job.task for job in prepared.jobs]


def ids(task: Any) -> list[str]:
    return [one["id"] for one in task.scenario.get("behavior", [])]


@pytest.mark.parametrize("name", ["B3", "clarification_noncooperation"])
def test_a_behavior_chooses_among_the_people_in_their_usual_order(name: str) -> None:
    chosen = people(behavior=name, episodes=5)
    everybody = [task.id for task in people(episodes=400)]
    assert [ids(task) for task in chosen] == [["B3"]] * 5
    places = [everybody.index(task.id) for task in chosen]
    assert places == sorted(places)


def test_a_rare_behavior_is_searched_for_and_neutral_is_none() -> None:
    assert [ids(task) for task in people(behavior="B4", episodes=4)] == [["B4"]] * 4
    assert [ids(task) for task in people(behavior="neutral", episodes=4)] == [[]] * 4


def test_a_behavior_chooses_in_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    base = {"goal": "return a lamp", "facts": {}}
    lines = [
        {"id": f"p{number}", **base, **({"behavior": [{"id": "B9"}]} if number % 2 else {})}
        for number in range(6)
    ]
    path.write_text("".join(jsonio.dumps(line) + "\n" for line in lines))
    agent = "model:embedded"
    chosen = people(scenarios=path, behavior="B9", episodes=9, agent=agent)
    assert [task.id for task in chosen] == ["p1", "p3", "p5"] * 3


def test_what_nobody_has_is_one_clear_error() -> None:
    with pytest.raises(UnknownNameError, match="B44"):
        people(behavior="B44")
    with pytest.raises(UsageError, match="'B9'"):
        people(behavior="B9", profile="compact", episodes=2)


@pytest.mark.parametrize("gym", ["travel", "support-desk"])
def test_a_search_that_finds_nobody_soon_ends(gym: str) -> None:
    with pytest.raises(UsageError, match=r"none of \d{1,4} people has behavior 'tests\.") as caught:
        people(gym=gym, behavior="tests.support.dawdler:B91", user="roleplay:embedded")
    assert "support-desk" in str(caught.value)


@pytest.mark.parametrize(
    ("user", "behavior"),
    [("cooperative", "B9"), ("B3", "B9"), ("hostile", "B9"), ("B3", "neutral")],
)
def test_a_script_that_plays_something_else_is_refused(user: str, behavior: str) -> None:
    with pytest.raises(UsageError, match=f"'scripted:{user}' does not play"):
        people(behavior=behavior, user=f"scripted:{user}")


def test_a_script_that_plays_just_that_is_taken() -> None:
    assert len(people(behavior="B9", user="scripted:B9", episodes=1)) == 1
    assert len(people(behavior="neutral", user="scripted:easy", episodes=1)) == 1
