"""The losses by hand where everything comes together: LoRA, several updates, credit, processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from tests.support import numeric

pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).resolve().parents[2]


def check(told: list[dict[str, Any]]) -> None:
    for one in told:
        assert one["processes"] == len(told)
        assert len(one["loss"]) == numeric.UPDATES
        assert one["loss"] == pytest.approx(one["by_hand"], abs=1e-5)
        assert sum(one["noted"]) > 0
        assert one["null_gap"] <= 2e-6
    rows = [row for one in told for part in one["rows"] for row in part]
    assert sorted(rows) == list(range(8)), "every rollout is learnt from once"
    assert len({one["weights"] for one in told}) == 1
    assert len({loss for one in told for loss in one["loss"]}) == len(told) * numeric.UPDATES


def test_every_update_is_what_it_is_by_hand(tmp_path: Path) -> None:
    check([numeric.main(tmp_path)])


@pytest.mark.slow
def test_so_is_every_update_of_two_processes(tmp_path: Path) -> None:
    """Their rows are dealt to the updates otherwise, the mean is over the tokens of both."""
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"),
            *("-m", "tests.support.numeric", str(tmp_path)),
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    check([jsonio.read_object(tmp_path / f"numeric-{rank}.json") for rank in (0, 1)])
