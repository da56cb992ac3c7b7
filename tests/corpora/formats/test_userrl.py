"""UserRL: tasks are read with what an agent must not see apart; there is no dialogue."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.corpora.base import Unfit
from mimesim.corpora.formats.userrl import FORMAT, KEYS, read_task


def row(gym: str, **reward: Any) -> dict[str, Any]:
    model = {"style": "rule", "env_name": gym, **reward}
    return {
        "data_source": "interact_anything",
        "prompt": [
            {"role": "system", "content": "You play a game."},
            {"role": "user", "content": "Guess what I think of."},
        ],
        "ability": "interaction",
        "reward_model": model,
        "extra_info": {
            "split": "test",
            "index": 3,
            "need_tools_kwargs": True,
            "tools_kwargs": {"interact_with_env": {"create_kwargs": model}},
        },
    }


def test_a_task_with_a_title() -> None:
    secret = "a lighthouse made of paper"
    task = read_task(
        row("TelepathyGym", ground_truth=secret, title="Paper Light", id=None, claim=None)
    )
    assert (task.gym, task.key, task.split) == ("TelepathyGym", "Paper Light", "test")
    assert (task.system, task.request) == ("You play a game.", "Guess what I think of.")
    assert task.hidden == {"ground_truth": secret, "title": "Paper Light"}
    assert secret not in task.system + task.request


def test_every_gym_has_its_key() -> None:
    assert len(KEYS) == 8
    for gym, name in KEYS.items():
        assert read_task(row(gym, ground_truth="", **{name: "k 1"})).key == "k 1"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (row("SearchGym", ground_truth="x", id="1"), "no_dialogue"),
        (row("ChessGym", ground_truth="x", id="1"), "unknown_gym"),
        (row("TurtleGym", ground_truth="x", id="1"), "missing_keys"),
        (row("TauGym", ground_truth="", id=None), "missing_keys"),
        (row("TauGym", id="1"), "missing_keys"),
        ({"data_source": "x"}, "missing_keys"),
    ],
)
def test_a_build_leaves_every_row_out(value: Any, reason: str) -> None:
    with pytest.raises(Unfit) as caught:
        list(FORMAT.convert(value, {}))
    assert caught.value.reason == reason


def test_keys_tell() -> None:
    assert FORMAT.claims(row("TauGym"))
    assert not FORMAT.claims({"prompt": [], "reward_model": None})
