"""`mimesim run` in the gyms: options, compatibility, the judge nobody named, agents that lack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mimesim import jsonio
from mimesim.envs.load import load_tasks
from mimesim.envs.packs import write_tasks
from tests.cli.test_run import result, run


def manifest(out: Path) -> dict[str, Any]:
    """Return the run's own record."""
    return jsonio.read_object(out / "run.json")


def test_a_gym_that_needs_a_judge_gets_the_rule_judge_and_says_so(tmp_path: Path) -> None:
    out = tmp_path / "r"
    text, err = run("--gym=turtle", "--agent=oracle", "-n2", f"--out={out}", "--json")
    assert result(text)["reward"]["mean"] == 1.0
    assert any(line.split()[:2] == ["judge", "rule"] for line in err.splitlines())
    assert manifest(out)["config"]["judge"] == "rule"
    (first, _) = [line.value for line in jsonio.read_jsonl(out / "episodes.jsonl")]
    assert first["judge"]["name"] == "rule"


def test_a_gym_without_a_judge_gets_none(tmp_path: Path) -> None:
    out = tmp_path / "r"
    run("--gym=function", "--agent=scripted:random", "-n1", f"--out={out}", "--json")
    assert manifest(out)["config"]["judge"] is None


def test_compat_and_options_reach_the_gym_and_the_record(tmp_path: Path) -> None:
    out = tmp_path / "r"
    text, err = run(
        *("--gym=function", "--agent=oracle", "-n1", "--compat=userrl"),
        *("--gym-option", "phase=train", "--gym-option=executed_steps=16"),
        *(f"--out={out}", "--json"),
    )
    options = {"phase": "train", "executed_steps": 16, "compat": "userrl"}
    assert result(text)["gym_options"] == options
    assert manifest(out)["config"]["gym_options"] == options
    assert "options of the gym: phase train, executed_steps 16, compat userrl" in err
    (episode,) = [line.value for line in jsonio.read_jsonl(out / "episodes.jsonl")]
    assert "Reward: 1.0" in episode["turns"][-1]["content"]


def test_without_options_none_are_told(tmp_path: Path) -> None:
    text, err = run("--gym=function", "--agent=null", "-n1", f"--out={tmp_path / 'r'}", "--json")
    assert "gym_options" not in result(text)
    assert "options of the gym" not in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--gym=turtle"], "gym 'turtle' has no agent 'scripted:eager'"),
        (["--gym=turtle", "--agent=oracle", "--compat=userl"], "expected true, userrl or mimesis"),
        (["--gym=turtle", "--agent=oracle", "--gym-option=foo"], "is no key=value"),
        (["--gym=turtle", "--agent=oracle", "--gym-option=turtle_tl=exact"], "'turtle_tol'"),
        (["--gym=support-desk", "--compat=userrl"], "the support desk has no option 'compat'"),
        (["--gym=function", "--profile=compcat", "--agent=oracle"], "'compact'"),
    ],
)
def test_what_does_not_fit_is_told_before_a_folder_is_made(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    out = tmp_path / "r"
    _, err = run(*arguments, "-n1", f"--out={out}", code=2)
    assert told in err
    assert err.count("\n") == 1
    assert not out.exists()


def test_a_dry_run_shows_no_person_where_there_is_none() -> None:
    out, _ = run("--gym=function", "--agent=oracle", "-n1", "--dry-run")
    assert "The rule is set." in out
    assert "user: The rule" not in out
    out, _ = run("--gym=telepathy", "--agent=oracle", "-n1", "--dry-run")
    assert "judge: rule" in out


def test_what_generate_writes_is_played_without_naming_its_split(tmp_path: Path) -> None:
    file, out = tmp_path / "t.jsonl", tmp_path / "r"
    write_tasks(file, load_tasks("turtle", split="train", count=2))
    _, err = run("--gym=turtle", f"--tasks={file}", "--agent=oracle", "-n5", f"--out={out}")
    assert "2 tasks, each 2 or 3 times" in err
    assert manifest(out)["config"]["split"] == "train"


def test_six_sixths_are_one_and_repetitions_do_not_narrow_the_interval(tmp_path: Path) -> None:
    common = ("--gym=persuade", "--agent=oracle", "--fail-under=reward=1", "--json")
    lows = []
    for count in (17, 51):
        out, err = run(*common, f"-n{count}", f"--out={tmp_path / str(count)}")
        lows.append(result(out)["success"]["ci95"][0])
        assert ("17 tasks, each 3 times" in err) == (count == 51)
    assert lows[0] == pytest.approx(lows[1])


@pytest.mark.parametrize("name", ["random", "patient", "eager"])
def test_an_agent_without_its_family_is_told_the_name_at_the_door(
    tmp_path: Path, name: str
) -> None:
    _, err = run("--gym=function", f"--agent={name}", f"--out={tmp_path / 'r'}", code=2)
    assert f"did you mean 'scripted:{name}'" in err
