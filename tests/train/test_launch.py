"""One run over several processes: refusals, who writes, and that the loss stays the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from mimesim import jsonio
from mimesim.errors import ConfigError, EnvironmentFault
from mimesim.train import launch
from mimesim.train.folder import training_folder
from mimesim.train.launch import Launch
from tests.support import launched

ROOT = Path(__file__).resolve().parents[2]


def test_a_plain_start_is_one_process_that_writes() -> None:
    assert launch.processes() == 1
    assert launch.is_first()
    launch.wait()
    Launch(processes=1).start()
    assert Launch().place() == "cpu"


def test_another_number_of_processes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launcher that quietly starts one process must not train another batch size."""
    with pytest.raises(EnvironmentFault, match="1 process started, 2 wanted"):
        Launch(processes=2).start()
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(EnvironmentFault, match="4 processes started, 2 wanted"):
        Launch(processes=2).start()
    with pytest.raises(ConfigError, match="'processes' cannot be -1"):
        Launch(processes=-1)


def test_several_gpus_need_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(EnvironmentFault, match="2 GPUs are visible to one process"):
        Launch(device="auto").start()
    Launch(device="cpu").start()


def test_only_the_first_process_holds_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with training_folder(tmp_path / "run", {"a": 1}):
        monkeypatch.setenv("RANK", "1")
        with training_folder(tmp_path / "run", {"a": 1}), training_folder(tmp_path / "no", {}):
            assert not (tmp_path / "no").exists()


@pytest.mark.slow
def test_two_processes_give_the_loss_of_one_at_the_same_batch(tmp_path: Path) -> None:
    launched.main(tmp_path / "one", 4)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    script = ["-m", "tests.support.launched", str(tmp_path / "two"), "2"]
    ran = subprocess.run(
        [*command, *script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    one = jsonio.read_json(tmp_path / "one" / "seen-first.json")
    two = jsonio.read_json(tmp_path / "two" / "seen-first.json")
    other = jsonio.read_json(tmp_path / "two" / "seen-other.json")
    assert (one["processes"], two["processes"]) == (1, 2)
    assert two["losses"] == pytest.approx(one["losses"], abs=1e-4)
    assert len(two["losses"]) == 6
    assert two["tokens"] == one["tokens"]
    assert two["told"] == two["losses"]
    assert other["told"] == [], "the first process speaks for all"
    assert not (tmp_path / "two" / "unfinished").exists()
    weights = [
        torch.cat([p.flatten() for p in AutoModelForCausalLM.from_pretrained(place).parameters()])
        for place in (tmp_path / "one" / "model", tmp_path / "two" / "model")
    ]
    assert torch.allclose(*weights, atol=1e-4)
