"""Compatibility flags: the presets, every flag alone, and what is refused."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any, get_args, get_type_hints

import pytest

from mimesim.envs.turns.compat import PROFILES, Compat, read_options
from mimesim.errors import ConfigError

KINDS = {k: v for k, v in get_type_hints(Compat).items() if k != "profile"}


def flags(**options: Any) -> Compat:
    return read_options(options, {}, "turtle")[0]


def values(kind: Any) -> tuple[Any, ...]:
    return (True, False) if kind is bool else get_args(kind)


def test_nothing_asked_for_is_everything_repaired() -> None:
    assert flags() == flags(compat=False) == flags(compat="") == Compat()
    assert read_options(None, {}, "turtle") == (Compat(), {})


def test_true_means_the_published_code() -> None:
    assert flags(compat=True) == flags(compat="userrl")
    assert flags(compat="userrl").profile == "userrl"


def test_the_published_code_has_every_flaw() -> None:
    """Each flag differs from the repaired behavior, the phase aside, which the caller chooses."""
    userrl, fixed = asdict(flags(compat="userrl")), asdict(Compat())
    same = {key for key in fixed if userrl[key] == fixed[key]}
    assert same == {"phase"}


def test_mimesis_repaired_two_things_of_it() -> None:
    userrl, mimesis = asdict(flags(compat="userrl")), asdict(flags(compat="mimesis"))
    changed = {key: mimesis[key] for key in userrl if userrl[key] != mimesis[key]}
    assert changed == {
        "profile": "mimesis",
        "json_parser": "tolerant",
        "travel_volunteer": "fourth_turn",
    }


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, kind in KINDS.items() for value in values(kind)]
)
def test_every_flag_can_be_set_alone_and_over_a_preset(name: str, value: Any) -> None:
    assert flags(**{name: value}) == replace(Compat(), **{name: value})
    for preset in PROFILES:
        over = flags(compat=preset, **{name: value})
        assert over == replace(flags(compat=preset), **{name: value})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"compat": "userl"}, "'compat' is 'userl'"),
        ({"compat": 1.5}, "'compat' is 1.5"),
        ({"compat": ["userrl"]}, "'compat' is"),
        ({"compat": 1}, "'compat' is 1"),
        ({"compat": 0}, "'compat' is 0"),
        ({"travel_path": "asink"}, "'travel_path' is 'asink'"),
        ({"plain_choices": 1}, "'plain_choices' is 1"),
        ({"executed_steps": True}, "'executed_steps' is True"),
        ({"executed_steps": 15.0}, "'executed_steps' is 15.0"),
        ({"show_rewards": "both"}, "did you mean 'show_reward'"),
        ({"profile": "userrl"}, "no option 'profile'"),
    ],
)
def test_what_cannot_be_used_is_one_clear_line(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match="gym 'turtle'") as caught:
        flags(**options)
    assert told in str(caught.value)
    assert "expected" in str(caught.value)


def test_options_of_the_gym_keep_their_type() -> None:
    own = {"interval": 3, "share": 0.5, "mode": "static", "opens": True}
    assert read_options({"interval": 5}, own, "g")[1] == own | {"interval": 5}
    assert read_options({"share": 1}, own, "g")[1]["share"] == 1.0
    assert own["interval"] == 3
    wrong = {"interval": "5", "share": "x", "mode": 1, "opens": 1}
    for name, value in wrong.items():
        with pytest.raises(ConfigError, match=f"{name!r} is {value!r}; expected a "):
            read_options({name: value}, own, "g")
    with pytest.raises(ConfigError, match="'interval' is True"):
        read_options({"interval": True}, own, "g")


def test_rewards_are_shown_in_the_phases_named() -> None:
    shown = {
        (show, phase): flags(show_reward=show, phase=phase).rewards_shown
        for show in ("never", "train", "eval", "both")
        for phase in ("train", "eval")
    }
    assert {key for key, value in shown.items() if value} == {
        ("train", "train"),
        ("eval", "eval"),
        ("both", "train"),
        ("both", "eval"),
    }


def test_fifteen_steps_are_of_training() -> None:
    assert flags(executed_steps=15, phase="train").steps == 15
    assert flags(executed_steps=15, phase="eval").steps == 16
    assert flags(phase="train").steps == 16


def test_which_of_several_calls_is_kept() -> None:
    kept = {
        (calls, phase): flags(multi_call=calls, phase=phase).kept_call
        for calls in ("reject", "first", "last_reward")
        for phase in ("train", "eval")
    }
    assert kept == {
        ("reject", "train"): "reject",
        ("reject", "eval"): "reject",
        ("first", "train"): "first",
        ("first", "eval"): "first",
        ("last_reward", "train"): "last",
        ("last_reward", "eval"): "first",
    }


def test_every_flag_is_described() -> None:
    text = Compat.__doc__ or ""
    assert [f.name for f in fields(Compat) if f.name not in text] == []
