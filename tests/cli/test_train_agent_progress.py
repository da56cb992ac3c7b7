"""What `mimesim train agent` tells while it trains, and after."""

from __future__ import annotations

from typing import Any

import pytest

from mimesim.cli import reinforced, train
from mimesim.train.rl import BatchLog

FULL = {
    "reward": 0.5, "episode/success": 0.25, "episode/turns": 6.5, "completions/mean_length": 81.2,
    "csd/gate_mean": 0.512, "credit/invalid": 3.0, "validation/reward": 0.7,
    "usage/user_calls": 40, "usage/coach_calls": 12, "usage/coach_cost": 0.0125,
}  # fmt: skip


def told(capsys: pytest.CaptureFixture[str], *logs: BatchLog, quiet: bool = False) -> list[str]:
    tell = train._Bar("agent", quiet=quiet).batches(20)
    for log in logs:
        tell(log)
    return capsys.readouterr().err.strip().splitlines()


def test_a_batch_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert " ".join(told(capsys, BatchLog(4, FULL, 12.34))) == (
        "agent: batch 4/20, success 25%, reward 0.50, held out 0.70, 6.5 turns, 81 tokens, "
        "3 failed, gate 0.51, 40 user calls, 12 coach calls ($0.0125), 12.3 s"
    )


def test_alarms_are_told_whatever_the_bar_does(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines come every tenth of a run, alarms when they ring, also where progress is off."""
    logs = [BatchLog(n, {"reward": 0.0}, 1.0) for n in (1, 2, 3)]
    alarm = BatchLog(3, {"reward": 0.0}, 1.0, ("the entropy [collapsed]",))
    note = BatchLog(0, {}, 0.0, ("no tracker",))
    assert told(capsys, note, *logs[:1], alarm) == [
        "agent: batch 0: no tracker",
        "agent: batch 1/20, reward 0.00, 1.0 s",
        "agent: batch 3/20, reward 0.00, 1.0 s",
        "agent: batch 3: the entropy [collapsed]",
    ]
    assert told(capsys, note, *logs, alarm, quiet=True) == [
        "agent: batch 0: no tracker",
        "agent: batch 3: the entropy [collapsed]",
    ]


def test_the_end_tells_validation_and_cost() -> None:
    best = {"batch": 10, "reward": 0.625, "success": 0.5, "episodes": 16}
    result: dict[str, Any] = {
        "validation": {"best": best, "kept": "best"},
        "stopped_early": True,
        "usage": {"user_calls": 400, "user_tokens": 9000, "coach_calls": 100, "coach_cost": 1.5},
    }
    assert reinforced._held_out(result) == (
        "\nheld-out training tasks: best reward 0.625, success 50.0% after batch 10 (greedy, "
        "n = 16; the best weights are kept, stopped early)\n400 user calls, 100 coach calls, $1.50"
    )
    assert reinforced._held_out({"validation": {}, "stopped_early": False, "usage": {}}) == ""
