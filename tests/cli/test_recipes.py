"""Every training recipe resolves by its verb; the mini arms of the agent run from nothing."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

from mimesim import jsonio
from mimesim.cli.main import invoke
from mimesim.config import recipes

ROOT = Path(__file__).resolve().parents[2] / "recipes"
VERBS = {
    "mimesim.train.midtrain:UserConfig": "user",
    "mimesim.train.user_rl:UserRlConfig": "user",
    "mimesim.train.user_warmstart:SpeakerConfig": "user",
    "mimesim.train.warmstart:WarmConfig": "warm-start",
    "mimesim.train.gymstart:GymStartConfig": "warm-start",
    "mimesim.train.agent:AgentConfig": "agent",
    "mimesim.train.agent_sft:AgentSftConfig": "agent-sft",
}
TRAININGS = {
    path: VERBS[kind]
    for path in sorted(ROOT.rglob("*.toml"))
    if (kind := tomllib.loads(path.read_text("utf-8"))["x-config"]) in VERBS
}
TINY = ["--set=start.steps=2", "--set=start.demos.rows=32", "--set=batches=1", "--quiet"]


@pytest.mark.parametrize("path", TRAININGS, ids=lambda p: p.stem)
def test_the_recipe_resolves_by_its_verb(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verb = TRAININGS[path]
    assert invoke(["train", verb, "--recipe", str(path), "--dry-run", "--json"]) == 0
    by_path = capsys.readouterr().out
    family = "user" if verb == "user" else "agent"
    name = next(n for n in recipes.names(family) if recipes.find(n, family) == path)
    assert invoke(["train", verb, "--recipe", name, "--dry-run", "--json"]) == 0
    assert capsys.readouterr().out == by_path


def test_the_arms_of_the_paper_differ_only_in_user_and_alpha(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def dry(name: str) -> dict[str, object]:
        assert invoke(["train", "agent", "--recipe", name, "--dry-run", "--json"]) == 0
        found: dict[str, object] = jsonio.loads(capsys.readouterr().out)
        return found

    gpt, mimesis, csd = dry("grpo-gpt55"), dry("grpo-mimesis"), dry("csd")
    swapped = {key for key in gpt if gpt[key] != mimesis[key]}
    assert swapped == {"out", "user"}
    assert {arm["judge"] for arm in (gpt, mimesis, csd)} == {"self"}  # of whichever user is met
    coached = {key for key in gpt if mimesis[key] != csd[key]}
    assert coached == {"out", "csd", "notes", "coach"}
    for arm in (gpt, mimesis, csd):
        published = {"lr": 1e-6, "prompts": 64, "group": 8, "minibatches": 8, "batches": 180}
        assert {key: arm[key] for key in published} == published


def test_the_mini_arms_run_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "agent", tmp_path / "recipes" / "agent")
    monkeypatch.chdir(tmp_path)
    csd = ["train", "agent", "--recipe", "recipes/agent/csd-mini.toml", "--quick", *TINY]
    assert invoke(csd) == 0
    assert (tmp_path / "out/csd-mini-quick/policy/model.safetensors").is_file()
    start = tmp_path / "out/quick-start/policy/model.safetensors"
    made = start.stat().st_mtime_ns
    assert invoke([*csd, "--arm", "grpo"]) == 0
    assert (tmp_path / "out/csd-mini-quick-grpo/policy/model.safetensors").is_file()
    assert start.stat().st_mtime_ns == made  # both arms begin with the same weights
    capsys.readouterr()
    assert invoke([*csd, "--arm=csd-placebo", "--set=start.out='elsewhere'"]) == 0  # it is there
    start.unlink()
    assert invoke([*csd, "--arm=csd-placebo", "--out=x", "--set=start.out='elsewhere'"]) == 2
    assert "'start.out' makes" in capsys.readouterr().err
