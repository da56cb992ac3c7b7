"""`mimesim train user`: recipes by name, the small form, and a thought training from end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.cli.main import invoke
from mimesim.train import thought
from mimesim.users.settings import trained_as
from tests import tiny


def dry(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """Return the resolved settings of a training of a user."""
    assert invoke(["train", "user", *arguments, "--dry-run", "--json"]) == 0
    found: dict[str, object] = jsonio.loads(capsys.readouterr().out.strip().split("\n")[-1])
    return found


def test_a_recipe_is_found_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert dry(capsys, "--recipe", "midtrain")["stage"] == "midtrain"
    assert dry(capsys, "--set", "seed=3")["stage"] == "midtrain"
    assert dry(capsys, "--recipe", "thought")["stage"] == "thought"
    paper = dry(capsys, "--recipe", "thought-9b")
    assert paper["lr"] == 1e-7
    assert paper["launch"] == {
        "device": "auto",
        "precision": "mixed",
        "gradient_checkpointing": True,
        "packing": False,
        "processes": 8,
    }


def test_quick_makes_a_recipe_small(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("midtrain", "thought"):
        whole = dry(capsys, "--recipe", name)
        quick = dry(capsys, "--recipe", name, "--quick")
        differing = {key for key in whole if whole[key] != quick[key]}
        assert "token_budget" in differing
        assert {"model", "corpus", "stage", "seed"}.isdisjoint(differing)
    assert dry(capsys, "--recipe", "thought", "--quick", "--set", "epochs=9")["epochs"] == 9


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--recipe", "thoughts"], "unknown user recipe 'thoughts' (did you mean 'thought'?)"),
        (["--quick"], "the small form of which recipe?"),
        ([], "train user: which recipe?; expected --recipe with a file, or one of midtrain, "),
        (["--recipe", "thought-9b", "--set=launch.device=cpu"], "1 process started, 8 wanted"),
    ],
)
def test_what_cannot_be_started_is_told_in_one_line(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["train", "user", *arguments, f"--out={tmp_path / 'x'}"]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    errors = [line for line in lines if line != "user: preparing"]
    assert len(errors) == 1
    assert told in errors[0]


def test_a_recipe_of_another_verb_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["train", "agent", "--recipe", "warm-start", "--dry-run"]) == 2
    assert "this recipe is for mimesim.train.warmstart:WarmConfig" in capsys.readouterr().err


def test_a_user_learns_to_think_on_the_pack_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny.save(tmp_path / "base")
    small = {
        "model": tmp_path / "base",
        "max_length": 1600,
        "token_budget": 9000,
        "lr": 1e-2,
        "dtype": "fp32",
        "threads": 1,
    }
    settings = [f"--set={key}={value}" for key, value in small.items()]
    out = tmp_path / "user"
    verb = ["train", "user", "--recipe", "thought", "--quick", *settings, f"--out={out}"]
    assert invoke([*verb, "--json"]) == 0
    result = jsonio.loads(capsys.readouterr().out.strip().split("\n")[-1])
    assert result["after"]["nll"] < result["before"]["nll"]
    assert result["counts"]["train"]["thoughts"] > 0
    assert result["label"] == ""
    served = trained_as(str(out))
    assert (served.template, served.thinking) == (thought.SERVING_TEMPLATE, True)
    assert jsonio.read_json(out / "mimesim.json")["corpora"][0]["name"] == "thoughts-pack"


def agent_settings(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert invoke(["train", "agent", *arguments, "--dry-run", "--json"]) == 0
    found: dict[str, Any] = jsonio.loads(capsys.readouterr().out.strip().split("\n")[-1])
    return found


def test_an_arm_is_one_switch(capsys: pytest.CaptureFixture[str]) -> None:
    recipe = ["--recipe", "realistic-csd"]
    plain = agent_settings(capsys, *recipe)
    assert (plain["arm"], plain["csd"]["alpha"], plain["coach"]) == (None, 0.1, "rule")
    usual = agent_settings(capsys, *recipe, "--arm", "csd")
    beside = {"arm": "csd", "out": f"{plain['out']}-csd"}
    assert usual == {**plain, **beside}, "arms of one recipe lie side by side"
    control = agent_settings(capsys, *recipe, "--arm", "grpo", "--out", str(plain["out"]))
    assert control == {**plain, "arm": "grpo", "csd": {**plain["csd"], "alpha": 0.0}}
    blind = agent_settings(capsys, *recipe, "--arm", "csd-noprivilege")
    assert (blind["coach"]["name"], blind["coach"]["privileged"]) == ("rule", False)
    assert agent_settings(capsys, *recipe, "--arm", "csd-placebo")["notes"]["arm"] == "placebo"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--arm", "csd-noprivilige"], "unknown arm 'csd-noprivilige' (did you mean"),
        (["--arm", "grpo", "--set", "csd.alpha=0.2"], "--set csd.alpha: 'csd.alpha' cannot be 0.2"),
        (["--set", "csd.estimator=k4"], "ref (experimental)"),
        (["--set", "coach.style=corrective"], "'coach.name' is missing"),
    ],
)
def test_arms_that_cannot_be_are_told_in_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["train", "agent", "--recipe", "realistic-csd", "--dry-run", *arguments]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert told in lines[0]


@pytest.mark.parametrize(
    ("recipe", "typed", "told"),
    [
        ("csd-mini", "gym='tao'", "unknown gym 'tao'"),
        ("csd-mini", "judge='selfie'", "unknown judge 'selfie'"),
        ("csd-mini", "gym_options={x=1}", "no option 'x'"),
        ("csd-mini", "trackers=['x']", "unknown tracker 'x'"),
        ("csd-mini", "coach='user'", "'scripted:realistic' has none"),
        ("csd-mini", "init='/nowhere'", "'/nowhere' is not there"),
        ("csd-mini", "clip=[-0.1,-0.2]", "the lower end of 'clip' cannot be -0.1"),
        ("csd-mini", "clip=[0.2,0]", "the upper end of 'clip' cannot be 0.0"),
        ("mixture-mini", "gyms=[{gym='tau',rows=9,profile='x'}]", "unknown profile of tau 'x'"),
        ("mixture-mini", "gyms=[{gym='tau',rows=9,user='scripted:x'}]", "scripted user 'x'"),
        ("mixture-mini", "gyms=[{gym='tau',rows=9,tasks='no'}]", "'gyms.0.tasks' cannot be read"),
    ],
)
def test_a_dry_run_refuses_what_the_run_would(
    recipe: str, typed: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--recipe", recipe, "--quick", "--set", typed]
    assert invoke(["train", "agent", *given, "--dry-run"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert told in line


def test_a_dry_run_of_several_gyms_names_no_single_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    absent = f"init='{tmp_path / 'absent'}'"
    assert invoke(["train", "agent", "--recipe", "csd", "--set", absent, "--dry-run"]) == 0
    shown = capsys.readouterr()
    keys = {line.partition(" = ")[0] for line in shown.out.splitlines()}
    assert {"gym", "profile", "gym_options"}.isdisjoint(keys)
    assert "judge = 'self'" in shown.out
    assert "'init': there is no folder" in shown.err
