"""Runs of tau-bench: for evaluation only; gold actions hidden, end marks taken off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim.corpora.formats.tau_bench import FORMAT
from mimesim.dialogue.stop import END_MARKER
from mimesim.errors import ConfigError
from tests.support.sources import read, spoken, write

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}


def row(task: int = 4, reward: float = 1.0, **changes: Any) -> dict[str, Any]:
    value = {
        "task_id": task,
        "trial": 2,
        "reward": reward,
        "info": {
            "task": {
                "user_id": "jo_1",
                "instruction": "You are jo_1 and want to cancel.",
                "actions": [{"name": "cancel", "kwargs": {"id": "SECRETGOLD"}}],
                "outputs": [],
            },
            "source": "user",
            "user_cost": 0.1,
            "reward_info": None,
        },
        "traj": [
            {"role": "system", "content": "# POLICYTEXT"},
            {"role": "user", "content": "I want to cancel"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "content": "found", "tool_call_id": "c1", "name": "find"},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": f"Thanks.{END_MARKER}"},
        ],
    }
    return {**value, **changes}


def test_a_run(tmp_path: Path) -> None:
    path = write(tmp_path / "run.json", [row(), row(5, 0.0)])
    one, two = read(FORMAT, path, {"domain": "airline"}).dialogues
    assert one.id == "tau_bench/airline/4/2"
    assert spoken(one) == [("user", "I want to cancel"), ("agent", "Done."), ("user", "Thanks.")]
    assert one.goal == "You are jo_1 and want to cancel."
    assert one.outcome == {"task": "airline_4", "trial": 2, "reward": 1.0, "success": True}
    assert two.outcome["success"] is False
    assert one.hidden["gold_actions"][0]["kwargs"] == {"id": "SECRETGOLD"}
    public = one.goal + one.context + one.topic + "".join(turn.text for turn in one.turns)
    assert "SECRETGOLD" not in public
    assert "POLICYTEXT" not in public, "the agent's policy is nothing that the user is told"
    assert one.left_out == {"messages_left_out": 2}


def test_the_domain_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "run.json", [row()])
    with pytest.raises(ConfigError, match=r"tau-bench.*option domain"):
        read(FORMAT, path)


def test_it_never_enters_training() -> None:
    assert FORMAT.info.evaluation_only
    assert FORMAT.info.simulated


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"traj": None}, "no_conversation"), ({"traj": [{"content": "x"}]}, "missing_role")],
)
def test_damage_is_named(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    path = write(tmp_path / "run.json", [row(**changes), {"id": "0", "description": {}}])
    found = read(FORMAT, path, {"domain": "airline"})
    assert dict(found.reasons) == {reason: 1, "missing_keys": 1}


def test_the_genuine_rows(test_data: Path) -> None:
    found = read(FORMAT, test_data / "tau_bench" / "gpt4o_airline_trajectories.jsonl")
    assert len(found.dialogues) == 200
    assert found.turns("user") == 1490
    assert found.turns("agent") == 2454 - 1074
    assert sum(d.left_out["messages_left_out"] for d in found.dialogues if d.left_out) == 1074
    rewards = [d.outcome["reward"] for d in found.dialogues]
    assert sum(rewards) / len(rewards) == 0.42
    assert len({d.outcome["task"] for d in found.dialogues}) == 50
    assert not any("instruction" in d.hidden for d in found.dialogues)
    assert not any(END_MARKER in turn.text for d in found.dialogues for turn in d.turns)
    assert not found.rejects
