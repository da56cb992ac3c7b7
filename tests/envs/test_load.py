"""Gyms by name."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, cast

import pytest

from mimesim import registry
from mimesim.envs import load
from mimesim.envs.base import Task, profile_of
from mimesim.envs.gyms.support_desk.compact import CompactDesk
from mimesim.envs.gyms.support_desk.full import FullDesk
from mimesim.envs.load import describe_gym, describe_gyms, gym_spec, load_tasks, make_gym
from mimesim.envs.packs import write_tasks
from mimesim.envs.turns.kind import TurnKind
from mimesim.envs.turns.law import TurnGym
from mimesim.errors import DataError, UnknownNameError, UsageError
from tests.support.desk import Customer


def test_profiles_make_their_gyms() -> None:
    assert isinstance(make_gym("support-desk", user=Customer()), FullDesk)
    assert isinstance(make_gym("support-desk", profile="compact", user=Customer()), CompactDesk)
    assert (gym_spec("support-desk").max_steps, gym_spec("support-desk", "compact").max_steps) == (
        16,
        8,
    )


def test_the_profile_stands_in_every_task() -> None:
    for profile in ("full", "compact"):
        tasks = load_tasks("support-desk", profile=profile, count=3)
        assert {profile_of(task) for task in tasks} == {profile}


def test_unknown_names_are_told() -> None:
    with pytest.raises(UnknownNameError, match="support-desk"):
        make_gym("suport-desk", user=Customer())
    with pytest.raises(UnknownNameError, match="compact"):
        load_tasks("support-desk", profile="compactt")


def test_the_nine_gyms_are_there_in_order() -> None:
    assert load.REGISTRY.names() == [
        *("function", "intention", "persuade", "search", "support-desk"),
        *("tau", "telepathy", "travel", "turtle"),
    ]


def test_descriptions_hold_the_facts_of_the_spec() -> None:
    (desk,) = [gym for gym in describe_gyms() if gym["name"] == "support-desk"]
    assert set(desk["profiles"]) == {"full", "compact"}
    assert desk["profiles"]["compact"]["choices"] == ["action", "answer"]
    assert describe_gym("support-desk", "compact")["max_steps"] == 8


def test_a_broken_extension_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken", "os.path:join", "mimesim.gyms")
    monkeypatch.setattr(registry, "entry_points", lambda group: [broken])
    monkeypatch.delenv("MIMESIM_DISABLE_PLUGINS", raising=False)
    monkeypatch.setattr(load.REGISTRY, "_extensions", None)
    with pytest.warns(UserWarning, match="extension gym 'broken' is left out: .*is no gym"):
        described = describe_gyms()
    assert [gym["name"] for gym in described] == list(load.REGISTRY.builtin)
    monkeypatch.setattr(load.REGISTRY, "_extensions", None)


@pytest.mark.parametrize("gym", ["turtle", "function", "support-desk"])
def test_a_split_that_there_is_not_is_told(gym: str) -> None:
    with pytest.raises(
        UnknownNameError, match="unknown split 'foo'; expected one of test, train, validation"
    ):
        load_tasks(gym, split="foo", count=1)


def test_the_only_split_of_a_file_need_not_be_named(tmp_path: Path) -> None:
    train, test = (load_tasks("turtle", split=split, count=2) for split in ("train", "test"))
    write_tasks(tmp_path / "one.jsonl", train)
    assert load_tasks("turtle", path=tmp_path / "one.jsonl") == train
    write_tasks(tmp_path / "both.jsonl", [*train, *test])
    assert load_tasks("turtle", path=tmp_path / "both.jsonl") == test
    with pytest.raises(DataError, match="split 'test'"):
        load_tasks("turtle", path=tmp_path / "one.jsonl", split="test")


class Bare(TurnGym[Any]):
    """A gym of which only the text is written."""

    def system(self, task: Task) -> str:
        return "a gym"


def test_a_gym_that_is_not_written_is_refused_when_it_is_made() -> None:
    with pytest.raises(
        UsageError, match="Bare lacks act, begin, forbidden, succeeded, SPEC, STATE"
    ):
        replace(cast(TurnKind, load.load_gym("turtle")), name="x", episode=Bare)  # type: ignore[type-abstract]
