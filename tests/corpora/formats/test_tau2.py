"""Results of tau2-bench: one file or a folder, nulls, tools of both sides, and whose fault it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim.corpora.formats.tau2 import FORMAT
from mimesim.dialogue.stop import END_MARKER
from tests.support.sources import read, spoken, write


def call(requestor: str) -> dict[str, Any]:
    return {"id": "c", "name": f"{requestor}_tool", "arguments": {"n": 1}, "requestor": requestor}


def run(name: str, **changes: Any) -> dict[str, Any]:
    value = {
        "id": name,
        "task_id": "7",
        "trial": 1,
        "seed": 3,
        "termination_reason": "user_stop",
        "reward_info": {"reward": 1.0, "reward_basis": ["DB"]},
        "agent_cost": None,
        "user_cost": None,
        "duration": 1.5,
        "messages": [
            {"role": "assistant", "content": "Hi! How can I help?", "turn_idx": 0, "cost": None},
            {"role": "user", "content": "my phone is dead", "tool_calls": None, "turn_idx": 1},
            {"role": "assistant", "content": None, "tool_calls": [call("assistant")]},
            {"role": "tool", "id": "c", "content": "ok", "requestor": "assistant"},
            {
                "role": "tool",
                "tool_messages": [{"role": "tool", "id": "c", "content": "ok", "error": False}],
            },
            {"role": "assistant", "content": "Restart it."},
            {"role": "user", "content": None, "tool_calls": [call("user")]},
            {"role": "tool", "id": "c", "content": "on", "requestor": "user"},
            {"role": "user", "content": f"works {END_MARKER}"},
        ],
    }
    return {**value, **changes}


def results(*runs: dict[str, Any]) -> dict[str, Any]:
    task = {
        "id": "7",
        "description": {"purpose": "a test"},
        "user_scenario": {
            "persona": None,
            "instructions": {
                "domain": "telecom",
                "reason_for_call": "Your phone is dead.",
                "known_info": "You are Al.",
                "unknown_info": None,
                "task_instructions": "Be brief.",
            },
        },
        "evaluation_criteria": {"actions": [{"name": "GOLDACTION"}]},
    }
    info = {
        "num_trials": 2,
        "user_info": {"implementation": "user_simulator", "llm": "m"},
        "environment_info": {"domain_name": "telecom", "policy": "POLICYTEXT"},
    }
    return {"timestamp": "t", "info": info, "tasks": [task], "simulations": list(runs)}


def test_a_results_file(tmp_path: Path) -> None:
    (dialogue,) = read(FORMAT, write(tmp_path / "results.json", results(run("s1")))).dialogues
    assert dialogue.id == "tau2/telecom/7/1/s1"
    assert spoken(dialogue) == [
        ("agent", "Hi! How can I help?"),
        ("user", "my phone is dead"),
        ("agent", "Restart it."),
        ("user", "works"),
    ]
    assert dialogue.goal == (
        "reason for call: Your phone is dead.\nknown info: You are Al.\n"
        "task instructions: Be brief."
    )
    assert dialogue.hidden["tool_calls"] == [
        {"by": "agent", "name": "assistant_tool", "arguments": {"n": 1}},
        {"by": "user", "name": "user_tool", "arguments": {"n": 1}},
    ]
    assert dialogue.outcome == {
        "task": "telecom_7",
        "trial": 1,
        "ended_by": "user_stop",
        "reward": 1.0,
        "success": True,
    }
    assert "GOLDACTION" in str(dialogue.hidden)
    assert "GOLDACTION" not in dialogue.goal + str(spoken(dialogue))
    assert FORMAT.info.evaluation_only
    assert FORMAT.info.simulated


def test_the_folder_form_is_the_same(tmp_path: Path) -> None:
    whole = write(tmp_path / "a" / "results.json", results(run("s1"), run("s2", trial=0)))
    for emptied in (
        {**results(), "simulations": []},
        {k: v for k, v in results().items() if k != "simulations"},
    ):
        write(tmp_path / "b" / "results.json", emptied)
        for one in (run("s1"), run("s2", trial=0)):
            write(tmp_path / "b" / "simulations" / f"{one['id']}.json", one)
        assert read(FORMAT, tmp_path / "b") == read(FORMAT, whole)


@pytest.mark.parametrize(
    ("reason", "reward", "expected"),
    [
        ("agent_stop", 0.0, (0.0, False)),
        ("max_steps", 0.0, (0.0, False)),
        ("agent_error", None, (0.0, False)),
        ("user_stop", None, (None, None)),
        ("user_error", 0.0, (None, None)),
        ("infrastructure_error", None, (None, None)),
        ("timeout", 0.0, (None, None)),
        ("too_many_errors", 0.0, (None, None)),
        ("context_window_exceeded", None, (None, None)),
        ("unexpected_error", None, (None, None)),
    ],
)
def test_only_what_the_agent_did_counts_against_it(
    reason: str, reward: float | None, expected: tuple[Any, Any], tmp_path: Path
) -> None:
    info = None if reward is None else {"reward": reward}
    value = results(run("s1", termination_reason=reason, reward_info=info))
    (dialogue,) = read(FORMAT, write(tmp_path / "results.json", value)).dialogues
    assert (dialogue.outcome["reward"], dialogue.outcome["success"]) == expected


def test_a_run_without_messages_costs_that_run(tmp_path: Path) -> None:
    value = results(run("s1", messages=None), run("s2"), {"id": "s3"})
    path = write(tmp_path / "results.json", value)
    found = read(FORMAT, path)
    assert [d.id for d in found.dialogues] == ["tau2/telecom/7/1/s2"]
    assert found.rejects == [
        (f"{path}#simulations/1", "no_conversation"),
        (f"{path}#simulations/3", "missing_keys"),
    ]
