"""`mimesim plan` on the command line: one table a recipe, one JSON line, no torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mimesim import jsonio
from mimesim.cli.main import invoke

PAPER = sorted((Path(__file__).resolve().parents[2] / "recipes" / "paper").glob("*.toml"))


def test_the_paper_is_planned_in_one_go(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["plan", *map(str, PAPER)]) == 0
    out = capsys.readouterr().out
    for path in PAPER:
        assert path.name in out
    for told in ("wall-clock", "tokens of the teacher", "4.8 days on 32 A100", "350 s on 16 GPUs"):
        assert told in out
    assert "unvalidated: no cost of an agent RL run is published" in out
    assert "yours to set with --prices" in out


def test_json_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["plan", "csd-mini", "--quick", "--gpu=h200", "--gpus=2", "--json"]) == 0
    (found,) = jsonio.loads(capsys.readouterr().out)["plans"]
    assert (found["machine"], found["machines"], found["model"]) == ("h200", 2, "tiny")
    assert set(found["estimates"]) == {"fast", "point", "slow"}
    assert found["estimates"]["point"]["memory"]["whole"] > 0


def test_the_assumptions_are_shown_with_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["plan", "--assumptions"]) == 0
    out = capsys.readouterr().out
    assert "training_mfu" in out
    assert "NVIDIA H100 SXM data sheet" in out
    assert invoke(["plan", "--assumptions", "--json"]) == 0
    assert jsonio.loads(capsys.readouterr().out)["training_mfu"]["span"] == [0.5, 0.25]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "no recipe is named"),
        (["csdmini"], "did you mean 'csd-mini'?"),
        (["csd", "--engine=sglang"], "expected vllm or hf"),
        (["csd", "--set=prompts=many"], "'prompts' cannot be 'many'"),
        (["csd", "--prices=absent.toml"], "absent.toml"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["plan", *arguments]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


def test_no_torch_is_loaded() -> None:
    code = (
        "import sys\nfrom mimesim.cli.main import invoke\n"
        "assert invoke(['plan', 'csd', 'rl-9b', 'midtrain-9b', '--json']) == 0\n"
        "assert not {'torch', 'transformers', 'trl', 'peft'} & set(sys.modules)"
    )
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
